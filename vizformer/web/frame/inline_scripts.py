"""Scripts that stand in the page.  Each is a file of ours, so that the policy of a page allows it by the hash of its text.

What a script is told stands in its attributes, which a hash leaves out: `document.currentScript.dataset`.
"""

import base64
import hashlib
import html
import re
from functools import cache
from pathlib import Path

import streamlit as st
from streamlit import file_util

from vizformer.assets import asset
from vizformer.web.frame import first_picture

NAMES = ("connect.js", "history.js", "accessible.js", "terms.js", "language.js", "cookie.js", "present.js", "part.js")


def run(name: str, **told: str) -> None:
    """Has the browser run one of the scripts, each time that what it is told changes."""
    st.html(written(name, **told), unsafe_allow_javascript=True)


def written(name: str, **told: str) -> str:
    given = "".join(f' data-{key}="{html.escape(value)}"' for key, value in told.items())
    return f"<script{given}>{_text(name)}</script>"


@cache
def _text(name: str) -> str:
    return asset(name).read_text(encoding="utf-8")


def hashes() -> list[str]:
    """The scripts that may stand in a page, ours and those of Streamlit's first page, as a policy names them."""
    first = Path(file_util.get_static_dir(), "index.html").read_text(encoding="utf-8")
    texts = [*map(_text, NAMES), first_picture.script(), *re.findall(r"<script>(.*?)</script>", first, re.DOTALL)]
    return list(map(hashed, texts))


def hashed(text: str) -> str:
    """The hash of a script, as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

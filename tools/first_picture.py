"""Writes assets/first_picture: what the first page shows before its server has had the time to make it: `make picture`.

It is what the page sends to its picture, for a reader of each language who comes by a link without parameters.  A test
compares.
"""

import sys
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def made(language: str) -> str:
    """What the page makes now."""
    from vizformer.web.frame import first_picture

    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=180)
    app.context["locale"] = language.replace("_", "-")
    app.run()
    sent = [
        one.proto for one in app.get("bidi_component") if one.proto.component_name.endswith(first_picture.COMPONENT)
    ]
    if app.exception or len(sent) != 1:
        raise RuntimeError(f"the first page has {len(sent)} pictures: {[one.value for one in app.exception]}")
    return first_picture.content(sent[0])


def main() -> None:
    from vizformer.web.frame import first_picture
    from vizformer.web.link.languages import LANGUAGES

    for language in LANGUAGES:
        first_picture.kept(language).write_text(made(language) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""What a reader sees when something goes wrong: one sentence, never a traceback, and the rest of the page stays."""

import logging
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from vizformer.errors import VizformerError
from vizformer.messages import Message, N_
from vizformer.web.i18n import translate

log = logging.getLogger("vizformer")

QUOTED = 120  # characters of a quoted text that still help to recognise it


def plain(text: str) -> str:
    """`text` so that Streamlit's Markdown shows it as it stands (no markup, maths, emoji codes, links or new lines).

    Longer texts are cut to `QUOTED` characters; characters that cannot be seen are shown as "�".
    """
    shown = text if len(text) <= QUOTED else text[: QUOTED - 1] + "…"
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in shown)
    shown = re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", shown)  # CommonMark: any ASCII punctuation may be escaped
    # Streamlit's own codes (:red[..], :smile:, ->) and bare links are found after the escapes are gone:
    # an invisible word joiner keeps them apart.
    return re.sub(r"(\\[:<>=.@-])", "\\1\u2060", shown)


def show(message: Message) -> None:
    """Shows `message` as an error, where the page is now."""
    st.error(translate(message, plain))


def unexpected(error: Exception) -> None:
    """Logs an error nobody foresaw, with its traceback, and shows a sentence with the log entry's reference."""
    reference = secrets.token_hex(3)
    log.error("unexpected error %s", reference, exc_info=error)
    show(
        N_(
            "Something went wrong here, and it is our mistake, not yours. The rest of the page still works. "
            "Whoever runs this server finds the details in its log under {reference}.",
            reference=reference,
        )
    )


def on_script_error(error: Exception) -> bool:
    """The server's last net, for what escapes every `guarded()` (in callbacks, in the frame itself)."""
    if isinstance(error, VizformerError):
        show(error.message)
    else:
        unexpected(error)
    return True  # Streamlit is not to show the exception itself


@contextmanager
def guarded() -> Iterator[None]:
    """Around a part of a page (`with guarded():`) or on a function (`@guarded()`): errors become a sentence in its place.

    Streamlit's own control flow (`st.stop`, `st.rerun`, `st.switch_page`) passes through.
    """
    try:
        yield
    except VizformerError as error:
        show(error.message)
    except Exception as error:  # the last net before the browser; the traceback goes to the log
        unexpected(error)

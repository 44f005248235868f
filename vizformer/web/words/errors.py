"""What a reader sees when something goes wrong: one sentence, never a traceback, and the rest of the page stays."""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import streamlit as st

from vizformer.errors import OwnArithmeticError, VizformerError
from vizformer.messages import N_, Message
from vizformer.web.inside_streamlit import StreamlitDuplicateElementKey
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import TURNS
from vizformer.web.words.i18n import _, quoted, translate
from vizformer.web.words.i18n import plain as plain

log = logging.getLogger("vizformer")


def show(message: Message) -> None:
    """Shows `message` as an error, where the page is now."""
    st.error(translate(message, plain))


def show_error(error: VizformerError) -> None:
    """Shows an error; where our own Transformer is needed, as a remark with the bundled model that has it."""
    if not isinstance(error, OwnArithmeticError):
        show(error.message)
        return
    st.info(translate(error.message, plain))
    with suppress(StreamlitDuplicateElementKey):  # once a page is enough
        st.button(
            _("Use the model {name}", name=quoted(error.instead)),
            key=f"instead.{error.instead}",
            on_click=_use,
            args=(error.instead,),
        )


def _use(name: str) -> None:
    state.update(model=ModelRef("bundled", name))


def unexpected(error: Exception) -> None:
    """Logs an error nobody foresaw, with its traceback, and shows a sentence with the log entry's reference."""
    reference = secrets.token_hex(3)
    log.error("unexpected error %s", reference, exc_info=error)
    show(
        N_(
            "Something went wrong here, and it is our mistake, not yours. The rest of the page still works. The "
            "log of this server has the details under {reference}.",
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
    """Errors inside become a sentence in their place: `with guarded():` around a part of a page, `@guarded()` above it.

    A part that runs by itself waits here for its turn (`vizformer.web.turns`). Streamlit's own control flow (`st.stop`,
    `st.rerun`, `st.switch_page`) passes through.
    """
    try:
        with TURNS.turn():
            yield
    except VizformerError as error:
        show_error(error)
    except Exception as error:  # the last net before the browser; the traceback goes to the log
        unexpected(error)

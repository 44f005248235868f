"""The first visitor of a server is the server: it opens the first page once in each language, so that others find it warm.

What is imported, read and computed for the page is there then; and what its picture was sent is what the page begins with
(`first_picture`).
"""

import asyncio
import logging
from collections.abc import Awaitable

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.session_manager import SessionClient

from vizformer.web.frame import first_picture, page_modules
from vizformer.web.link.languages import LANGUAGES

PATIENCE = 60.0  # seconds for a visit


class _Visitor(SessionClient):
    """Hears what the page is made of."""

    def __init__(self, language: str) -> None:
        self.language, self.finished = language, asyncio.Event()

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        if msg.WhichOneof("type") == "script_finished":
            self.finished.set()
        elif msg.WhichOneof("type") == "delta" and msg.delta.new_element.WhichOneof("type") == "bidi_component":
            first_picture.take(self.language, msg.delta.new_element.bidi_component)

    @property
    def client_context(self) -> None:
        return None


async def visit() -> None:
    """Imports what pages are made of, then opens the first one; what goes wrong there goes wrong alone."""
    await _alone(asyncio.to_thread(page_modules.load))
    for language in LANGUAGES:
        await _alone(_open(_Visitor(language)))


async def _alone(work: Awaitable[None]) -> None:
    try:
        await work
    except Exception:
        logging.getLogger(__name__).exception("The first page could not be opened while the server started.")


async def _open(visitor: _Visitor) -> None:
    runtime = Runtime.instance()
    session = runtime.connect_session(visitor, {})
    ask = BackMsg()
    ask.rerun_script.context_info.locale = visitor.language.replace("_", "-")
    try:
        runtime.handle_backmsg(session, ask)
        await asyncio.wait_for(visitor.finished.wait(), PATIENCE)
    finally:
        runtime.close_session(session)

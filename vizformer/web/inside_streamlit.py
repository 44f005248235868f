"""All that is used of Streamlit without being in its documentation: where a new version breaks something, it is here.

The command line, with which the server is started, is imported where it is needed: it takes the whole server along.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from copy import deepcopy
from functools import cache, partial
from typing import Any

from streamlit import delta_generator
from streamlit.errors import StreamlitDuplicateElementKey as StreamlitDuplicateElementKey
from streamlit.navigation.page import Page as Page
from streamlit.proto.BackMsg_pb2 import BackMsg as BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg as ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import Runtime as Runtime
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import get_script_run_ctx as get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient as SessionClient
from streamlit.runtime.state import SafeSessionState
from streamlit.web.server.starlette import starlette_server as starlette_server
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string as decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_routes import _ensure_xsrf_cookie as _ensure_xsrf_cookie
from streamlit.web.server.starlette.starlette_server_config import (
    STATIC_ASSET_CACHE_MAX_AGE_SECONDS as STATIC_ASSET_CACHE_MAX_AGE_SECONDS,
)

from vizformer.context_value import held

_own = getattr(SafeSessionState, "filtered_state", None)


class SessionValues(Mapping[str, Any]):
    """The values of a session by their keys, each read when it is asked for.

    Every box, list and slider of Streamlit asks for the value of its own key, for which Streamlit reads those of all.
    """

    def __init__(self, session: SafeSessionState) -> None:
        self._session = session

    def __getitem__(self, key: str) -> Any:
        return self._session[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = _own.fget(self._session)  # type: ignore[union-attr]
        return found


if isinstance(_own, property):  # in a version of Streamlit without it, each box reads the values as that version does
    SafeSessionState.filtered_state = property(SessionValues)  # type: ignore[method-assign, assignment]


def _in_place_of(owner: object, name: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Puts what is made of one of Streamlit's functions in its place; a version without it is left as it is."""

    def put(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        own = getattr(owner, name, None)
        if getattr(own, "__module__", "").partition(".")[0] == "streamlit":
            setattr(owner, name, make(own))
        return make

    return put


class Calls:
    """Calls in the event loop, in their order: those that wait are one call of the loop, made by `call_soon`."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], None]) -> None:
        self._call_soon, self._waiting, self._is_told = call_soon, deque[Callable[[], None]](), False

    def add(self, call: Callable[[], None]) -> None:
        self._waiting.append(call)
        if not self._is_told:  # (it is taken back before the loop looks: a call that is added now is seen then)
            self._is_told = True
            self._call_soon(self._run)

    def _run(self) -> None:
        self._is_told = False
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            if self._waiting:  # one has failed
                self._call_soon(self._run)


@_in_place_of(AppSession, "_call_soon_on_event_loop")
def _together(call_soon: Any) -> Any:
    """Streamlit wakes its loop for each of the hundred messages of a run."""

    def add(session: AppSession, call: Callable[[], None]) -> None:
        calls = session.__dict__.get("_calls")
        if calls is None:
            calls = session.__dict__.setdefault("_calls", Calls(partial(call_soon, session)))
        calls.add(call)

    return add


@_in_place_of(Runtime, "_enqueued_some_message")
def _at_once(tell: Any) -> Any:
    """Streamlit's loop wakes itself to hear that there is something to send, once more for each message."""

    def told(runtime: Any) -> None:
        objects = runtime._get_async_objs()
        if asyncio._get_running_loop() is objects.eventloop:
            objects.need_send_data.set()
        else:
            tell(runtime)

    return told


@_in_place_of(app_session, "_populate_theme_msg")
def _read_once(write: Any) -> Any:
    """What the configuration says of a theme is the same at each run; Streamlit reads it again."""

    @cache
    def theme(section: str) -> CustomThemeConfig:
        found = CustomThemeConfig()
        write(found, section)
        return found

    def copied(message: CustomThemeConfig, section: str = "theme") -> None:
        if (found := theme(section)).ListFields():
            message.MergeFrom(found)

    return copied


_COPIED: ContextVar[dict[int, Any] | None] = ContextVar("copied places", default=None)


@_in_place_of(delta_generator.DeltaGenerator, "__deepcopy__")
def _copy_once(copy: Any) -> Any:
    """A fragment keeps a copy of all places that it stands in; Streamlit copies those around each of them again."""

    def copied(place: Any, memo: dict[int, Any]) -> Any:
        with held(_COPIED, memo):
            return copy(place, memo)

    def copied_with_others(value: Any) -> Any:
        return deepcopy(value, _COPIED.get())

    delta_generator.deepcopy = copied_with_others  # type: ignore[attr-defined, assignment]
    return copied

"""All that is used of Streamlit without being in its documentation: where a new version breaks something, it is here.

The command line, with which the server is started, is imported where it is needed: it takes the whole server along.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.errors import StreamlitDuplicateElementKey as StreamlitDuplicateElementKey
from streamlit.navigation.page import Page as Page
from streamlit.proto.BackMsg_pb2 import BackMsg as BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg as ForwardMsg
from streamlit.runtime import Runtime as Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx as get_script_run_ctx
from streamlit.runtime.session_manager import SessionClient as SessionClient
from streamlit.runtime.state import SafeSessionState
from streamlit.web.server.starlette import starlette_server as starlette_server
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string as decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_routes import _ensure_xsrf_cookie as _ensure_xsrf_cookie
from streamlit.web.server.starlette.starlette_server_config import (
    STATIC_ASSET_CACHE_MAX_AGE_SECONDS as STATIC_ASSET_CACHE_MAX_AGE_SECONDS,
)

_every_value = SafeSessionState.filtered_state.fget  # type: ignore[attr-defined]


class SessionValues(Mapping[str, Any]):
    """The values of a session by their keys, each read when it is asked for.

    Every box, list and slider of Streamlit asks for the value of its own key, for which Streamlit reads those of all.
    """

    def __init__(self, session: SafeSessionState) -> None:
        self._session = session

    def __getitem__(self, key: str) -> Any:
        return self._session[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_every_value(self._session))

    def __len__(self) -> int:
        return len(_every_value(self._session))


SafeSessionState.filtered_state = property(SessionValues)  # type: ignore[method-assign, assignment]

"""A reader without a browser: speaks Streamlit's protocol with a running server.

with Reader(port) as reader:
    messages = reader.open("qkv", text="hello", head=3)
"""

from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

TIMEOUT = 120.0  # seconds; generous, the machine may be busy


class Reader:
    """A session, connected until `close()`."""

    def __init__(self, port: int, timeout: float = TIMEOUT, **headers: str) -> None:
        self.timeout = timeout
        self.connection = connect(
            f"ws://127.0.0.1:{port}/_stcore/stream",
            subprotocols=["streamlit"],  # type: ignore[list-item]
            max_size=None,
            additional_headers=headers,
            open_timeout=TIMEOUT,
            compression=None,
        )
        self.socket = self.connection.__enter__()
        self.session = ""
        self.query = ""
        self.opened = ""  # the hash of the page

    def open(self, page: str, **link: object) -> list[ForwardMsg]:
        """Opens an address, as a click on a link does; what the server sends for it."""
        self.query = urlencode({name: str(value) for name, value in link.items()})
        return self.run(page)

    def run(self, page: str, widgets: Any = None, fragment: str = "") -> list[ForwardMsg]:
        """Has the page (or one fragment of it) run again, with `widgets` (a `WidgetStates`) as they are now.

        Returns what the server sends for it.
        """
        message = BackMsg()
        message.rerun_script.query_string = self.query
        if fragment:  # as browsers do: the page that is open, by its hash
            message.rerun_script.page_script_hash, message.rerun_script.fragment_id = self.opened, fragment
        else:
            message.rerun_script.page_name = page
        if widgets is not None:
            message.rerun_script.widget_states.CopyFrom(widgets)
        self.send(message)
        return self.answer()

    def send(self, message: BackMsg) -> None:
        self.socket.send(message.SerializeToString())

    def answer(self) -> list[ForwardMsg]:
        """What arrives until a run has finished (one that was interrupted by another one goes on)."""
        found = []
        while True:
            message = ForwardMsg.FromString(self.socket.recv(timeout=self.timeout))
            found.append(message)
            if message.HasField("new_session"):
                self.session = message.new_session.initialize.session_id or self.session
            if message.HasField("navigation"):
                self.opened = message.navigation.page_script_hash
            if message.HasField("page_info_changed"):  # the address bar
                self.query = message.page_info_changed.query_string
            if message.HasField("script_finished") and message.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_WITH_COMPILE_ERROR,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            ):
                return found

    def close(self) -> None:
        self.connection.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def elements(messages: list[ForwardMsg], kind: str) -> list[Any]:
    """The elements of a kind ("alert", "text", ...) among the messages, as the server sent them."""
    new = (message.delta.new_element for message in messages if message.HasField("delta"))
    return [getattr(element, kind) for element in new if element.WhichOneof("type") == kind]

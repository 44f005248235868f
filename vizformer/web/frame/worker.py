"""One of several server processes: `streamlit run app.py`, but at a socket in a folder, where HAProxy finds it.

    python -m vizformer.web.frame.worker SOCKET --server.address 127.0.0.1 --server.port 8501

Address and port are those that browsers see, and all options and variables of Streamlit count as they do without
workers.  Streamlit itself listens on ports only, so that the one function of it that makes a socket is replaced.
"""

import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import click
from streamlit.web import cli as streamlit

from vizformer.assets import app_root
from vizformer.checkpoints import own_code
from vizformer.serving import own_models
from vizformer.web.inside_streamlit import starlette_server

BIND = "_bind_server_socket"


def serve(place: Path, options: list[str]) -> None:
    """Serves until a signal asks for the end."""

    def bind(server_address: str, bind_address: str, port: int, backlog: int) -> tuple[socket.socket, str]:
        listening = socket.socket(socket.AF_UNIX)
        with suppress(FileNotFoundError):
            place.unlink()  # of the worker before
        listening.bind(str(place))
        listening.listen(backlog)
        listening.setblocking(False)
        return listening, bind_address

    if not hasattr(starlette_server, BIND):
        raise click.ClickException("This version of Streamlit cannot be one of several workers. Leave --workers out.")
    setattr(starlette_server, BIND, bind)
    if os.environ.get(own_code.VARIABLE, "").strip():
        own_models.load()
    with suppress(KeyboardInterrupt, click.Abort):
        streamlit.main(args=["run", str(app_root() / "app.py"), *options], prog_name="vizformer", standalone_mode=False)


if __name__ == "__main__":
    try:
        serve(Path(sys.argv[1]), sys.argv[2:])
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)

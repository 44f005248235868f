"""What the server prints when it is ready."""

import asyncio
import socket

import click
import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.web.server.starlette import starlette_server

from vizformer.serving import ONE_OF, listening
from vizformer.web.frame import server


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("127.0.0.1", "at http://localhost:8639\n"),
        ("::1", "at http://localhost:8639\n"),
        ("192.0.2.7", "at http://192.0.2.7:8639\n"),
        ("2001:db8::7", "at http://[2001:db8::7]:8639\n"),
    ],
)
def test_the_address(host, line, capsys):
    server.announce(host, 8639)
    out = capsys.readouterr().out
    assert line in out
    assert "others" not in out


def test_the_address_for_others(monkeypatch, capsys):
    monkeypatch.setattr(listening, "lan_address", lambda: "192.0.2.7")
    server.announce("0.0.0.0", 8639)
    out = capsys.readouterr().out
    assert "at http://localhost:8639\n" in out
    assert "others on this network, at http://192.0.2.7:8639\n" in out


def test_the_first_visitor_finds_streamlit_in_its_new_mode(capsys, caplog):
    # If this name goes, so may the trap; tests/browser/test_start.py holds the behaviour itself.
    PagesManager.uses_pages_directory = None

    async def start():
        async with server.lifespan(None):
            pass

    asyncio.run(start())
    assert PagesManager.uses_pages_directory is False
    assert "VizFormer is running at" in capsys.readouterr().out
    assert not caplog.records


def test_a_worker_leaves_the_address_to_who_listens_there(monkeypatch, capsys):
    monkeypatch.setenv(ONE_OF, "4")

    async def start():
        async with server.lifespan(None):
            pass

    asyncio.run(start())
    assert capsys.readouterr().out == ""


def test_a_worker_serves_nothing_that_should_be_encrypted(monkeypatch):
    monkeypatch.setenv(ONE_OF, "4")
    monkeypatch.setattr(
        server.st, "get_option", lambda name: "/etc/ssl/cert.pem" if name == "server.sslCertFile" else None
    )

    async def start():
        async with server.lifespan(None):
            pass

    with pytest.raises(click.ClickException, match="sslCertFile"):
        asyncio.run(start())


def test_what_the_server_writes_in_two_pieces_does_not_wait_for_an_answer_to_the_first():
    with starlette_server._bind_socket("127.0.0.1", 0, 5) as there:  # as Streamlit listens
        listening.send_at_once()
        there.setblocking(True)
        with (
            socket.create_connection(there.getsockname()),
            there.accept()[0] as connection,
        ):  # which takes the option over
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

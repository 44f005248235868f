"""The command: what it says when it cannot start, and that asking for help is quick."""

import socket

import pytest
from click.testing import CliRunner

from vizformer import __version__, cli
from vizformer.errors import CheckpointError
from vizformer.messages import N_


@pytest.fixture
def taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_help_and_version():
    assert "--port" in CliRunner().invoke(cli.main, ["--help"]).output
    assert __version__ in CliRunner().invoke(cli.main, ["--version"]).output


def test_a_port_in_use_is_said_with_a_way_out(taken):
    result = CliRunner().invoke(cli.main, ["--port", str(taken)])
    assert result.exit_code == 1
    assert f"port {taken} is already in use" in result.output
    free = int(result.output.split("vizformer --port ")[1].split()[0])
    assert free > taken
    assert "Traceback" not in result.output


def test_the_variable_port_is_heard(taken):
    result = CliRunner().invoke(cli.main, [], env={"PORT": str(taken)})
    assert f"port {taken} is already in use" in result.output


def test_an_address_that_is_not_ours():
    result = CliRunner().invoke(cli.main, ["--host", "203.0.113.7", "--port", "8639"])
    assert result.exit_code == 1
    assert "cannot listen on 203.0.113.7" in result.output
    assert "0.0.0.0" in result.output


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_port_that_is_none(port):
    result = CliRunner().invoke(cli.main, ["--port", port])
    assert result.exit_code == 2
    assert "Invalid value for '--port'" in result.output


def test_an_error_of_ours_is_one_sentence(monkeypatch):
    def fail(*_, **__):
        raise CheckpointError(N_("There is no model {name}.", name="x"))

    monkeypatch.setattr(cli, "start", fail)
    result = CliRunner().invoke(cli.main, [])
    assert (result.exit_code, result.output) == (1, "Error: There is no model x.\n")

"""The command: what it says when it cannot start, and that asking for help is quick."""

import os
import socket
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import pretend_device
from tests.recorded_code import EXAMPLE, named
from vizformer import __version__, cli
from vizformer.checkpoints import own_code
from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.serving import listening, workers
from vizformer.web.catalogue import bounded_cache as web_cache
from vizformer.web.catalogue import hub as web_hub
from vizformer.web.catalogue import local_paths as web_paths
from vizformer.web.catalogue import torch_setup
from vizformer.web.catalogue import uploads as web_uploads
from vizformer.web.frame import request_gate as web_gate


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


def test_a_model_of_ones_own_code_is_loaded_before_the_server_runs(seen, monkeypatch, tmp_path):
    file = tmp_path / "my_model.py"
    file.write_text(EXAMPLE + "\n\ndef broken():\n    return 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    with named(monkeypatch):
        result = CliRunner().invoke(cli.main, ["--model", "my_model.py:load", "--model", f"{file}:broken"])
        assert result.exit_code == 1
        assert not seen  # nothing is served
        assert "in broken" in result.output  # where, by its own traceback
        where = f"(my_model.py, line {len(EXAMPLE.splitlines()) + 4})"
        said = f"broken() raised ZeroDivisionError {where}: division by zero"
        assert result.output.endswith(f"Error: --model {file}:broken: {said}\n")
        result = CliRunner().invoke(cli.main, ["--model", "my_model.py:load"])
        assert result.exit_code == 0
        assert "my_model: <RecordedCheckpoint my_model: decoder-only, 3 layers" in result.output
        assert os.environ[cli.MODEL] == f"{file}:load"  # whole, for each worker and each job
        assert seen
        result = CliRunner().invoke(cli.main, ["--model", "gone.py:load"])
        assert result.output == "Error: --model gone.py:load: There is no file gone.py.\n"


def test_the_variable_names_code_too_and_workers_load_it_themselves(seen, monkeypatch, tmp_path):
    file = tmp_path / "my_model.py"
    file.write_text(EXAMPLE)
    served = []
    monkeypatch.setattr(workers, "serve", lambda *_: served.append(dict(own_code._OPEN)))
    with named(monkeypatch, file):
        assert "my_model: <" in CliRunner().invoke(cli.main, []).output
        own_code._OPEN.clear()
        assert CliRunner().invoke(cli.main, ["--workers", "2"]).exit_code == 0
    assert served == [{}]


def test_where_the_heads_of_a_model_are_is_said(capsys):
    listening.announce("0.0.0.0", 8501, "https", "viz", ["my_model"])
    assert (
        "The heads of my_model: https://localhost:8501/viz/attention?model=code/my_model\n" in capsys.readouterr().out
    )


def test_an_error_of_ours_is_one_sentence(monkeypatch):
    def fail(*_, **__):
        raise CheckpointError(N_("There is no model {name}.", name="x"))

    monkeypatch.setattr(cli, "start_app", fail)
    result = CliRunner().invoke(cli.main, [])
    assert (result.exit_code, result.output) == (1, "Error: There is no model x.\n")


@pytest.fixture
def seen(monkeypatch):
    """The options that Streamlit would have been started with."""
    from streamlit.web import cli as streamlit

    seen = {}
    monkeypatch.setattr(streamlit, "main", lambda args, **_: seen.update(zip(args[2::2], args[3::2], strict=True)))
    monkeypatch.setattr(listening, "require_free", lambda host, port: None)
    for name in (cli.UPLOADS, cli.HUB, cli.PATHS):
        monkeypatch.setenv(name, "on")  # undone when the test is over
    return seen


@pytest.mark.parametrize(
    ("options", "variable", "on"),
    [
        ([], "", True),
        (["--host", "localhost"], "", True),
        (["--host", "::1"], "on", True),
        (["--host", "127.0.0.2"], "", True),
        (["--no-path"], "", False),
        (["--no-path"], "on", False),
        ([], "off", False),
        (["--host", "0.0.0.0"], "on", False),
        (["--host", "192.0.2.7"], "", False),
        (["--host", "myhost"], "", False),
        (["--host", "::"], "", False),
    ],
)
def test_paths_are_opened_where_nobody_else_comes_in(seen, monkeypatch, options, variable, on):
    monkeypatch.setenv(cli.PATHS, variable)
    assert CliRunner().invoke(cli.main, options).exit_code == 0
    monkeypatch.setattr(web_paths.st, "get_option", lambda name: seen["--server.address"])
    assert web_paths.is_on() == on


def test_uploads_and_hubs_are_switched_off_for_a_class(seen, monkeypatch):
    assert CliRunner().invoke(cli.main, []).exit_code == 0
    assert web_uploads.is_on()
    assert web_hub.is_on()
    assert "--server.maxUploadSize" not in seen
    monkeypatch.setenv(cli.UPLOAD_LIMIT, str(5 * 2**20 + 1))
    assert CliRunner().invoke(cli.main, []).exit_code == 0
    assert seen["--server.maxUploadSize"] == "6"
    assert CliRunner().invoke(cli.main, ["--no-upload", "--no-hub"]).exit_code == 0
    assert not web_uploads.is_on()
    assert not web_hub.is_on()
    assert seen["--server.maxUploadSize"] == "1"


def test_names_and_memory_are_told_to_the_app(seen, monkeypatch):
    for name in (cli.HOSTS, cli.MEMORY):
        monkeypatch.setenv(name, "")  # undone when the test is over
    assert CliRunner().invoke(cli.main, []).exit_code == 0
    assert (web_gate.names(), web_cache.limit()) == ([], web_cache.USUAL)
    options = ["--allow-host", "viz.example.org", "--allow-host", "*.school.example", "--memory", "1000"]
    assert CliRunner().invoke(cli.main, options).exit_code == 0
    assert web_gate.names() == ["viz.example.org", "*.school.example"]
    assert web_cache.limit() == 1000 * 2**20
    assert CliRunner().invoke(cli.main, ["--memory", "1"]).exit_code == 2


def test_who_may_frame_the_app_is_told_to_it(seen, monkeypatch):
    for name in (cli.HOSTS, cli.FRAMES):
        monkeypatch.setenv(name, "")  # undone when the test is over
    assert CliRunner().invoke(cli.main, ["--allow-frame", "https://a.example"]).exit_code == 0
    assert os.environ[cli.FRAMES] == "https://a.example"
    for wrong in ("a.example", "https://a.example/page", "*", "https://a; script-src *"):
        refused = CliRunner().invoke(cli.main, ["--allow-frame", wrong])
        assert refused.exit_code == 1
        assert "is no origin" in refused.output


def test_the_device_is_looked_for_before_anybody_waits_for_a_page(seen, monkeypatch):
    monkeypatch.setenv(cli.DEVICE, "")  # undone when the test is over
    result = CliRunner().invoke(cli.main, ["--device", "cuda:77"])
    assert result.exit_code == 1
    assert "There is no device cuda:77 here" in result.output
    assert not seen
    with pretend_device.device() as device:
        assert CliRunner().invoke(cli.main, ["--device", str(device)]).exit_code == 0
    assert torch_setup.device() == str(device)
    monkeypatch.setenv(cli.DEVICE, "cuda:77")
    assert CliRunner().invoke(cli.main, []).exit_code == 1
    assert CliRunner().invoke(cli.main, ["--device", "cpu"]).exit_code == 0
    assert torch_setup.device() == "cpu"


def test_inspect_says_what_loading_takes():
    result = CliRunner().invoke(cli.main, ["inspect", "stories"])
    assert result.exit_code == 0
    for line in ("Memory", "stays mapped to the file", ": float32 ", ", bfloat16 "):
        assert line in result.output


def test_the_names_of_the_variables_are_those_that_the_app_reads():
    assert torch_setup.VARIABLE == cli.DEVICE
    assert (cli.UPLOADS, cli.UPLOAD_LIMIT, cli.HUB) == (web_uploads.SWITCH, web_uploads.LIMIT, web_hub.SWITCH)
    assert web_paths.SWITCH == cli.PATHS
    assert (web_gate.HOSTS, web_cache.VARIABLE) == (cli.HOSTS, cli.MEMORY)
    assert workers.MEMORY == cli.MEMORY


def test_an_upload_of_the_usual_limit_passes_the_server():
    written = tomllib.loads((Path(__file__).parents[1] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert written["server"]["maxUploadSize"] * 2**20 == web_uploads.limit()

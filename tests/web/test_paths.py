"""Models opened by their path: what is understood, what is refused, and that only this computer's browsers may."""

import os
import shutil
import socket

import pytest
import streamlit as st

from tests.refs import ref, stamped
from vizformer.errors import CheckpointError
from vizformer.web.catalogue import local_paths, recents, sources

HERE = {"Host": "localhost:8501", "Origin": "http://localhost:8501", "User-Agent": "x"}


@pytest.fixture
def visit(monkeypatch, tmp_path):
    """A server that lets its own computer open paths, and `visit(address, headers)`: who is connected."""

    def visit(address=None, headers=HERE):
        monkeypatch.setattr(local_paths, "_visitor", lambda: (address, headers))

    monkeypatch.setenv(local_paths.SWITCH, "on")
    monkeypatch.setenv(recents.VARIABLE, str(tmp_path / "state"))
    monkeypatch.setattr(local_paths, "_KNOWN", {})
    monkeypatch.setattr(recents, "_STORE", recents._Store())
    visit()
    return visit


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "two cats"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def far(headers=(), address=None, **changed):
    return address, {**HERE, **dict(headers), **{name.capitalize(): value for name, value in changed.items()}}


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        (None, HERE),
        ("127.0.0.2", HERE),
        ("::ffff:127.0.0.1", HERE),
        far(host="127.0.0.1:8501", origin="http://127.0.0.1:8501"),
        far(host="[::1]:8501", origin="http://[::1]:8501"),
        far(host="LOCALHOST", origin="http://localhost"),
        far(host="vizformer.localhost:80", origin="https://vizformer.localhost:80"),
    ],
)
def test_a_browser_on_this_computer_may(visit, address, headers):
    visit(address, headers)
    assert local_paths.allowed()


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", HERE),
        ("2001:db8::7", HERE),
        ("nonsense", HERE),
        far({"X-Forwarded-For": "127.0.0.1"}),
        far({"x-forwarded-proto": "https"}),
        far(forwarded="for=127.0.0.1"),
        far(via="1.1 proxy"),
        far({"X-Real-Ip": "127.0.0.1"}),
        far({"CF-Connecting-IP": "127.0.0.1"}),
        far(host="evil.example:8501", origin="http://evil.example:8501"),  # its name was pointed at 127.0.0.1
        far(host="localhost.evil.example", origin="http://localhost.evil.example"),
        far(host="192.168.1.5:8501", origin="http://192.168.1.5:8501"),
        far(origin="http://evil.example"),
        far(origin="http://localhost:3000"),  # another program's page
        far(origin="null"),
        far(host="[::1", origin="http://[::1"),
        (None, {"Host": "localhost:8501"}),
        (None, {}),
    ],
)
def test_others_may_not(visit, model, address, headers):
    known = local_paths.add(str(model))
    visit(address, headers)
    assert not local_paths.allowed()
    with pytest.raises(CheckpointError, match="only in a browser on the computer that runs VizFormer"):
        local_paths.add(str(model))
    unknown = "path/0123456789ab"
    assert not sources.is_there(ref(known))
    assert stamped(known) == known
    assert "cats" not in sources.title(ref(known))
    said = []
    for name in (known, unknown):
        with pytest.raises(CheckpointError) as caught:
            sources.folder(ref(name))
        said.append(str(caught.value))
    assert said[0] == said[1]  # nobody learns here which names are known


@pytest.mark.parametrize(
    ("switch", "address"), [(None, "127.0.0.1"), ("off", "127.0.0.1"), ("on", "0.0.0.0"), ("on", None)]
)
def test_a_server_that_others_reach_or_that_was_not_told_opens_none(visit, model, monkeypatch, switch, address):
    known = local_paths.add(str(model))
    if switch is None:
        monkeypatch.delenv(local_paths.SWITCH)
    else:
        monkeypatch.setenv(local_paths.SWITCH, switch)
    monkeypatch.setattr(st, "get_option", lambda name: address)
    monkeypatch.setattr(recents, "_file", lambda: pytest.fail("the person's list was looked for"))
    assert not local_paths.allowed()
    assert not sources.is_there(ref(known))
    assert not sources.is_there(ref("path/0123456789ab"))
    assert sources.title(ref(known)) == f"path · {known.name[:4]}"
    for name in (known, "path/0123456789ab"):
        with pytest.raises(CheckpointError, match="--no-path"):
            sources.folder(ref(name))


def test_who_is_not_in_a_session_may_not(monkeypatch):
    monkeypatch.setenv(local_paths.SWITCH, "on")
    assert local_paths.is_on()
    assert not local_paths.allowed()


@pytest.mark.parametrize(
    "typed",
    [
        "{}",
        "  {}\n",
        "{}/",
        "{}/../two cats",
        "'{}'",
        '"{}"',
        "“{}”",
        "file://{}",
        "'file://{}'",
        "file://localhost{}",
        "FILE:{}",
    ],
)
def test_a_path_as_people_write_it(visit, model, typed):
    text = typed.format(str(model))
    name = local_paths.add(text)
    assert ref(str(name)) == name
    assert sources.folder(ref(name)) == model
    assert sources.title(ref(name)) == sources.title(ref(stamped(name))) == "two cats"
    assert local_paths.add(str(model)) == name


def test_a_path_in_the_home_and_one_with_escapes(visit, model, monkeypatch):
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(model.parent))
    assert sources.folder(ref(local_paths.add("~/two cats"))) == model
    assert sources.folder(local_paths.add(model.as_uri())) == model
    assert "%20" in model.as_uri()


def test_a_name_tells_nothing_of_the_path_and_is_the_same_tomorrow(visit, model, monkeypatch, tmp_path):
    name = local_paths.add(str(model))
    recents.note(recents.Recent("path", str(model)))
    monkeypatch.setattr(local_paths, "_KNOWN", {})
    monkeypatch.setattr(recents, "_STORE", recents._Store())
    assert sources.folder(ref(name)) == model  # the server has been started again
    assert local_paths.add(str(model)) == name
    monkeypatch.setenv(recents.VARIABLE, str(tmp_path / "another person's"))
    assert local_paths.add(str(model)) != name


def test_a_file_of_weights_and_assumptions(visit, tmp_path):
    file = tmp_path / "nano.pt"
    file.write_bytes(b"x")
    name = local_paths.add(str(file))
    assert sources.title(ref(name)) == "nano.pt"
    assert sources.folder(ref(f"{name};n_heads=4")) == file
    key = stamped(f"{name};n_heads=4")
    assert key.stamp
    assert sources.folder(ref(key)) == file
    file.write_bytes(b"xy")
    with pytest.raises(CheckpointError, match=r"files of nano\.pt have changed"):
        sources.folder(ref(key))


def test_what_goes_away_is_said_without_its_path(visit, model):
    name = local_paths.add(str(model))
    shutil.rmtree(model)
    assert not sources.is_there(ref(name))
    with pytest.raises(CheckpointError, match=r"two cats cannot be opened any more\. There is nothing") as caught:
        sources.folder(ref(name))
    assert str(model.parent) not in str(caught.value)
    with pytest.raises(CheckpointError, match=r"does not know on this computer.*Open the model by its path"):
        sources.folder(ref("path/0123456789ab"))


def pipe(at):
    os.mkfifo(at)


def connection(at):
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.getcwd()
        os.chdir(at.parent)  # such an address may have a hundred characters
        try:
            listening.bind(at.name)
        finally:
            os.chdir(before)


def crowd(at):
    at.mkdir()
    (at / "config.json").write_text("{}")
    for number in range(local_paths.MOST):
        (at / f"{number}.safetensors").touch()


def parent(at):
    (at / "tiny").mkdir(parents=True)
    (at / "tiny" / "config.json").write_text("{}")


LAID = {
    "pipe.pt": (pipe, "neither a folder nor a file"),
    "socket.pt": (connection, "neither a folder nor a file"),
    "empty": (lambda at: at.mkdir(), "no model in this folder"),
    "parent": (parent, "Subfolders are not looked into"),
    "training": (lambda at: (at / "checkpoint-500").mkdir(parents=True), "training: checkpoint-500. Give one of these"),
    "crowd": (crowd, "more than 1000 files"),
    "notes.txt": (lambda at: at.write_text("x"), "not a file of weights"),
    "nowhere": (lambda at: at.symlink_to(at.parent / "nothing"), "nothing at this path"),
    "loop": (lambda at: at.symlink_to(at), "cannot be read"),
}


@pytest.mark.parametrize("kind", LAID)
def test_what_is_no_model_is_refused_without_being_opened(visit, tmp_path, monkeypatch, kind):
    make, words = LAID[kind]
    try:
        make(tmp_path / kind)
    except (OSError, AttributeError):
        pytest.skip("this system has none")
    monkeypatch.setattr("builtins.open", lambda *_, **__: pytest.fail("it was opened"))
    monkeypatch.setattr(os, "walk", lambda *_, **__: pytest.fail("it was walked through"))
    monkeypatch.setattr(recents, "token", lambda path: pytest.fail("it was taken"))
    with pytest.raises(CheckpointError, match=words) as caught:
        local_paths.add(str(tmp_path / kind))
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Type the path"),
        (" \n", "Type the path"),
        ("''", "Type the path"),
        ("models", "whole path"),
        ("../models", "whole path"),
        ("owner/name", "whole path"),
        ("~nobody-of-that-name/x", "whole path"),
        ("file://elsewhere/x", "whole path"),
        ("file:", "whole path"),
        ("https://x.example/y", "whole path"),
        ("/a\0b", "no path"),
        ("/a\nb", "no path"),
        ("/a%00b", "nothing"),
        ("file:///a%00b", "whole path"),
        ("/" + "a" * 100_000, "no path"),
        ("x" * 100_000, "no path"),
        ("/" + "a" * 300, "cannot be read|nothing"),
        ("/no/such/path", "nothing"),
        ("/dev/zero", "neither|nothing"),
        ("/dev/null/x", "nothing"),
    ],
)
def test_what_is_no_path_is_refused(visit, typed, words):
    with pytest.raises(CheckpointError, match=words):
        local_paths.add(typed)


def test_the_root_is_no_model(visit):
    with pytest.raises(CheckpointError, match=r"no model|may not read"):
        local_paths.add(os.path.abspath(os.sep))


def test_what_may_not_be_read_is_said(visit, model, monkeypatch):
    name = local_paths.add(str(model))
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CheckpointError, match="may not read"):
        local_paths.add(str(model))
    assert not sources.is_there(ref(name))


def test_a_folder_that_is_large_is_not_listed_to_its_end(visit, model, monkeypatch):
    seen = []

    class Endless:
        def __enter__(self):
            return iter(lambda: seen.append(None) or next(entries), None)

        def __exit__(self, *_):
            return None

    with os.scandir(model) as listed:
        (entry,) = listed
    entries = iter(lambda: entry, None)
    monkeypatch.setattr(os, "scandir", lambda path: Endless())
    with pytest.raises(CheckpointError, match="more than 1000"):
        local_paths.add(str(model))
    assert len(seen) == local_paths.MOST + 1

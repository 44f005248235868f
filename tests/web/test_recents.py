"""The list of what was opened last: it survives, and nothing that is wrong with its file is an error."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from vizformer.web.catalogue import recents
from vizformer.web.catalogue.recents import Recent

A, B = Recent("path", "/models/a"), Recent("hub", "owner/name")


def again(monkeypatch):
    """As after a restart."""
    monkeypatch.setattr(recents, "_STORE", recents._Store())


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv(recents.VARIABLE, str(tmp_path / "deep" / "state"))
    again(monkeypatch)
    return tmp_path / "deep" / "state" / "opened.json"


def test_it_survives_a_restart_last_first(file, monkeypatch):
    assert recents.opened() == ()
    for recent in (A, B, A, Recent("path", "/models/a", ";n_heads=4")):
        recents.note(recent)
    token = recents.token(Path("/models/a"))
    again(monkeypatch)
    assert recents.opened() == (Recent("path", "/models/a", ";n_heads=4"), B)
    assert recents.token(Path("/models/a")) == token
    assert len(token) == 12
    assert set(token) <= set("0123456789abcdef")
    assert recents.token(Path("/models/b")) != token


def test_it_is_for_this_account_and_leaves_nothing_beside_it(file):
    for number in range(30):
        recents.note(Recent("path", f"/models/{number}"))
    assert [recent.name for recent in recents.opened()] == [f"/models/{n}" for n in range(29, 29 - recents.MOST, -1)]
    assert os.listdir(file.parent) == [file.name]
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_looking_again_writes_nothing(file, monkeypatch):
    recents.note(A)
    monkeypatch.setattr(recents._Store, "write", lambda *_: pytest.fail("it was written"))
    recents.note(A)


def test_it_is_forgotten_with_its_key(file, monkeypatch):
    recents.note(A)
    token = recents.token(Path(A.name))
    recents.forget()
    assert recents.opened() == ()
    assert not file.exists()
    recents.forget()
    assert recents.token(Path(A.name)) != token


KEY = "00" * 16
DAMAGED = [
    b"",
    b"\xff\xfe",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"[" * 100_000,
    b'{"key": 1, "opened": {"a": 1}}',
    b"x" * 2**19,
    b'{"opened": [null, 1, "x", [], {}, {"place": "path"}, {"place": "upload", "name": "/x"}]}',
    json.dumps(
        {"opened": [{"place": "path", "name": name} for name in ("x", "../x", "/x\0", "/" + "x" * 9999, 5)]}
    ).encode(),
    b'{"opened": [{"place": "path", "name": "/x\\ud800"}, {"place": ["path"], "name": "/x"}]}',
    b'{"opened": [{"place": "path", "name": "/x", "answers": 4}]}',
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_an_empty_list(file, content):
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert recents.opened() == ()
    recents.note(A)
    assert recents.opened() == (A,)
    assert json.loads(file.read_text())["opened"]


def test_what_is_sound_in_a_file_is_kept(file):
    file.parent.mkdir(parents=True)
    entries = [{"place": "path", "name": "/models/a"}, 5, {"place": "hub", "name": "owner/name", "more": 1}]
    file.write_text(json.dumps({"key": KEY, "opened": entries * 10, "later": 1}))
    assert recents.opened() == (A, B)
    file.write_text(json.dumps({"key": "no key", "opened": entries}))
    assert recents.opened() == (A, B)
    assert len(recents.token(Path("/x"))) == 12


@pytest.mark.parametrize("kind", ["pipe", "folder", "under a file"])
def test_where_nothing_can_be_written_the_list_lasts_as_long_as_the_server(file, monkeypatch, kind):
    file.parent.parent.mkdir()
    if kind == "under a file":
        file.parent.write_text("a file where the folder should be")
    elif kind == "folder":
        (file / "x").mkdir(parents=True)
    else:
        if not hasattr(os, "mkfifo"):
            pytest.skip("this system has none")
        file.parent.mkdir()
        os.mkfifo(file)
        assert recents.opened() == ()  # nobody writes into it: reading would wait for ever
        return
    token = recents.token(Path("/models/a"))
    recents.note(A)
    assert recents.opened() == (A,)
    assert recents.token(Path("/models/a")) == token
    recents.forget()
    assert recents.opened() == ()


def test_a_home_that_can_be_read_only(file, monkeypatch):
    recents.note(A)
    monkeypatch.setattr(recents.tempfile, "mkstemp", lambda **_: (_ for _ in ()).throw(PermissionError()))
    recents.note(B)
    assert recents.opened() == (B, A)
    again(monkeypatch)
    assert recents.opened() == (A,)


def test_threads_lose_nothing(file):
    def work(number):
        for turn in range(5):
            recents.note(Recent("path", f"/{number}"))
            recents.token(Path(f"/{turn}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {recent.name for recent in recents.opened()} == {f"/{number}" for number in range(8)}


def test_where_it_is(monkeypatch, tmp_path):
    for variable in (recents.VARIABLE, "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = {}
    for platform in ("linux", "darwin", "win32"):
        monkeypatch.setattr(recents.sys, "platform", platform)
        found[platform] = recents._file()
    monkeypatch.setattr(recents.sys, "platform", "linux")
    assert found == {
        "linux": tmp_path / ".local/state/vizformer/opened.json",
        "darwin": tmp_path / "Library/Application Support/vizformer/opened.json",
        "win32": tmp_path / "AppData/Local/vizformer/opened.json",
    }
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # which the specification says to ignore
    assert recents._file() == found["linux"]
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert recents._file() == tmp_path / "xdg/vizformer/opened.json"
    monkeypatch.setenv(recents.VARIABLE, str(tmp_path / "own"))
    assert recents._file() == tmp_path / "own/opened.json"


def test_an_account_without_a_home(monkeypatch):
    monkeypatch.delenv(recents.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError()))
    again(monkeypatch)
    recents.note(A)
    assert recents.opened() == (A,)


def test_the_tests_leave_the_home_alone():
    """Set for the whole run in tests/conftest.py; servers that tests start inherit it."""
    assert recents._file().is_relative_to(os.environ[recents.VARIABLE])
    assert not recents._file().is_relative_to(Path.home())

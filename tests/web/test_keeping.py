"""What a session put up goes soon after it ended, whether anybody visits or not; nothing of a killed server stays."""

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from streamlit.runtime import Runtime

from vizformer.web.catalogue import session_folders, uploads
from vizformer.web.frame import server

FILES = [("config.json", io.BytesIO(b"{}"))]


class Visits:
    """Sessions that come and go, at times that the test sets."""

    def __init__(self):
        self.now, self.there = 0.0, set()
        self.watch = session_folders.Watch(self.there.__contains__, lambda: self.now)

    def put_up(self, session):
        self.there.add(session)
        kept = uploads.Kept(session, self.watch)
        kept.add(FILES, 1000)
        return kept

    def wait(self, seconds):
        """As the server spends them: with a look every now and then."""
        until = self.now + seconds
        while self.now < until:
            self.now += session_folders.PERIOD
            self.watch.look()


def test_files_go_after_the_session_and_only_those():
    visits = Visits()
    ours, others = visits.put_up("ours"), visits.put_up("others")
    visits.wait(10_000)
    assert ours.root.exists()
    visits.there.remove("ours")
    visits.wait(120)  # so long its tab may come back
    assert list(ours.root.rglob("*.json"))
    visits.wait(session_folders.GRACE - 120 + 2 * session_folders.PERIOD)
    assert not ours.root.exists()
    assert not ours.remove.alive
    assert list(others.root.rglob("*.json"))
    others.remove()


def test_a_tab_that_comes_back_keeps_them():
    visits = Visits()
    kept = visits.put_up("ours")
    for _ in range(5):
        visits.there.remove("ours")
        visits.wait(session_folders.GRACE - session_folders.PERIOD)
        visits.there.add("ours")
        visits.wait(session_folders.PERIOD)
    assert kept.root.exists()
    kept.remove()


def test_what_was_removed_otherwise_is_forgotten():
    visits = Visits()
    visits.put_up("ours").remove()
    visits.wait(session_folders.PERIOD)
    assert visits.watch._seen == {}


def test_the_server_is_asked_who_is_there(monkeypatch):
    assert session_folders.is_connected("anybody")  # nobody serves: a script, a test

    class Serving:
        @staticmethod
        def is_active_session(session):
            return session == "here"

    monkeypatch.setattr(Runtime, "_instance", Serving())
    assert session_folders.is_connected("here")
    assert not session_folders.is_connected("gone")


def test_a_session_whose_files_are_gone_begins_anew(monkeypatch):
    state = {}
    monkeypatch.setattr(uploads.st, "session_state", state)
    first = uploads.add(FILES)
    assert uploads.listed() == (first,)
    assert uploads.locate(first).is_dir()
    state[uploads._MINE].remove()
    assert uploads.listed() == ()
    assert uploads.locate(first) is None
    second = uploads.add(FILES)
    assert uploads.listed() == (second,)
    state[uploads._MINE].remove()


def test_the_server_looks_while_it_runs_and_leaves_no_file_thread_or_task(monkeypatch):
    waited, looked = [], []

    class Watch:
        def look(self):
            looked.append(threading.current_thread())
            if len(looked) == 1:
                raise OSError("one bad moment")

    async def sleep(seconds):
        waited.append(seconds)
        if len(waited) > 3:
            await asyncio.Event().wait()  # for ever

    original = session_folders.attend
    monkeypatch.setattr(session_folders, "attend", lambda: original(Watch(), sleep))
    monkeypatch.setattr(session_folders, "remove_left_behind", lambda: None)

    async def serve():
        async with server.lifespan(None):
            kept = uploads.Kept("ours", session_folders.Watch())
            while len(waited) < 4:
                await asyncio.sleep(0)
            assert kept.root.exists()
        assert not kept.root.parent.exists()  # not left to the end of the process: a signal may be that
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    before = threading.active_count()
    asyncio.run(serve())
    assert waited == [session_folders.PERIOD] * 4
    assert len(looked) == 3  # also after the one that failed
    assert threading.main_thread() not in looked  # which serves the visitors
    assert threading.active_count() == before


SERVER = """
import io, os, signal, sys
from vizformer.web.catalogue import uploads
kept = uploads.Kept()
kept.add([('config.json', io.BytesIO(b'{}'))], 1000)
print(kept.root, flush=True)
sys.stdin.read()
"""


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
def test_what_a_killed_server_left_goes_at_the_next_start_and_nothing_of_one_that_lives(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    killed, lives = (Path(process.stdout.readline().strip()) for process in started)
    try:
        for root in (killed, lives):
            assert root.parent.parent == tmp_path
            assert list(root.rglob("config.json"))
        started[0].send_signal(signal.SIGKILL)
        started[0].wait()
        assert list(killed.rglob("config.json"))  # nobody was there to remove it
        (tmp_path / "vizformer-visitors-link").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "vizformer-visitors-file").write_text("x")
        (tmp_path / "vizformer-other").mkdir()
        session_folders.remove_left_behind(tmp_path.glob("vizformer-visitors-*"))
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
            [lives.parent.name, "vizformer-visitors-link", "vizformer-visitors-file", "vizformer-other"]
        )
        assert list(lives.rglob("config.json"))
    finally:
        for process in started:
            process.stdin.close()
            process.wait()
            process.stdout.close()
    assert not lives.parent.exists()  # it ended by itself


def test_what_a_server_has_one_of_is_made_once_and_closed_before_the_folders_go(monkeypatch):
    endings, closed = [], []
    monkeypatch.setattr(session_folders, "before_the_end", endings.append)
    one = session_folders.OfTheServer(object, closed.append)
    first = one()
    assert one() is first
    (end,) = endings
    end()
    assert closed == [first]
    assert one() is not first  # a page that was still running

"""`vizformer --workers N`: one port, a browser stays on its worker, and a worker may fail."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.cookies import SimpleCookie
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.browser.driver import Server
from tests.reader import Reader, elements
from vizformer import cli
from vizformer.serving import CLIENT, ONE_OF, one_of, workers
from vizformer.web.catalogue import trainings

SENTENCE = "我有一只猫。"


def found():
    try:
        return workers.find()
    except click.ClickException:
        return None


needs_haproxy = pytest.mark.skipif(
    not found() or not Path("/proc/self").exists(),
    reason="there is no HAProxy (make install brings one on Linux), or no /proc",
)


# --- what workers are told --------------------------------------------------------------------------------------------


def test_one_worker_is_the_server_of_always(monkeypatch):
    from streamlit.web import cli as streamlit

    started = []
    monkeypatch.setattr(streamlit, "main", lambda args, **_: started.append(args[0]))
    monkeypatch.setattr(workers, "serve", lambda *_: started.append("workers"))
    for options in ([], ["--workers", "1"], ["--workers", "3"]):
        assert CliRunner().invoke(cli.main, ["--port", "8639", *options]).exit_code == 0
    assert started == ["run", "run", "workers"]
    assert CliRunner().invoke(cli.main, ["--workers", "0"]).exit_code == 2


def test_without_haproxy_nothing_is_started(monkeypatch):
    monkeypatch.setenv(workers.VARIABLE, "/nowhere/haproxy")
    result = CliRunner().invoke(cli.main, ["--port", "8639", "--workers", "2"])
    assert (result.exit_code, result.output) == (1, f"Error: {workers.VARIABLE}: /nowhere/haproxy is no program.\n")


def test_workers_share_the_memory_and_sign_alike(monkeypatch):
    monkeypatch.setenv(workers.MEMORY, str(1000))
    monkeypatch.delenv("STREAMLIT_SERVER_COOKIE_SECRET", raising=False)
    told = workers.environment(4)
    assert told[workers.MEMORY] == "250"
    assert told["STREAMLIT_SERVER_COOKIE_SECRET"] != workers.environment(4)["STREAMLIT_SERVER_COOKIE_SECRET"]
    assert all(told[name] for name in workers.THREADS)
    monkeypatch.delenv(workers.MEMORY)
    assert workers.MEMORY not in workers.environment(4)  # each keeps as much as a server does


@pytest.mark.skipif(sys.platform == "win32", reason="there are no workers")
@pytest.mark.parametrize("long", [False, True], ids=["a short name", "a name too long for sockets"])
def test_the_sockets_lie_where_others_cannot_reach_them_and_nothing_stays(monkeypatch, tmp_path, long):
    place = tmp_path / ("x" * 100 if long else "x")
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(workers, "LONGEST", 80 if long else 1000)
    with workers._folder() as folder, workers._folder() as other:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (len(str(folder)) <= 80) or not long
        assert (folder.parent == place) != long
        left = folder.with_name(f"{workers.PREFIX}killed")
        left.mkdir()
        (left / "1.socket").touch()
        with workers._folder():
            assert not left.exists()
            assert folder.exists()  # somebody has it
            assert other.exists()
    assert not folder.exists()
    assert not other.exists()


@pytest.mark.parametrize(("told", "n"), [("4", 4), ("1", 1), ("", 1), ("0", 1), ("-2", 1), ("x", 1), ("9" * 9, 1)])
def test_a_process_knows_how_many_they_are(monkeypatch, told, n):
    monkeypatch.setenv(ONE_OF, told)
    assert one_of() == n


def test_workers_share_the_cores_for_trainings(monkeypatch):
    monkeypatch.setattr(trainings.os, "cpu_count", lambda: 16)
    monkeypatch.setenv(ONE_OF, "4")
    assert trainings._make().at_once == 2


# --- a server with two workers ----------------------------------------------------------------------------------------


def children(process):
    """The processes that another one has started: their numbers and their commands."""
    seen = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            if int((place / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                seen[int(place.name)] = (place / "cmdline").read_bytes().decode().split("\0")
    return seen


def worker(server, number):
    """The process number of a worker."""
    [found] = [
        one
        for one, command in children(server.process.pid).items()
        if any(part.endswith(f"/{number}.socket") for part in command)
    ]
    return found


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait(for_what, seconds=120):
    end = time.monotonic() + seconds
    while not for_what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def started(tmp_path, *options):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = (sys.executable, "-m", "vizformer", "--workers", "2", *options)
    return Server(command, env=environment, log=tmp_path / "log")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with started(tmp_path_factory.mktemp("workers")) as running:
        yield running


class Visitor:
    """A browser: its cookies, and a session."""

    def __init__(self, server):
        self.server, self.cookies = server, {}
        self.get("/")
        self.get("/_stcore/health")  # with which Streamlit gives its own cookie

    @property
    def worker(self):
        return int(self.cookies[f"vizformer-{self.server.port}"])

    def header(self, **more):
        return "; ".join(f"{name}={value}" for name, value in {**self.cookies, **more}.items())

    def get(self, path):
        request = urllib.request.Request(self.server.url + path, headers={"Cookie": self.header()})
        with urllib.request.urlopen(request, timeout=60) as answer:
            for line in answer.headers.get_all("Set-Cookie", ()):
                self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
            return answer.status

    def put_up(self, session, cookie):
        """The status with which a file for a session is taken where the cookie leads."""
        token = self.cookies["_streamlit_xsrf"]
        request = urllib.request.Request(
            f"{self.server.url}/_stcore/upload_file/{session}/1",
            data=MULTIPART,
            method="PUT",
            headers={"Cookie": cookie, "X-Xsrftoken": token, "Content-Type": "multipart/form-data; boundary=x"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code


MULTIPART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\nnumbers\r\n--x--\r\n'


def shown(messages):
    """What a page says and draws."""
    return [
        element.SerializeToString()
        for kind in ("markdown", "heading", "plotly_chart", "alert")
        for element in elements(messages, kind)
    ]


@pytest.mark.sweep
@needs_haproxy
@pytest.mark.slow
def test_new_browsers_are_spread_and_stay_with_their_pages_and_uploads(server):
    visitors, readers = [], []
    try:
        for _ in range(4):
            visitors.append(Visitor(server))
            readers.append(Reader(server.port, Cookie=visitors[-1].header()))
            readers[-1].open("glossary")
        assert sorted(one.worker for one in visitors) == [1, 1, 2, 2]
        key = f"vizformer-{server.port}"
        for visitor, reader in zip(visitors, readers, strict=True):
            before = visitor.worker
            assert [visitor.get(path) for path in ("/", "/qkv", "/_stcore/health")] == [200, 200, 200]
            assert visitor.worker == before
            assert visitor.put_up(reader.session, visitor.header()) == 204
            assert visitor.put_up(reader.session, visitor.header(**{key: str(3 - before)})) == 400
    finally:
        for reader in readers:
            reader.close()


@needs_haproxy
@pytest.mark.slow
@pytest.mark.sweep
def test_all_workers_give_the_same_answer(server):
    pages = []
    for number in (1, 2):
        with Reader(server.port, Cookie=f"vizformer-{server.port}={number}") as reader:
            pages.append(shown(reader.open("layer", text=SENTENCE)))
    assert pages[0] == pages[1]
    assert pages[0]


@needs_haproxy
@pytest.mark.slow
def test_a_foreign_name_reaches_no_worker(server):
    request = urllib.request.Request(server.url, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 403
    assert "--allow-host" in refused.value.read().decode()


@needs_haproxy
@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "offered"),
    [({}, True), ({CLIENT: "192.0.2.7"}, True), ({"X-Forwarded-For": "127.0.0.1"}, False)],
    ids=["a browser here", "HAProxy's header is written over", "another proxy before ours"],
)
def test_paths_are_for_browsers_on_this_computer_as_without_workers(server, header, offered):
    with Reader(server.port, Origin=server.url, **header) as reader:
        boxes = [box.label for box in elements(reader.open("report"), "text_input")]
    assert ("Path on this computer" in boxes) == offered


@pytest.mark.sweep
@needs_haproxy
@pytest.mark.slow
def test_a_worker_that_dies_is_started_again_while_the_others_go_on(server):
    first, second = Visitor(server), Visitor(server)
    first.cookies[f"vizformer-{server.port}"], second.cookies[f"vizformer-{server.port}"] = "1", "2"
    dead, other = worker(server, 1), worker(server, 2)
    with Reader(server.port, Cookie=second.header()) as reader:
        reader.open("glossary")
        os.kill(dead, signal.SIGKILL)
        wait(lambda: not alive(dead))
        assert first.get("/_stcore/health") == 200  # another one answers, and it is that browser's from now on
        assert first.worker == 2
        assert elements(reader.open("glossary"), "heading")

        def back():
            first.cookies[f"vizformer-{server.port}"] = "1"
            return first.get("/_stcore/health") == 200 and first.worker == 1

        wait(back)
    assert worker(server, 1) != dead
    assert worker(server, 2) == other
    assert "worker 1 has ended (killed by signal 9)" in server.log.read_text()


@needs_haproxy
@pytest.mark.slow
def test_the_address_is_told_once_when_all_are_ready(server):
    said = server.log.read_text()
    assert said.count(f"VizFormer is running at http://localhost:{server.port}") == 1
    assert "2 workers" in said


@pytest.mark.sample(1)
@needs_haproxy
@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_leaves_no_process_and_a_free_port(tmp_path, sign):
    with started(tmp_path) as server:
        running = children(server.process.pid)
        assert len(running) == 3  # two workers and HAProxy
        server.process.send_signal(sign)
        assert server.process.wait(30) in (0, -sign)
        wait(lambda: not any(map(alive, running)), 30)
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(server.url, timeout=10)
        assert not list(tmp_path.glob("vizformer-visitors-*"))


@needs_haproxy
@pytest.mark.slow
@pytest.mark.sweep
def test_a_worker_that_cannot_start_is_an_error_with_its_words(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "STREAMLIT_SERVER_MAX_MESSAGE_SIZE": "much"}
    run = subprocess.run(
        [sys.executable, "-m", "vizformer", "--port", "8639", "--workers", "2"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 1
    assert "did not start (exit status" in run.stderr
    assert "'much' is not a valid" in run.stdout

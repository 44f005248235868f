"""Who asks under a name that is not the server's gets nothing, and what is put up has a bound."""

import asyncio
from types import SimpleNamespace

import pytest
from streamlit.runtime import Runtime

from vizformer.serving import CLIENT, ONE_OF
from vizformer.web.catalogue import uploads
from vizformer.web.frame import request_gate

MB = 2**20
FILE = "/_stcore/upload_file/ours/{}"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8501",
        "localhost.",
        "app.localhost:1",
        "127.0.0.1:8501",
        "[::1]:8501",
        "192.0.2.7:80",
        "[2001:db8::7]",
    ],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", None])
def test_addresses_and_localhost_are_this_server_wherever_it_listens(host, address):
    assert request_gate.is_ours(host, address)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8501",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "evil-localhost",
        "",
        None,
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost/evil",
        "localhost:x",
        "localhost:99999999",
        "[::1",
        "a" * 100_000,
        "locálhost",
        "localhost evil",
        "*",
        "127.0.0.1:8501:8501",
    ],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", None])
def test_other_names_are_not(host, address):
    assert not request_gate.is_ours(host, address)


def test_the_machines_own_name_counts_where_others_can_come_in(monkeypatch):
    request_gate._machine.cache_clear()
    monkeypatch.setattr(request_gate.socket, "gethostname", lambda: "Lab7.school.example")
    try:
        for name in ("lab7.school.example:8501", "LAB7.local"):
            assert request_gate.is_ours(name, "0.0.0.0")
            assert request_gate.is_ours(name, None)
            assert not request_gate.is_ours(name, "127.0.0.1")
    finally:
        request_gate._machine.cache_clear()
    assert request_gate.is_ours("some.lan:8501", "some.lan")


def test_names_that_the_server_was_told(monkeypatch):
    monkeypatch.setenv(request_gate.HOSTS, "viz.example.org, *.school.example")
    told = request_gate.names()
    for name in ("viz.example.org", "VIZ.example.org:443", "a.school.example"):
        assert request_gate.is_ours(name, "127.0.0.1", told)
    for name in ("example.org", "school.example", "evilschool.example"):
        assert not request_gate.is_ours(name, "127.0.0.1", told)
    assert request_gate.is_ours("anything.example", "127.0.0.1", ["*"])


# --- what passes ------------------------------------------------------------------------------------------------------


def ask(kind="http", host="localhost", path="/", method="GET", length=None, gate_=None):
    """What the gate answers, or "passed"."""
    sent = []

    async def app(scope, receive, send):
        sent.append("passed")

    async def send(message):
        sent.append(message)

    headers = [(b"host", host.encode()), *([(b"content-length", str(length).encode())] if length is not None else [])]
    scope = {"type": kind, "path": path, "method": method, "headers": headers}
    asyncio.run((gate_ or request_gate.Gate(app))(scope, None, send))
    return sent


@pytest.mark.parametrize("path", ["/", "/qkv", "/_stcore/health", "/static/index.js", "/media/x"])
def test_a_rebound_name_gets_nothing(path):
    assert ask(path=path) == ["passed"]
    start, body = ask(path=path, host="evil.example")
    assert start["status"] == 403
    said = body["body"].decode()
    assert "--allow-host" in said
    assert "evil.example" in said
    assert "服务器" in said


def test_nor_a_websocket():
    assert ask("websocket", path="/_stcore/stream") == ["passed"]
    assert ask("websocket", path="/_stcore/stream", host="evil.example")[0]["type"] == "websocket.close"


# --- a worker ---------------------------------------------------------------------------------------------------------


def passed_on(client, *headers):
    """What the app sees of a request: the address of who asks, and the headers."""
    seen = {}

    async def app(scope, receive, send):
        seen.update(scope)

    given = [(b"host", b"localhost:8639"), *((name.encode(), value.encode()) for name, value in headers)]
    scope = {"type": "websocket", "path": "/_stcore/stream", "headers": given, "client": client}
    asyncio.run(request_gate.Gate(app)(scope, None, None))
    return seen["client"], {name.decode(): value.decode() for name, value in seen["headers"]}


def test_a_worker_knows_its_visitors_by_what_haproxy_says(monkeypatch):
    monkeypatch.setenv(ONE_OF, "4")
    client, headers = passed_on(None, (CLIENT, "192.0.2.7"), ("x-forwarded-for", "127.0.0.1"))
    assert client == ("192.0.2.7", 0)
    assert headers["x-forwarded-for"] == "127.0.0.1"  # left for those who ask whether another proxy stands before
    assert CLIENT not in headers
    assert passed_on(None, (CLIENT, "2001:db8::7"))[0] == ("2001:db8::7", 0)
    assert passed_on(None)[0] is None


@pytest.mark.parametrize("one_of", ["", "1"])
def test_a_server_by_itself_believes_no_header(monkeypatch, one_of):
    monkeypatch.setenv(ONE_OF, one_of)
    told = [(CLIENT, "127.0.0.1"), ("x-forwarded-for", "127.0.0.1")]
    assert passed_on(("192.0.2.7", 5000), *told)[0] == ("192.0.2.7", 5000)


# --- what is put up ---------------------------------------------------------------------------------------------------


class Stored:
    """Stands for Streamlit's list of uploads."""

    def __init__(self):
        self.file_storage = {}

    def add(self, session, file, length):
        self.file_storage.setdefault(session, {})[file] = SimpleNamespace(data=bytes(length))

    def remove_file(self, session, file):
        del self.file_storage[session][file]


@pytest.fixture
def stored(monkeypatch):
    found = Stored()
    monkeypatch.setattr(Runtime, "_instance", SimpleNamespace(uploaded_file_mgr=found))
    monkeypatch.setenv(uploads.LIMIT, str(10 * MB))
    return found


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("base", ["", "/base"])
def test_without_uploads_nothing_is_taken(monkeypatch, stored, method, base):
    path = base + FILE.format(1)
    assert ask(path=path, method=method, length=100) == ["passed"]
    monkeypatch.setenv(uploads.SWITCH, "off")
    assert ask(path=path, method=method, length=100)[0]["status"] == 403
    assert ask(path=path, method="OPTIONS") == ["passed"]
    assert ask(path=path, method="DELETE") == ["passed"]


@pytest.mark.parametrize(("length", "status"), [(None, 411), (12 * MB, 413), ("9" * 5000, 411), (-1, 411)])
def test_a_file_is_as_large_as_it_says_and_not_too_large(stored, length, status):
    assert ask(path=FILE.format(1), method="PUT", length=length)[0]["status"] == status


def test_all_that_lies_in_memory_is_bounded(stored):
    for number in range(10):
        assert ask(path=FILE.format(number), method="PUT", length=MB) == ["passed"]
        stored.add(f"session {number % 3}", str(number), MB)
    assert ask(path=FILE.format("more"), method="PUT", length=2 * MB)[0]["status"] == 503
    stored.remove_file("session 0", "0")
    assert ask(path=FILE.format("more"), method="PUT", length=2 * MB) == ["passed"]


def test_many_small_files_are_bounded_too(stored):
    for number in range(1000):
        stored.add("ours", str(number), 1)
    assert ask(path=FILE.format("more"), method="PUT", length=1)[0]["status"] == 503


def test_what_is_on_its_way_counts(stored):
    answers = []

    async def app(scope, receive, send):
        async def inner(message):
            answers.append(message.get("status"))

        other = {**scope, "path": FILE.format("other")}
        await gate_(other, receive, inner) if "other" not in scope["path"] else answers.append("passed")

    gate_ = request_gate.Gate(app, request_gate.Arrivals())
    ask(path=FILE.format(1), method="PUT", length=6 * MB, gate_=gate_)
    assert answers == [503, None]
    ask(path=FILE.format(1), method="PUT", length=5 * MB, gate_=gate_)  # the room was given back
    assert answers[2:] == ["passed"]


def test_one_session_keeps_the_room_from_others_for_a_minute_at_most(stored):
    now = [0.0]
    arrivals = request_gate.Arrivals(lambda: now[0])
    for number in range(10):
        stored.add("ours", str(number), MB)
    arrivals.look()
    now[0] = request_gate.UNCLAIMED_WHERE_FULL - 1
    assert arrivals.refuses("theirs", 2 * MB)[0] == 503
    now[0] = request_gate.UNCLAIMED_WHERE_FULL + 1
    assert arrivals.refuses("ours", 2 * MB)[0] == 503  # nobody makes room for more of the same session
    assert len(stored.file_storage["ours"]) == 10
    assert arrivals.refuses("theirs", 2 * MB) is None
    assert len(stored.file_storage["ours"]) == 9  # (a form around a file has room of its own)


def test_what_nobody_asks_for_is_dropped(stored):
    now = [0.0]
    arrivals = request_gate.Arrivals(lambda: now[0])
    stored.add("ours", "old", 10)
    arrivals.look()
    now[0] = request_gate.UNCLAIMED - 1
    stored.add("ours", "new", 10)
    arrivals.look()
    now[0] = request_gate.UNCLAIMED + 1
    ticket = arrivals.begin("ours", 10)  # another file of the same upload is still coming
    arrivals.look()
    assert set(stored.file_storage["ours"]) == {"old", "new"}
    arrivals.end(ticket)
    now[0] += request_gate.UNCLAIMED - 1
    arrivals.look()
    assert set(stored.file_storage["ours"]) == {"old", "new"}
    now[0] += 2
    arrivals.look()
    assert stored.file_storage["ours"] == {}

"""Who asks under a name that is not the server's gets nothing, and what is put up has a bound."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from streamlit.runtime import Runtime

from vizformer.serving import CLIENT, FRAMES, ONE_OF
from vizformer.web.catalogue import uploads
from vizformer.web.frame import arrivals, inline_scripts, request_gate
from vizformer.web.frame.arrivals import Arrivals

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


def ask(kind="http", host="localhost", path="/", method="GET", length=None, gate_=None, origin=None):
    """What the gate answers, or "passed"."""
    sent = []

    async def app(scope, receive, send):
        sent.append("passed")

    async def send(message):
        sent.append(message)

    told = {"host": host, "content-length": length, "origin": origin}
    headers = [(name.encode(), str(value).encode()) for name, value in told.items() if value is not None]
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


# --- what every answer says to the browser ----------------------------------------------------------------------------

HEADERS = ("content-security-policy", "x-content-type-options", "referrer-policy", "x-frame-options")


def headers_of(start):
    return {name.decode().lower(): value.decode() for name, value in start["headers"]}


def answered(app, path="/", host="localhost", **more):
    """The start of what the gate sends where `app` answers."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": path, "method": "GET", "headers": [(b"host", host.encode())], **more}
    with contextlib.suppress(ZeroDivisionError):
        asyncio.run(request_gate.Gate(app)(scope, None, send))
    return sent[0]


async def plain(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"X-Frame-Options", b"ALLOWALL")]})


async def broken(scope, receive, send):
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("app", "more", "status"),
    [
        (plain, {}, 200),
        (plain, {"host": "evil.example"}, 403),
        (plain, {"path": FILE.format(1), "method": "PUT"}, 411),
        (broken, {}, 500),
    ],
    ids=["an answer", "another name", "an upload", "a mistake of ours"],
)
def test_every_answer_has_the_headers(app, more, status):
    start = answered(app, **more)
    found = headers_of(start)
    assert start["status"] == status
    assert set(HEADERS) <= found.keys()
    assert found["x-frame-options"] == "DENY"
    assert len([name for name, _ in start["headers"] if name.lower() == b"x-frame-options"]) == 1


def test_the_policy_names_each_script_that_may_stand_in_a_page():
    policy = dict(
        part.strip().split(" ", 1) for part in headers_of(answered(plain))["content-security-policy"].split(";")
    )
    scripts = policy["script-src"].split()
    assert len(scripts) == len(set(scripts)) == 3 + len(inline_scripts.NAMES) + 2  # Streamlit's, the first picture's
    assert not {"'unsafe-inline'", "'unsafe-eval'", "*", "https:", "data:"} & set(scripts)
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"


@pytest.mark.parametrize(
    ("told", "who"),
    [
        ("", "'none'"),
        ("https://lms.school.example", "https://lms.school.example"),
        ("https://*.school.example, http://a:8080", "https://*.school.example http://a:8080"),
        ("https://a.example; script-src *", "'none'"),
        ("*", "'none'"),
        ("https://a.example/\r\nset-cookie: x", "'none'"),
    ],
)
def test_who_may_frame_the_app_is_a_setting(monkeypatch, told, who):
    monkeypatch.setenv(FRAMES, told)
    found = headers_of(answered(plain))
    assert f"frame-ancestors {who}" in found["content-security-policy"]
    assert ("x-frame-options" in found) == (who == "'none'")


@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        (None, True),
        ("http://localhost:8501", True),
        ("https://LOCALHOST:8501", True),
        ("http://localhost", False),
        ("http://localhost:3000", False),
        ("http://127.0.0.1:8501", False),
        ("null", False),
        ("localhost:8501", False),
        ("http://localhost:8501@evil.example", False),
        ("https://trusted.example", True),
    ],
)
def test_websockets_are_opened_by_the_servers_own_pages_only(monkeypatch, origin, passes):
    monkeypatch.setattr(request_gate.st, "get_option", {"server.corsAllowedOrigins": ["https://trusted.example"]}.get)
    found = ask("websocket", path="/_stcore/stream", host="localhost:8501", origin=origin)
    assert (found == ["passed"]) == passes


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


class Sending:
    """A browser that sends a file through the gate, to a server that reads it; the time is the test's own."""

    def __init__(self, loop, gate_, session, announced, *, file="1"):
        self.parts, self.answer, self.loop = asyncio.Queue(), None, loop
        self.left = announced
        headers = [(b"host", b"localhost"), (b"content-length", str(announced).encode())]
        path = f"/_stcore/upload_file/{session}/{file}"
        scope = {"type": "http", "path": path, "method": "PUT", "headers": headers}
        self.done = loop.create_task(gate_(scope, self.parts.get, self.hear))

    async def hear(self, message):
        self.answer = self.answer or message["status"]

    async def send(self, n):
        """Sends `n` bytes, and waits until the server has read them."""
        self.left -= n
        self.parts.put_nowait({"type": "http.request", "body": bytes(n), "more_body": self.left > 0})
        await self.loop.rest()

    async def end(self):
        """The status of the answer, which is there by now."""
        await self.loop.rest()
        assert self.done.done(), "the file is still on its way"
        await self.done
        return self.answer


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time goes on only when the test says so."""

    now = 0.0

    def time(self):
        return self.now

    async def rest(self):
        """Lets everything happen that does not wait for the time."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def wait(self, seconds):
        self.now += seconds
        await self.rest()


def upload(story, arrivals=None):
    """Has a story of uploads happen: an async function of the loop, and of what makes a `Sending`."""

    async def app(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 204})

    with asyncio.Runner(loop_factory=Clock) as runner:
        loop = runner.get_loop()
        gate_ = request_gate.Gate(app, arrivals or Arrivals(loop.time))
        runner.run(story(loop, lambda *args, **more: Sending(loop, gate_, *args, **more)))


def test_who_announces_much_and_sends_little_takes_no_room_from_others_and_is_ended(stored):
    async def story(loop, sending):
        slow = [sending("slow", 10 * MB, file=str(number)) for number in range(3)]
        for _ in range(5):
            for one in slow:
                await one.send(1)
            quick = sending("quick", 8 * MB)
            await quick.send(8 * MB)
            assert await quick.end() == 204
            await loop.wait(10)
        assert [await one.end() for one in slow] == [408] * 3

    upload(story)


def test_a_file_that_comes_at_the_least_rate_is_taken_and_has_an_hour(stored):
    async def story(loop, sending):
        part = int(arrivals.PATIENCE * arrivals.LEAST_RATE)
        slow = sending("ours", 8 * part + 1)
        for _ in range(8):
            await loop.wait(arrivals.PATIENCE - 1)
            await slow.send(part)
        await loop.wait(arrivals.PATIENCE - 1)
        await slow.send(1)
        assert await slow.end() == 204
        stalled = sending("ours", 2 * part)
        await stalled.send(part)
        await loop.wait(arrivals.PATIENCE + 1)
        assert await stalled.end() == 408

    upload(story)


def test_no_file_comes_for_ever(stored, monkeypatch):
    monkeypatch.setattr(arrivals, "LONGEST", 100.0)

    async def story(loop, sending):
        slow, part = sending("ours", 9 * MB), int(arrivals.PATIENCE * arrivals.LEAST_RATE)
        for _ in range(5):
            await slow.send(part)
            await loop.wait(25)
        assert await slow.end() == 408

    upload(story)


def test_what_has_come_of_files_counts(stored):
    async def story(loop, sending):
        first, second = sending("one", 6 * MB), sending("two", 6 * MB)
        await loop.rest()
        await first.send(5 * MB)
        await second.send(4 * MB)
        assert await sending("three", 3 * MB).end() == 503
        await first.send(1 * MB)  # all that there is
        assert await first.end() == 204
        await second.send(2 * MB)  # the room of the first one was given back
        assert await second.end() == 204
        third, fourth = sending("one", 6 * MB), sending("two", 6 * MB)
        await loop.rest()
        await third.send(6 * MB - 1)
        await fourth.send(6 * MB - 1)
        assert await fourth.end() == 503
        await third.send(1)
        assert await third.end() == 204

    upload(story)


def test_who_holds_most_gives_way_to_those_who_hold_much_less(stored):
    async def story(loop, sending):
        stored.add("large", "there", 4 * MB)
        large = sending("large", 8 * MB)
        await large.send(6 * MB)
        small = sending("small", 2 * MB)
        await small.send(2 * MB)
        assert await small.end() == 204
        assert await large.end() == 503
        assert stored.file_storage["large"]  # the other file gave room enough
        assert await sending("large", 8 * MB).end() == 503  # nobody makes room for those who hold much

    upload(story)


def test_one_session_keeps_the_room_from_others_for_a_minute_at_most(stored):
    async def story(loop, sending):
        for number in range(10):
            stored.add("ours", str(number), MB)
        assert await sending("theirs", 8 * MB).end() == 503
        await loop.wait(arrivals.UNCLAIMED_WHERE_FULL + 1)
        assert await sending("ours", 8 * MB).end() == 503  # nobody makes room for more of the same session
        theirs = sending("theirs", 8 * MB)
        await loop.rest()
        assert len(stored.file_storage["ours"]) == 10  # until something comes
        await theirs.send(2 * MB)
        assert len(stored.file_storage["ours"]) == 8
        await theirs.send(6 * MB)
        assert await theirs.end() == 204

    upload(story)


def test_what_nobody_asks_for_is_dropped(stored):
    async def story(loop, sending):
        here = Arrivals(loop.time)
        stored.add("ours", "old", 10)
        here.look()
        await loop.wait(arrivals.UNCLAIMED - 1)
        stored.add("ours", "new", 10)
        here.look()
        await loop.wait(2)
        async with asyncio.timeout(None) as deadline:
            with here.begin("ours", 10, deadline):  # another file of the same upload is still coming
                here.look()
        assert set(stored.file_storage["ours"]) == {"old", "new"}
        await loop.wait(arrivals.UNCLAIMED - 1)
        here.look()
        assert set(stored.file_storage["ours"]) == {"old", "new"}
        await loop.wait(2)
        here.look()
        assert stored.file_storage["ours"] == {}

    upload(story)

"""A server as it is started: what visitors can send to it, how it ends, and what it does between two pages."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import InvalidStatus

from tests.benchmarks.classroom import PLACES, link
from tests.browser.driver import ROOT, Server
from tests.reader import Reader, elements

pytestmark = pytest.mark.slow
SENTENCE = "我有一只猫。"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Where the servers of these tests keep the files of their visitors."""
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def server(tmp_path_factory, files):
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(env={**os.environ, "TMPDIR": str(files), "VIZFORMER_UPLOADS": "off"}, log=log) as running:
        yield running


def wait(for_what, seconds=120):
    end = time.monotonic() + seconds
    while not (found := for_what()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)
    return found


def workers(server):
    """The process numbers of a server's trainings."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parts = (process / "cmdline").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if b"vizformer.training.worker" in parts and parent == server.process.pid:
            found.append(int(process.name))
    return found


def train(reader, seed):
    """Has a reader begin a long training; what the page says."""
    messages = reader.open("train", run=f"train-{seed:010x}")  # as if none had been begun here yet
    ids = {}
    for message in messages:
        element = message.delta.new_element
        for kind in ("number_input", "button", "selectbox"):
            if element.WhichOneof("type") == kind:
                found = getattr(element, kind)
                ids[found.label] = found.id
    states = BackMsg().rerun_script.widget_states
    steps = states.widgets.add(id=ids["Steps"])
    steps.string_value = "5000"
    states.widgets.add(id=ids["Seed"]).double_value = seed
    states.widgets.add(id=ids["Train"]).trigger_value = True
    return reader.run("train", states)


WIDGETS = ("selectbox", "slider", "checkbox", "button_group", "button", "radio", "text_input", "number_input")
OF_ALL_PAGES = {
    "search",
    "view.text",
    "view.target",
    "view.model",
    "bar.open",
    "long_text.open",
    "present-begin",
    "vizformer.language",
}
# the toy needs no sentence; the ways to other pages
OF_A_PAGE = {"layer": {"view.material"}, "start": {f"start.example.{n}" for n in range(3)}}


@pytest.mark.sample(12)
@pytest.mark.parametrize(("page", "part"), PLACES)
def test_every_control_of_a_laboratory_runs_without_the_frame_of_its_page(server, page, part):
    with Reader(server.port) as reader:
        messages = reader.open(page, **link(page, part, SENTENCE))
    outside, inside = set(), 0
    for message in messages:
        kind = message.delta.new_element.WhichOneof("type") if message.HasField("delta") else None
        if kind in WIDGETS and not message.delta.fragment_id:
            outside.add(getattr(message.delta.new_element, kind).id.split("-", 2)[-1])
        inside += kind in (*WIDGETS, "bidi_component") and bool(message.delta.fragment_id)
    assert outside <= OF_ALL_PAGES | OF_A_PAGE.get(page, set())
    assert inside


def widget(messages, kind, label):
    """A widget by its label: the number of its element, and the fragment that it stands in."""
    for message in messages:
        element = message.delta.new_element
        if element.WhichOneof("type") == kind and label in str(getattr(element, kind)):
            return getattr(element, kind).id, message.delta.fragment_id
    raise AssertionError(f"there is no {kind} {label}")


@pytest.mark.parametrize(
    ("page", "part", "kind", "label", "value", "changed"),
    [
        ("map", "", "button_group", "Decoder-only", {"string_array_value": "Decoder-only · stories"}, "model=stories"),
        ("qkv", "arithmetic", "checkbox", "Divide by", {"bool_value": False}, "unscaled"),
    ],
)
def test_a_control_of_a_part_that_changes_the_subject_has_the_whole_page_run(
    server, page, part, kind, label, value, changed
):
    with Reader(server.port) as reader:
        name, fragment = widget(reader.open(page, part=part, text=SENTENCE), kind, label)
        assert fragment
        states = BackMsg().rerun_script.widget_states
        state = states.widgets.add(id=name)
        for field, given in value.items():
            if field == "string_array_value":
                state.string_array_value.data.append(given)
            else:
                setattr(state, field, given)
        messages = reader.run(page, states, fragment)
    assert changed in reader.query
    drawn = [text for text in elements(messages, "text_input") if text.label == "Sentence"]
    assert drawn, "the boxes above the part were drawn anew"
    assert widget(messages, "button_group", f"lesson.part.{page}"), "on the same page"


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_clear_cache_from_any_client_loses_no_training_and_starts_no_second_desk(server):
    with Reader(server.port) as reader, Reader(server.port) as other:
        train(reader, 1)
        begun = wait(lambda: workers(server))
        assert len(begun) == 1
        clear = BackMsg()
        clear.clear_cache = True
        other.open("attention", text=SENTENCE)
        other.send(clear)
        other.open("attention", text=SENTENCE)  # after it
        train(other, 2)
        train(other, 3)
        assert workers(server) == begun  # the others wait
        said = [alert.body for alert in elements(reader.run("train"), "alert")]
        assert not any("no longer on the server" in text for text in said)
        refused = [alert.body for alert in elements(train(other, 4), "alert")]
        assert any("You have begun 2 that wait or run" in text for text in refused)


def test_a_rebound_name_gets_nothing_from_a_started_server(server):
    request = urllib.request.Request(f"{server.url}/", headers={"Host": f"evil.example:{server.port}"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == 403
    with pytest.raises(InvalidStatus):
        Reader(server.port, Host="evil.example")


def test_every_answer_of_a_started_server_has_the_headers(server):
    for path in (
        "/",
        "/qkv",
        "/_stcore/health",
        "/_stcore/host-config",
        "/static/none.js",
        "/media/none",
        "/_vizformer/room/A",
    ):
        try:
            found = urllib.request.urlopen(server.url + path, timeout=30)
        except urllib.error.HTTPError as refused:
            found = refused
        with found:
            assert "default-src 'none'" in found.headers["Content-Security-Policy"], path
            assert found.headers["X-Frame-Options"] == "DENY"
            assert found.headers["X-Content-Type-Options"] == "nosniff"
            assert found.headers["Referrer-Policy"] == "same-origin"


def test_a_page_from_elsewhere_opens_no_websocket(server):
    Reader(server.port, Origin=server.url).close()
    for origin in ("http://localhost:3000", f"http://localhost:{server.port}", "null"):
        with pytest.raises(InvalidStatus):
            Reader(server.port, Origin=origin)


def test_a_server_without_uploads_takes_no_byte(server):
    with Reader(server.port) as reader:
        reader.open("report")
        assert reader.session
        request = urllib.request.Request(
            f"{server.url}/_stcore/upload_file/{reader.session}/1", data=b"x" * 1000, method="PUT"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
    assert refused.value.code == 403
    assert "takes no uploads" in refused.value.read().decode()


@pytest.mark.sweep
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_sigterm_ends_the_server_with_its_trainings_and_their_files(tmp_path):
    with Server(env={**os.environ, "TMPDIR": str(tmp_path)}, log=tmp_path / "log") as server:
        readers = [Reader(server.port) for _ in range(3)]
        try:
            train(readers[0], 1)
            readers[1].open("attention", text=SENTENCE)
            [worker] = wait(lambda: workers(server))
            assert len(list(tmp_path.glob("vizformer-visitors-*/*/train-*"))) == 1
            started = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(30) in (0, -signal.SIGTERM)
            assert time.monotonic() - started < 15
            assert not alive(worker)
            assert not list(tmp_path.glob("vizformer-visitors-*"))
        finally:
            for reader in readers:
                reader.close()


@pytest.mark.sweep
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_after_a_kill_the_trainings_end_and_the_next_start_removes_their_files(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with Server(env=environment, log=tmp_path / "log") as server, Reader(server.port) as reader:
        train(reader, 1)
        [worker] = wait(lambda: workers(server))
        server.process.kill()
        server.process.wait()
        wait(lambda: not alive(worker))
    assert list(tmp_path.glob("vizformer-visitors-*/*/train-*"))
    with Server(env=environment, log=tmp_path / "log"):
        wait(lambda: not list(tmp_path.glob("vizformer-visitors-*")), 30)


# --- the collection of garbage ----------------------------------------------------------------------------------------

PROBE = """
import gc, os, sys
collect = gc.collect
def told(*generation):
    with open(os.environ["COLLECTIONS"], "a") as file:
        file.write(sys._getframe(1).f_globals["__name__"] + "\\n")
    return collect(*generation)
gc.collect = told
"""
OURS = (sys.executable, "-m", "vizformer")
STREAMLITS = (sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"))


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("command", "option", "changed", "collects"),
    [
        (OURS, "--port", {}, False),
        (STREAMLITS, "--server.port", {}, False),
        (OURS, "--port", {"STREAMLIT_RUNNER_POST_SCRIPT_GC": "true"}, True),
    ],
    ids=["vizformer", "streamlit run", "where it is asked for"],
)
def test_no_page_waits_for_streamlits_collection_of_garbage(tmp_path, command, option, changed, collects):
    (tmp_path / "sitecustomize.py").write_text(PROBE, encoding="utf-8")
    asked = tmp_path / "asked"
    environment = {
        **os.environ,
        **changed,
        "COLLECTIONS": str(asked),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
    }
    # Started elsewhere: the option comes from the file beside app.py.
    server = Server(command, port_option=option, cwd=tmp_path, env=environment, log=tmp_path / "log")
    with server, Reader(server.port) as reader:
        for page in ("glossary", "attention", "qkv"):
            reader.open(page, text=SENTENCE)
    callers = asked.read_text().split()
    assert "vizformer.web.catalogue.torch_setup" in callers  # the probe works
    assert ("streamlit.runtime.scriptrunner.script_runner" in callers) == collects


def test_who_comes_while_the_server_starts_gets_the_page(tmp_path):
    pages = ("layer", "start", "masks", "lens", "mixers", "qkv")
    with Server(env={**os.environ, "VIZFORMER_UPLOADS": "off"}, log=tmp_path / "log") as server:

        def alerts(page):
            with Reader(server.port) as reader:
                messages = reader.open(page, text=SENTENCE)
            assert elements(messages, "markdown")
            return [alert.body for alert in elements(messages, "alert") if "our mistake" in alert.body]

        with ThreadPoolExecutor(len(pages)) as readers:
            assert list(readers.map(alerts, pages)) == [[]] * len(pages), server.log.read_text()

"""Heads and boxes of a text as files: the library's numbers, at addresses that nobody can guess."""

import json

import numpy as np
import pytest
from safetensors.numpy import load
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.testclient import TestClient

from vizformer.analysis import TraceHeads, TraceNumbers, head_overview
from vizformer.analysis.one_forward.box_numbers import numbers_of_box
from vizformer.analysis.one_forward.picture_numbers import CELLS
from vizformer.components.contract import pools, shades
from vizformer.web.catalogue import head_files
from vizformer.web.catalogue import subject as subjects
from vizformer.web.catalogue.bounded_cache import Cache
from vizformer.web.catalogue.head_files import GoneError
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import head_routes
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.turns import LONGEST_NAME, TURNS

TEXT = Subject(ModelRef("bundled", "stories"), "A cat sat on a mat and looked at the red ball.", "")
PAIR = Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "")


def offered(subject: Subject, kind: str = "decoder", without: str = "none") -> str:
    """The name at the end of the address."""
    _ = subject.trace
    return head_files.packed(subject, kind, without, "").address.rpartition("/")[2]


@pytest.mark.parametrize(("subject", "kind"), [(TEXT, "decoder"), (PAIR, "encoder"), (PAIR, "cross")])
def test_a_head_comes_as_the_library_has_it(subject: Subject, kind: str) -> None:
    found = load(head_files.head_file(offered(subject, kind), 1, 2))
    wanted = TraceNumbers(subject.trace).heads(kind).operands(1, 2)
    np.testing.assert_array_equal(found["q"], wanted.q.ravel())
    np.testing.assert_array_equal(found["k"], wanted.k.ravel())
    n_q, n_k = len(wanted.q), len(wanted.k)
    reasons = np.zeros(n_q * n_k, np.uint8)
    if "run_starts" in found:
        ends = [*found["run_starts"][1:], n_q * n_k]
        for start, end, reason in zip(found["run_starts"], ends, found["run_reasons"], strict=True):
            reasons[start:end] = reason
    assert (reasons == 0).tolist() == (TraceNumbers(subject.trace).heads(kind).pattern(1, 2).ravel() > 0).tolist()


@pytest.mark.parametrize(("subject", "kind"), [(TEXT, "decoder"), (PAIR, "cross")])
def test_the_small_maps_of_the_layers_are_those_of_all_heads(subject: Subject, kind: str) -> None:
    name = offered(subject, kind)
    trace = subject.trace
    found = head_overview(trace, kind, *(pools(side) for side in TraceNumbers(trace).heads(kind).shape[2:]))
    small, measures = shades(found.largest), found.measures
    payload = head_files.packed(subject, kind, "none", "/base")
    assert payload.address.startswith("/base/")
    assert payload.shape[:2] == small.shape[:2]
    assert payload.thumb_shape == small.shape[2:]
    for layer in range(len(small)):
        found = load(head_files.layer_file(name, layer))
        np.testing.assert_array_equal(found["thumbs"], small[layer].ravel())
        for measure in payload.measures:
            np.testing.assert_array_equal(found[f"measure_{measure}"], getattr(measures, measure)[layer])
    assert set(found) == {"thumbs", *(f"measure_{measure}" for measure in payload.measures)}


def test_a_head_that_cannot_be_computed_from_q_and_k_comes_as_its_map(monkeypatch: pytest.MonkeyPatch) -> None:
    name, heads = offered(TEXT), TraceNumbers(TEXT.trace).heads("decoder")
    monkeypatch.setattr(TraceHeads, "operands", lambda *arguments: None)
    found = load(head_files.head_file(name, 1, 0))
    np.testing.assert_array_equal(found["weights"], heads.pattern(1, 0).ravel())
    np.testing.assert_array_equal(found["scores"], heads.scores(1, 0).ravel())
    assert ((found["reasons"] == 0) == (heads.pattern(1, 0).ravel() > 0)).all()


def test_keys_that_are_left_out_have_addresses_of_their_own() -> None:
    assert offered(TEXT) != offered(TEXT, without="first")
    found = load(head_files.head_file(offered(TEXT, without="first"), 0, 0))
    assert 6 in found["run_reasons"]


def test_an_address_alone_starts_no_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    name = offered(TEXT)
    subjects.trace.clear()
    with pytest.raises(GoneError):
        head_files.head_file(name, 0, 0)
    with pytest.raises(GoneError):
        head_files.layer_file(name, 0)
    with pytest.raises(GoneError):
        head_files.box_file(name, "norm", 0, 0)
    assert not subjects.trace.holds(TEXT)
    _ = TEXT.trace
    assert head_files.head_file(name, 0, 0)
    monkeypatch.setattr(head_files, "_OFFERED", Cache(lambda: 1000))
    with pytest.raises(GoneError):
        head_files.head_file(name, 0, 0)


def test_the_texts_of_addresses_take_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    offers = Cache(lambda: 100_000)
    monkeypatch.setattr(head_files, "_OFFERED", offers)
    monkeypatch.setattr(head_files, "_payload", lambda *arguments: None)
    for number in range(40):
        head_files.packed(Subject(ModelRef("bundled", "stories"), f"{number} " * 5000, ""), "decoder", "none", "")
    assert offers.bytes < 100_000


@pytest.mark.parametrize(("box", "kind"), [("embedding", "encoder"), ("norm", "cross"), ("output", "decoder")])
def test_a_box_comes_as_the_library_has_it(box: str, kind: str) -> None:
    found = json.loads(head_files.box_file(offered(PAIR, kind), box, 1, 2))
    wanted = numbers_of_box(PAIR.checkpoint, PAIR.trace, box, kind, 1, 2)
    assert found["proof"] == {"difference": wanted.proof.difference, "holds": True}
    for sent, one in zip(found["vectors"], wanted.vectors, strict=True):
        assert (sent["name"], sent["count"], sent["names"]) == (one.name, len(one.values), list(one.names))
        assert sent["cells"] == one.values[one.first : one.first + CELLS].tolist()
        assert sent["written"] == list(one.written)


@pytest.mark.parametrize("base", ["", "/models/viz"])
def test_the_routes_answer_below_the_server_s_own_path(monkeypatch: pytest.MonkeyPatch, base: str) -> None:
    monkeypatch.setattr(head_routes, "base", lambda: base)
    client = TestClient(Starlette(routes=head_routes.routes()))
    name = offered(TEXT)
    address = head_files.packed(TEXT, "decoder", "none", base).address
    answer = client.get(f"{address}/1/2")
    assert answer.status_code == 200
    assert answer.content == head_files.head_file(name, 1, 2)
    assert "immutable" in answer.headers["cache-control"]
    assert client.get(f"{address}/1").content == head_files.layer_file(name, 1)
    box = client.get(f"{address}/feedforward/1/2")
    assert box.content == head_files.box_file(name, "feedforward", 1, 2)
    for place in (
        f"{address}/feedforward/99/0",
        f"{address}/norm/1/999",
        f"{address}/nothing/1/2",
        f"{address}/99",
        f"{address}/1/99",
        f"{base}/{head_files.PLACE}/{'0' * 40}/0/0",
    ):
        gone = client.get(place)
        assert (gone.status_code, gone.content, gone.headers["cache-control"]) == (410, b"", "no-store")
    assert client.get(f"{address}/1/-1").status_code == 404
    assert client.get(f"{address}/1/x").status_code == 404


def test_of_a_long_address_little_is_kept() -> None:
    client = TestClient(Starlette(routes=head_routes.routes()))
    assert client.get(f"/{head_files.PLACE}/{'x' * 50_000}/0/0").status_code == 410
    assert max(map(len, TURNS._ended)) <= LONGEST_NAME


def test_a_head_is_not_compressed_on_its_way() -> None:
    """Of random numbers gzip takes longer than all the rest, for some percent fewer bytes."""
    compressing = Starlette(routes=head_routes.routes(), middleware=[Middleware(GZipMiddleware, minimum_size=1)])
    address = head_files.packed(TEXT, "decoder", "none", "").address
    answer = TestClient(compressing).get(f"{address}/1/2", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "identity"
    assert int(answer.headers["content-length"]) == len(answer.content)

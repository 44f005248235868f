"""Several visitors open recorded models at once: their bytes together are bounded, and counted as they are."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.recorded_code import EXAMPLE, named
from tests.recorder import all_types
from vizformer.web.catalogue import model_cache, server_folder, session_folders, sources
from vizformer.web.catalogue.bounded_cache import VARIABLE
from vizformer.web.link.model_ref import ModelRef

pytest.importorskip("transformers")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

NAMES = ("one", "two", "three", "four")
VISITORS = 6


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Folders that `transformers` computes, stored in another precision, so that weights are copied."""
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    for name in NAMES:
        all_types.made("olmo2").to(torch.bfloat16).save_pretrained(tmp_path / name)
    return [sources.stamped(ModelRef("models", name, dtype="float32")) for name in NAMES]


def n_bytes(module):
    return sum(one.nbytes for one in {id(x): x for x in (*module.parameters(), *module.buffers())}.values())


def test_what_is_open_for_several_visitors_stays_within_the_bytes_of_the_server(shelf, monkeypatch):
    monkeypatch.setattr(model_cache, "_LOADED", weakref.WeakValueDictionary())
    visitor = threading.local()
    monkeypatch.setattr(session_folders, "current", lambda: getattr(visitor, "name", ""))
    model_cache._open.clear()
    before = model_cache._MODELS.bytes
    first = model_cache.checkpoint(shelf[0])
    size = n_bytes(first.module)
    counted = model_cache._MODELS.bytes - before
    assert counted >= size  # no less is counted than there is
    model_cache._open.clear()
    room = before + counted * 5 // 2
    monkeypatch.setenv(VARIABLE, str(room))
    modules = weakref.WeakSet([first.module])
    alone = {len(ids): first.trace(ids=ids).logits for ids in ([3, 4, 5], [3, 4, 5, 6])}
    del first
    start = threading.Barrier(VISITORS)

    def visit(number):
        visitor.name = f"visitor-{number}"
        start.wait()
        for turn in range(8):
            opened = model_cache.checkpoint(shelf[(number + turn) % len(shelf)])
            modules.add(opened.module)
            ids = [3, 4, 5, 6][: 3 + turn % 2]
            assert torch.equal(opened.trace(ids=ids).logits, alone[len(ids)])
            assert model_cache._MODELS.bytes <= room
        return True

    with ThreadPoolExecutor(VISITORS) as pool:
        assert all(pool.map(visit, range(VISITORS)))
    gc.collect()
    held = [model for model in shelf if model_cache.is_open(model)]
    assert 1 <= len(held) <= 2
    assert len(modules) == len(held)  # the others' memory is given back
    assert sum(map(n_bytes, modules)) <= room - before


def test_the_matrices_that_were_found_of_a_model_are_counted_and_take_the_place_of_others(shelf, tmp_path, monkeypatch):
    all_types.made("gptj").to(torch.bfloat16).save_pretrained(tmp_path / "heads")
    model = sources.stamped(ModelRef("models", "heads", dtype="float32"))
    model_cache._open.clear()
    before = model_cache._MODELS.bytes
    opened = model_cache.checkpoint(model)
    counted = model_cache._MODELS.bytes - before
    found = [one for layer in opened.circuits.layers for one in (layer.v.weight, layer.W_O)]
    assert all(one is not None for one in found)
    model_cache.checkpoint(model)
    grown = model_cache._MODELS.bytes - before
    assert grown - counted >= sum(one.nbytes for one in found)
    model_cache.checkpoint(model)
    assert model_cache._MODELS.bytes - before == grown
    model_cache.checkpoint(shelf[0])
    monkeypatch.setenv(VARIABLE, str(before + grown))
    model_cache.checkpoint(model)
    assert not model_cache.is_open(shelf[0])
    assert model_cache._MODELS.bytes - before == grown


def test_the_matrices_of_a_model_named_at_the_start_are_counted_and_forgotten_where_they_find_no_room(
    shelf, tmp_path, monkeypatch
):
    (file := tmp_path / "my_model.py").write_text(EXAMPLE, encoding="utf-8")
    model = ModelRef("code", "my_model")
    with named(monkeypatch, file):
        own = model_cache.checkpoint(model)
        before, found = model_cache._MODELS.bytes, own.circuits
        assert model_cache.checkpoint(model).circuits is found
        grown = model_cache._MODELS.bytes - before
        assert grown >= sum(layer.W_O.nbytes for layer in found.layers)
        monkeypatch.setenv(VARIABLE, "1")
        model_cache.checkpoint(shelf[0])
        assert "circuits" not in vars(own)
        assert model_cache.checkpoint(model) is own  # its weights stay
        assert torch.equal(own.circuits.layers[0].W_O, found.layers[0].W_O)

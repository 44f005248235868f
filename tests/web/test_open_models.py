"""Several visitors open recorded models at once: their bytes together are bounded, and counted as they are."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

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

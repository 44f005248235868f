"""Heads put together for a text whose maps do not all fit: the small maps of all layers and the map of one."""

import threading

import numpy as np
import pytest

from vizformer.analysis import aggregates, head_maps
from vizformer.components.contract import pool, thumbnails
from vizformer.web.catalogue import head_pictures
from vizformer.web.catalogue.long_work import LongWork, hearing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef

TEXT = Subject(ModelRef("bundled", "stories"), "A cat sat on a mat and looked at the red ball. " * 5, "")


@pytest.fixture(autouse=True)
def nothing_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("vizformer.web.catalogue.head_pictures.fits", lambda *arguments, **options: False)
    for one in (head_pictures.together, head_pictures.small_together):
        one.clear()
    yield
    for one in (head_pictures.together, head_pictures.small_together):
        one.clear()


@pytest.mark.parametrize("over", ["mean", "max", "rollout"])
@pytest.mark.parametrize("layer", [0, 3])
@pytest.mark.sample(2)
def test_the_map_of_one_layer_and_the_small_maps_are_those_of_all(over: str, layer: int) -> None:
    payload = head_pictures.together(TEXT, "decoder", over, "none", layer)
    maps = np.stack(list(aggregates(TEXT.trace, "decoder", over)))
    assert payload.held == "head"
    assert payload.chosen == (layer, 0)
    weights, reasons = payload.map_of(layer, 0)
    np.testing.assert_allclose(weights, maps[layer], atol=8e-6)
    wanted = head_maps(TEXT.trace, "decoder").reasons
    wanted = wanted[layer] if wanted.ndim == 3 else wanted
    np.testing.assert_array_equal(reasons, wanted * (maps[layer] == 0) if over == "rollout" else wanted)
    np.testing.assert_array_equal(payload.columns["thumbs"].reshape(len(maps), 32, 32), thumbnails(maps))
    small = payload.columns["thumb_reasons"].reshape(-1, 32, 32)
    np.testing.assert_array_equal(small[layer if len(small) > 1 else 0], pool(reasons, np.minimum))


@pytest.mark.parametrize("over", ["mean", "rollout"])
def test_who_listens_hears_of_every_layer(over: str) -> None:
    heard = list[tuple[int, int]]()
    with hearing(lambda done, n: heard.append((done, n))):
        head_pictures.together(TEXT, "decoder", over, "none", 1)
    layers = head_maps(TEXT.trace, "decoder").weights.shape[0]
    assert heard == [(done, layers) for done in range(1, layers + 1)]


def test_another_layer_of_a_mean_looks_at_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    head_pictures.together(TEXT, "decoder", "mean", "none", 1)
    monkeypatch.setattr(head_pictures, "aggregates", lambda *arguments: pytest.fail("all layers again"))
    assert head_pictures.together(TEXT, "decoder", "mean", "none", 2).chosen == (2, 0)


def test_it_ends_at_the_next_layer_when_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    layers, go, begun = list[int](), threading.Event(), threading.Event()

    def watched(trace, kind, over):
        for index, found in enumerate(aggregates(trace, kind, over)):
            layers.append(index)
            begun.set()
            assert go.wait(60)
            yield found

    monkeypatch.setattr("vizformer.web.catalogue.head_pictures.aggregates", watched)
    call, work = (TEXT, "decoder", "rollout", "none", 1), LongWork()
    going = work.begin(head_pictures.together, call, "one")
    assert begun.wait(60)
    work.leave(head_pictures.together, call, "one")
    go.set()
    assert going.ended.wait(60)
    assert layers == [0]
    assert not head_pictures.together.holds(*call)

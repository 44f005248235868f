"""Models whose layers stay in the file: the same numbers, one layer in memory, chosen where the memory is too small."""

import copy
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.hooked_models import Hooked
from vizformer import explain
from vizformer.analysis import attribution_patches, prompt_pair
from vizformer.analysis.circuits import compositions
from vizformer.analysis.side_by_side.weights import moved_weights
from vizformer.checkpoints import Opened, describe, inspect, load, save
from vizformer.checkpoints.tensors import memory
from vizformer.checkpoints.tensors.memory import DoesNotFitError
from vizformer.errors import TraceError
from vizformer.model.streamed_layers import StreamedLayers

TEXT = "The cats are here"


def gpt2(folder: Path) -> tuple[Path, dict[str, Any]]:
    return folders.gpt2(folder), dict(dtype="float64")  # every number is converted


def llama(folder: Path) -> tuple[Path, dict[str, Any]]:
    return folders.llama(folder), {}


def by_hand(folder: Path) -> tuple[Path, dict[str, Any]]:
    torch.save(tiny.randomise(Hooked()).state_dict(), folder / "model.pt")
    return folder / "model.pt", dict(activation="gelu_tanh")


def translator(folder: Path) -> tuple[str, dict[str, Any]]:
    return "zh-en", {}


MAKERS: tuple[Callable[[Path], tuple[Any, dict[str, Any]]], ...] = (gpt2, llama, by_hand, translator)


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Opened, Opened]:
    path, said = request.param(tmp_path)
    return load(path, **said), load(path, stream=True, **said)


@pytest.mark.sample(2)
def test_the_numbers_are_the_same(both: tuple[Opened, Opened]) -> None:
    plain, streamed = both
    assert streamed.model.is_streamed
    assert not plain.model.is_streamed
    one, other = (model.trace(ids=[1, 2, 3, 2]) for model in both)
    assert torch.equal(one.logits, other.logits)
    assert one.sites == other.sites
    for site in one.sites:
        assert torch.equal(one[site].q, other[site].q)
        assert torch.equal(one[site].pattern(0), other[site].pattern(0))
    assert streamed.key == plain.key
    assert "the layers stay in the file" in describe(streamed.report)
    if plain.model.decoder is not None:
        start = "1 2" if plain.name == "model" else TEXT
        assert streamed.generate(start, max_new=4).ids == plain.generate(start, max_new=4).ids


def test_one_layer_is_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = load("zh-en", stream=True)
    made: list[tuple[str, weakref.ref[torch.nn.Module]]] = []
    for stack in (streamed.model.encoder, streamed.model.decoder):
        assert stack is not None
        assert isinstance(stack.layers, StreamedLayers)
        assert all(parameter.is_meta for parameter in stack.layers.parameters())
        make, name = stack.layers._make, stack.name

        def watched(index: int, make: Any = make, name: str = name) -> torch.nn.Module:
            assert not [other for other, layer in made if layer() is not None], f"{name}.{index}"
            layer: torch.nn.Module = make(index)
            made.append((f"{name}.{index}", weakref.ref(layer)))
            return layer

        monkeypatch.setattr(stack.layers, "_make", watched)
    streamed.trace("我有一只猫。", target="I have a cat.")
    config = streamed.model.config
    stacks = (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers))
    assert [name for name, __ in made] == [f"{stack}.{n}" for stack, n_layers in stacks for n in range(n_layers)]


def test_every_layer_can_be_explained_and_none_is_copied(tmp_path: Path) -> None:
    plain, streamed = load(folders.llama(tmp_path)), load(tmp_path, stream=True)
    site = "decoder.1.self"
    steps = [explain.attention_steps(model, model.trace(TEXT), site, 0, 2) for model in (plain, streamed)]
    assert [step.proof for step in steps[0]] == [step.proof for step in steps[1]]
    assert streamed.model.decoder is not None
    assert streamed.model.decoder.layers[-1] is streamed.model.decoder.layers[2]
    with pytest.raises(IndexError):
        streamed.model.decoder.layers[3]
    with pytest.raises(TraceError, match="layer by layer"):
        streamed.model.state_dict()
    with pytest.raises(TraceError, match="layer by layer"):
        save(streamed, tmp_path / "copy")


def test_what_holds_the_weights_of_all_layers_is_refused() -> None:
    plain, streamed = load("stories"), load("stories", stream=True)
    pair = prompt_pair(streamed, "The boy said", "The girl said")
    for refused in (
        lambda: moved_weights(plain, streamed),
        lambda: moved_weights(streamed, streamed),
        lambda: copy.deepcopy(streamed.model),  # from which a gradient of all weights is taken
        lambda: attribution_patches(streamed, pair, "heads", "decoder"),
    ):
        with pytest.raises(TraceError, match="layer by layer"):
            refused()


def test_compositions_are_those_of_the_model_in_memory() -> None:
    one, other = (compositions(load("induction-by-hand", stream=stream)) for stream in (False, True))
    for way, decoys in one.decoys.items():
        assert decoys.size
        np.testing.assert_array_equal(decoys, other.decoys[way])
        np.testing.assert_array_equal(one.chance[way], other.chance[way])


def test_it_is_chosen_where_the_memory_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folders.llama(tmp_path, num_hidden_layers=8)
    report, dtype = inspect(folder), torch.float64
    whole, layered = (memory.need(report, dtype, stream=stream) for stream in (False, True))
    of_layers = sum(
        8 * torch.Size(tensor.shape).numel() for tensor in report.tensors if ".layers." in f".{tensor.becomes[0]}"
    )
    assert whole.weights - layered.weights == of_layers * 7 / 8
    assert not load(folder, dtype=dtype).model.is_streamed
    monkeypatch.setattr(memory, "available", lambda device: memory.SPARE + (whole.total + layered.total) // 2)
    assert load(folder, dtype=dtype).model.is_streamed
    with pytest.raises(DoesNotFitError, match="does not fit"):
        load(folder, dtype=dtype, stream=False)
    monkeypatch.setattr(memory, "available", lambda device: memory.SPARE)
    with pytest.raises(DoesNotFitError, match="does not fit"):
        load(folder, dtype=dtype)

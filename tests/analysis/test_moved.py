"""What moved between a model and the one made from it: against plain loops, and against changes that were planted."""

import math

import numpy as np
import pytest
import torch

from recipes.vocabulary import train_bpe
from tests import tiny
from tests.analysis.test_side_by_side import changed, made
from vizformer.analysis import moved_weights
from vizformer.analysis.heads.maps import head_maps
from vizformer.analysis.side_by_side import head_divergences, total_variation, two_runs
from vizformer.analysis.side_by_side.weights import MATRICES, PARTS
from vizformer.checkpoints import Checkpoint
from vizformer.text import Tokenizer

TEXT = "I have two dogs and a cat!"


def scaled(checkpoint, name, by):
    def change(weight):
        weight *= by

    return changed(checkpoint, name, change)


@pytest.mark.parametrize("part", [*MATRICES, "feedforward", "norms"])
def test_a_planted_change_is_found_first_and_alone(part):
    first = made()
    inside = {"feedforward": "feedforward.W_in", "norms": "feedforward_norm"}.get(part, f"self_attention.{part}")
    second = scaled(first, f"decoder.layers.1.{inside}.weight", 1.25)
    found = moved_weights(first, second, singular=False)
    most = found.parts[0]
    assert (most.stack, most.layer, most.part) == ("decoder", 1, part)
    assert [one.name for one in found.tensors if one.distance] == [f"decoder.layers.1.{inside}.weight"]
    assert found.tensors[0].relative == pytest.approx(0.25, rel=1e-5)
    grid = found.grid("decoder")
    assert np.unravel_index(np.nanargmax(grid), grid.shape) == (1, PARTS.index(part))
    assert (np.nan_to_num(grid) > 0).sum() == 1
    assert (found.heads["decoder"] > 0).any() == (part in MATRICES)


@pytest.mark.parametrize("name", MATRICES)
def test_the_weights_of_a_head_are_its_own_rows_or_columns(name):
    first = made(n_kv_heads=2)
    tensor, width = f"decoder.layers.0.self_attention.{name}.weight", first.model.config.d_head
    own = slice(width, 2 * width)  # of head 1; of keys and values of heads 2 and 3, which share them

    def change(weight):
        (weight.T if name == "W_O" else weight)[own] += 0.5

    second = tiny.checkpoint("decoder-only", vocab_size=320, n_kv_heads=2)
    second.model.load_state_dict(first.model.state_dict())
    with torch.no_grad():
        change(dict(second.model.named_parameters())[tensor])
    heads = moved_weights(first, second).heads["decoder"]
    expected = {2, 3} if name in ("W_K", "W_V") else {1}
    assert set(np.flatnonzero(heads[0])) == expected
    assert not heads[1].any()
    head, length, weights = max(expected), 0.0, dict(first.model.named_parameters())
    for part in MATRICES:
        at = head // 2 if part in ("W_K", "W_V") else head
        for kind in ("weight", "bias"):
            one = weights.get(tensor.replace(f"{name}.weight", f"{part}.{kind}"))
            if one is not None and (part, kind) != ("W_O", "bias"):
                length += float(
                    (one.T if part == "W_O" else one)[at * width : (at + 1) * width].double().square().sum()
                )
    size = math.sqrt(0.25 * width * 16)  # 0.5 at each of its numbers
    assert heads[0, head] == pytest.approx(size / math.sqrt(length), rel=1e-5)


def test_a_model_beside_itself_has_not_moved_anywhere():
    first = made()
    found = moved_weights(first, made())
    assert found.relative == 0
    assert not any(one.distance for one in (*found.tensors, *found.parts))
    assert not found.heads["decoder"].any()
    assert not found.rounded


def test_distances_are_the_same_from_both_sides():
    first, second = made(), made(seed=1)
    there, back = moved_weights(first, second), moved_weights(second, first)
    sizes = [{one.name: one.distance for one in found.tensors} for found in (there, back)]
    assert sizes[0].keys() == sizes[1].keys()
    assert all(sizes[0][name] == pytest.approx(sizes[1][name], rel=1e-6) for name in sizes[0])
    traces = [(one, one.trace(TEXT)) for one in (first, second)]
    runs = two_runs(*traces[0], *traces[1]), two_runs(*traces[1], *traces[0])
    maps = [head_divergences(one, "decoder", measure=total_variation) for one in runs]
    assert maps[0] == pytest.approx(maps[1])
    assert maps[0].min() > 0


def test_rows_that_only_one_vocabulary_has_or_for_another_token_are_left_out():
    first = made()
    longer = tiny.checkpoint("decoder-only", vocab_size=320)
    weights = first.model.state_dict()
    model = tiny.model("decoder-only", vocab_size=322)
    weights["embedding.weight"] = torch.cat([weights["embedding.weight"], torch.full((2, 16), 9.0)])
    model.load_state_dict({name: weights.get(name, value) for name, value in model.state_dict().items()})
    tables = {one.name: one for one in moved_weights(first, Checkpoint("longer", model, longer.tokenizer)).tensors}
    assert tables["embedding.weight"].left_out == 2
    assert tables["embedding.weight"].distance == 0  # of the rows that both have
    other = Tokenizer(train_bpe(["zebras quiz jumpy vexed"] * 9, 320))
    size = other.vocab_size
    assert size < 320
    both = (reader.tokens([*range(size)]) for reader in (first.tokenizer, other))
    same = sum(one.text == two.text for one, two in zip(*both, strict=True))
    assert 0 < same < size
    tables = {one.name: one for one in moved_weights(first, Checkpoint("other", first.model, other)).tensors}
    assert tables["embedding.weight"].left_out == 320 - same  # also those that stand for no token in the other


def test_a_head_that_is_tied_in_one_model_alone_is_held_against_the_shared_table():
    tied, untied = made(tied_unembedding=True), made(tied_unembedding=False)
    weights = tied.model.state_dict()
    untied.model.load_state_dict({**weights, "unembedding.weight": weights["embedding.weight"] * 1.5})
    for first, second, by in ((tied, untied, 0.5), (untied, tied, 1 / 3)):
        found = moved_weights(first, second)
        assert not found.only_in_one
        assert found.parts[0].part == "unembedding"
        assert found.parts[0].relative == pytest.approx(by, rel=1e-5)
        assert [one.part for one in found.parts if one.distance] == ["unembedding"]


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_the_rounding_to_16_bits_is_no_movement_and_does_not_hide_one(kind):
    first, name = made(), "decoder.layers.0.self_attention.W_V.weight"

    def rounded(checkpoint):
        other = made()
        other.model.load_state_dict({key: one.to(kind) for key, one in checkpoint.model.state_dict().items()})
        return other

    for pair in ((first, rounded(first)), (rounded(first), first)):
        found = moved_weights(*pair)
        assert found.relative == 0
        assert found.rounded
    moved = moved_weights(first, rounded(scaled(first, name, 1.1)))
    assert [one.name for one in moved.tensors if one.distance] == [name]
    assert moved.tensors[0].relative == pytest.approx(0.1, rel=0.02)
    whole = rounded(first)  # trained on from it in float32: nothing is rounded there
    moved = moved_weights(whole, scaled(whole, name, 1.01))
    assert not moved.rounded
    assert moved.tensors[0].relative == pytest.approx(0.01, rel=1e-4)


def test_the_attention_that_goes_elsewhere_is_the_mean_of_plain_loops():
    first, second = made(), made(seed=1)
    runs = two_runs(first, first.trace(TEXT), second, second.trace(TEXT))
    maps = [head_maps(trace, "decoder").weights.astype(float) for trace in (runs.trace, runs.other)]
    found = head_divergences(runs, "decoder", measure=total_variation)
    for layer, head in np.ndindex(found.shape):
        p, q = (one[layer, head] for one in maps)
        rows = [sum(abs(a - b) for a, b in zip(p[row], q[row], strict=True)) / 2 for row in range(1, len(p))]
        assert found[layer, head] == pytest.approx(np.mean(rows), abs=1e-6)

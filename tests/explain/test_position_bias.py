"""ALiBi and T5's buckets in the arithmetic: against loops, what an edit leaves alone, and what a proof notices."""

from typing import Any

import numpy as np
import pytest
import torch

from tests import eager_transformer, tiny
from tests.explain.running import run
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, attention_steps, layer_steps
from vizformer.explain.position_terms import Buckets, Slopes, position_bias, relative_positions, slope
from vizformer.model import Cell, Edit, Trace

SITE, TEXT, HEAD, QUERY = "decoder.1.self", "I have a cat. 我有一只猫。", 2, 5
BOTH = pytest.mark.parametrize("options", [tiny.ALIBI, tiny.T5], ids=["alibi", "T5"])


def fresh(options: dict[str, Any], edit: Edit | None = None) -> tuple[Checkpoint, Trace]:
    checkpoint = tiny.checkpoint("decoder-only", max_positions=64, **options)
    return checkpoint, checkpoint.trace(TEXT, edit=edit)


def steps(checkpoint: Checkpoint, trace: Trace) -> dict[str, Step]:
    return {step.key: step for step in attention_steps(checkpoint, trace, SITE, HEAD, QUERY)}


@pytest.mark.parametrize("n_heads", [1, 2, 3, 6, 8, 12, 20])
def test_slopes_are_worked_out_anew(n_heads: int) -> None:
    found = [slope(head, n_heads) for head in range(n_heads)]
    assert found == pytest.approx([eager_transformer.slope(head, n_heads) for head in range(n_heads)], rel=1e-12)
    bias = Slopes(np.array(found)).bias(relative_positions(5))
    assert bias.shape == (n_heads, 5, 5)
    assert bias[n_heads - 1, 4, 1] == pytest.approx(-3 * found[-1], rel=1e-12)
    assert bias[0, 1, 4] == bias[0, 4, 1]


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize(("buckets", "furthest"), [(32, 128), (8, 6), (10, 30), (64, 1000)])
def test_buckets_are_worked_out_anew(buckets: int, furthest: int, stack: str) -> None:
    relative = np.arange(-furthest - 9, furthest + 10)
    table = np.random.default_rng(0).normal(size=(buckets, 3))
    places = Buckets(table, furthest, stack == "encoder", stack)
    expected = [eager_transformer.bucket(r, buckets, furthest, stack == "encoder") for r in relative.tolist()]
    assert places.rows(relative).tolist() == expected
    assert np.array_equal(places.bias(relative)[1], table[expected, 1])


@BOTH
def test_as_in_the_model(options: dict[str, Any]) -> None:
    """Two computations of one bias: torch in the forward, numpy here."""
    checkpoint = tiny.checkpoint(max_positions=64, **options)
    for stack in ("encoder", "decoder"):
        places = position_bias(checkpoint.model, stack)
        assert places is not None
        recorded = checkpoint.model.position_bias(stack, 50)
        assert recorded is not None
        np.testing.assert_allclose(places.bias(relative_positions(50)), recorded[0].detach().numpy(), atol=1e-6)
    assert position_bias(tiny.checkpoint(positions="rope").model, "encoder") is None


@BOTH
def test_what_the_step_shows(options: dict[str, Any]) -> None:
    checkpoint, trace = fresh(options)
    found = steps(checkpoint, trace)
    step = found["position"]
    scores, place, numbers = step.operands
    assert np.array_equal(scores.value, found["scores"].result)
    distance = QUERY - np.arange(len(place.value))
    if options is tiny.ALIBI:
        assert np.array_equal(place.value, np.abs(distance))
        assert place.value.dtype.kind == "i"  # shown without a point
        assert numbers.value.tolist() == [2.0**-6]  # head 2 of 4: 2^(-8 * 3 / 4)
        added = -numbers.value[0] * place.value
        assert "2^{-8 \\cdot 3 / 4}" in step.live
    else:
        assert place.value.tolist() == [eager_transformer.bucket(int(-d), 8, 8, False) for d in distance]
        table = checkpoint.model.decoder.relative_bias.weight[:, HEAD]
        np.testing.assert_array_equal(numbers.value, table.double().numpy())
        added = numbers.value[place.value.astype(int)]
        assert "below 4 have a bucket each" in str(step.text)
        assert "last of the 8" in str(step.text)
    np.testing.assert_allclose(step.result, scores.value + added, atol=1e-12)
    assert np.array_equal(found["mask"].operands[0].value, step.result)
    assert r"\tilde s_{ij}" in found["mask"].formula


@BOTH
def test_after_an_edit(options: dict[str, Any]) -> None:
    """Scaling is for the dot products; the position bias is added to what comes out, then the mask."""
    edit = Edit(
        (Cell(f"{SITE}.mask", (QUERY, 1), -np.inf), Cell(f"{SITE}.k", (HEAD, 0, 1), 2.0)),
        frozenset({SITE}),
        {SITE: 3.0},
    )
    checkpoint, trace = fresh(options, edit)
    found = steps(checkpoint, trace)
    assert {key for key, step in found.items() if step.edited} == {"k", "scores", "mask"}
    assert all(step.proof.holds for step in found.values())
    np.testing.assert_allclose(found["scores"].result, found["dots"].result / 3)
    plain = steps(*fresh(options))
    for key in ("scores", "position"):
        assert not np.allclose(found[key].result, plain[key].result)
    added, usual = (of["position"].result - of["scores"].result for of in (found, plain))
    np.testing.assert_allclose(added, usual, atol=1e-12)
    scope = run(list(found.values()))
    np.testing.assert_allclose(scope["pattern"].numpy(), found["weights"].result, atol=1e-5)
    assert all(step.proof.holds for step in layer_steps(checkpoint, trace, "decoder.1"))


def red(checkpoint: Checkpoint, trace: Trace) -> tuple[set[str], set[str]]:
    layer = layer_steps(checkpoint, trace, "decoder.1")
    return (
        {key for key, step in steps(checkpoint, trace).items() if not step.proof.holds},
        {step.key for step in layer if not step.proof.holds},
    )


@BOTH
def test_a_bias_that_was_not_the_models_turns_red(options: dict[str, Any]) -> None:
    """The slopes and buckets are computed anew: a model that added something else is found out through z."""
    checkpoint = tiny.checkpoint("decoder-only", max_positions=64, **options)
    if options is tiny.ALIBI:
        checkpoint.model.alibi_slopes = checkpoint.model.alibi_slopes.flip(0)
        trace = checkpoint.trace(TEXT)
    else:
        trace = checkpoint.trace(TEXT)
        checkpoint.model.decoder.relative_bias.weight.add_(torch.randn(8, 4))
    one, layer = red(checkpoint, trace)
    assert {"dots", "scores", "position", "mask", "weights", "z"} <= one
    assert not {"input", "q", "k", "v"} & one
    assert {"self.scores", "self.position", "self.weights", "self.z"} <= layer
    assert not {"self.packed", "self.heads"} & layer

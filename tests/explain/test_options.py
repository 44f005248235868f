"""Norms of queries and keys, partial rotation, parallel layers, offset norms: what steps say, edits and red proofs."""

import math
from typing import Any

import numpy as np
import pytest

from tests import tiny
from tests.explain.running import run
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, attention_steps, layer_steps, output_steps
from vizformer.explain.attention_layer import worse
from vizformer.explain.position_terms import angles, slowing, turn
from vizformer.explain.step import Proof
from vizformer.messages import N_
from vizformer.model import Cell, Edit, Trace

SITE, TEXT, QUERY = "decoder.1.self", "I have a cat.", 2
OPTIONS: dict[str, dict[str, Any]] = {
    "qwen3": tiny.QWEN3,
    "no-positions": {**tiny.QWEN3, "positions": "none"},
    "geglu": tiny.GEGLU,
    "turned": tiny.ROPE,
}
everywhere = pytest.mark.parametrize("name", OPTIONS)


def fresh(name: str, edit: Edit | None = None) -> tuple[Checkpoint, Trace]:
    checkpoint = tiny.checkpoint("decoder-only", **OPTIONS[name])
    return checkpoint, checkpoint.trace(TEXT, edit=edit)


def steps(checkpoint: Checkpoint, trace: Trace, head: int = 3) -> dict[str, Step]:
    return {step.key: step for step in attention_steps(checkpoint, trace, SITE, head, QUERY)}


def layer(checkpoint: Checkpoint, trace: Trace) -> dict[str, Step]:
    return {step.key: step for step in layer_steps(checkpoint, trace, "decoder.1")}


def red(found: dict[str, Step]) -> set[str]:
    return {key for key, step in found.items() if not step.proof.holds}


@everywhere
@pytest.mark.parametrize("tensor", ["q", "k", "v"])
def test_an_edit_is_marked_where_it_enters(name: str, tensor: str) -> None:
    """q and k are set after norm and rotation, v where it comes from its matrix."""
    head = 3 if tensor == "q" or OPTIONS[name] is tiny.ROPE else 1  # key/value heads are shared, but there
    where = (head, QUERY if tensor == "q" else 1, 0)
    checkpoint, trace = fresh(name, Edit((Cell(f"{SITE}.{tensor}", where, 3.0),)))
    found, whole = steps(checkpoint, trace), layer(checkpoint, trace)
    last = "_normed" if name == "no-positions" else "_turned"
    assert {key for key, step in found.items() if step.edited} == {tensor if tensor == "v" else f"{tensor}{last}"}
    marked = "self.packed" if tensor == "v" else f"self.{last[1:]}"
    assert {key for key, step in whole.items() if step.edited} == {marked}
    assert not red(found) | red(whole)
    scope = run(list(found.values()))
    np.testing.assert_allclose(scope["pattern"].numpy(), found["weights"].result, atol=1e-5)


@pytest.mark.parametrize("name", ["qwen3", "no-positions"])
def test_a_norm_that_was_not_the_models_turns_red(name: str) -> None:
    checkpoint, trace = fresh(name)
    checkpoint.model.get_parameter("decoder.layers.1.self_attention.q_norm.weight")[0] += 0.1
    turned = {"q_turned"} if name == "qwen3" else set()
    found = red(steps(checkpoint, trace))
    assert {"q", "q_normed", *turned, "scores", "z", "add"} <= found
    assert not {"k", "k_normed", "k_turned", "v"} & found
    assert {"self.packed", "self.normed", "self.z"} <= red(layer(checkpoint, trace))


@pytest.mark.parametrize("name", ["qwen3", "no-positions"])
def test_a_longer_query_is_no_longer_after_its_norm(name: str) -> None:
    checkpoint, trace = fresh(name)
    step = steps(checkpoint, trace)["q_normed"]
    before, weight = (operand.value for operand in step.operands)
    root = math.sqrt(float(np.square(before).mean()) + checkpoint.model.config.norm_eps)
    np.testing.assert_allclose(step.result, before / root * weight, rtol=1e-6, atol=1e-6)
    assert r"\hat q_i" in step.formula


def test_a_product_of_turned_rows_knows_the_distance_alone() -> None:
    config = tiny.config("decoder-only", **tiny.ROPE)
    turns, (q, k) = angles(config, 9), np.random.default_rng(0).normal(size=(2, 8))
    assert turn(q, turns[2]) @ turn(k, turns[5]) == pytest.approx(turn(q, turns[4]) @ turn(k, turns[7]))
    assert turn(q, turns[2]) @ turn(k, turns[5]) != pytest.approx(turn(q, turns[5]) @ turn(k, turns[2]))


def test_pairs_are_slowed_down_for_longer_texts() -> None:
    """llama3: fast pairs as they are, slow ones by the factor, the others in between; linear: all by the factor."""
    divided = slowing(tiny.config("decoder-only", **tiny.LLAMA3))
    assert divided is not None
    assert divided[0] == 1.0
    assert divided[-1] == 8.0
    assert (np.diff(divided) >= 0).all()
    assert ((divided > 1) & (divided < 8)).any()
    checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA3)
    trace = checkpoint.trace(TEXT)
    for step in (steps(checkpoint, trace)["q_turned"], layer(checkpoint, trace)["self.turned"]):
        assert "/ c_m" in step.formula
        assert any(np.array_equal(operand.value, divided) for operand in step.operands)
    linear = tiny.config("decoder-only", **tiny.LLAMA, rope_scaling="linear", rope_factor=3.0)
    plain = angles(tiny.config("decoder-only", **tiny.LLAMA), 7)
    np.testing.assert_allclose(angles(linear, 7), plain / 3)
    assert slowing(tiny.config("decoder-only", **tiny.LLAMA)) is None


def meanings(step: Step) -> list[str]:
    return [str(operand.meaning) for operand in step.operands]


def test_operands_are_called_by_what_they_are() -> None:
    checkpoint = tiny.checkpoint("encoder-decoder")
    trace = checkpoint.trace(TEXT, target="a cat")
    found = {step.key: step for step in layer_steps(checkpoint, trace, "decoder.1")}
    assert meanings(found["cross.q"])[0] == "the decoder's rows"
    assert meanings(found["cross.k"])[0] == meanings(found["cross.v"])[0] == "the encoder's output, one row per token"
    for residual in ("sequential", "none"):
        checkpoint = tiny.checkpoint("decoder-only", residual=residual)
        found = steps(checkpoint, checkpoint.trace(TEXT))
        assert meanings(found["add"])[-1] == "the output of attention"


def test_a_model_without_norms_is_not_said_to_have_one() -> None:
    checkpoint = tiny.checkpoint("decoder-only", norm_order="none", final_norm=False)
    found = steps(checkpoint, checkpoint.trace(TEXT))
    assert "norm" not in str(found["input"].text)


@pytest.mark.parametrize(
    ("architecture", "options", "said"),
    [
        ("decoder-only", {}, "the last row of the stack"),
        ("decoder-only", tiny.SCALED, "the scaled row"),
        ("encoder-only", tiny.BERT, "the transformed row"),
    ],
)
def test_the_row_that_becomes_logits_is_called_by_what_was_done_to_it(
    architecture: str, options: dict[str, Any], said: str
) -> None:
    checkpoint = tiny.checkpoint(architecture, **options)
    *before, logits = (
        step for step in output_steps(checkpoint, checkpoint.trace(TEXT), 1) if step.key != "probabilities"
    )
    assert meanings(logits)[0] == said
    assert not any(step.proof.direct for step in before)


def test_of_two_proofs_the_worse_one_is_shown() -> None:
    small, large = (Proof(N_("x"), difference, holds, True) for difference, holds in ((0.1, True), (0.5, False)))
    for one, other in ((small, large), (large, small)):
        assert (worse(one, other).difference, worse(one, other).holds) == (0.5, False)

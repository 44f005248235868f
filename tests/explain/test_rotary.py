"""Rotary positions and shared key/value heads in the arithmetic: what an edit touches, and what a proof notices."""

from functools import cache

import numpy as np
import pytest

from tests import tiny
from tests.explain.running import one_by_one
from vizformer.checkpoints import Checkpoint
from vizformer.explain import Step, attention_steps, layer_steps
from vizformer.explain.position_terms import angles, turn
from vizformer.model import Cell, Edit, Trace

SITE, TEXT = "decoder.1.self", "I have a cat."


@cache
def checkpoint() -> Checkpoint:
    return tiny.checkpoint("decoder-only", **tiny.LLAMA)


def steps(trace: Trace, head: int = 3, query: int = 2) -> dict[str, Step]:
    return {step.key: step for step in attention_steps(checkpoint(), trace, SITE, head, query)}


def test_the_score_depends_on_the_distance_only() -> None:
    config = tiny.config("decoder-only", **tiny.LLAMA)
    turns = angles(config, 12)
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, config.d_head))
    dots = {(i, j): turn(q, turns[i]) @ turn(k, turns[j]) for i in range(12) for j in range(12)}
    for i, j in dots:
        if i and j:
            assert dots[i, j] == pytest.approx(dots[i - 1, j - 1], abs=1e-12)
    assert dots[0, 1] != pytest.approx(dots[1, 0], abs=1e-3)


def test_query_heads_of_a_group_read_the_same_keys_and_values() -> None:
    trace = checkpoint().trace(TEXT)
    by_head = [steps(trace, head) for head in range(4)]
    for name in ("k", "k_turned", "v"):
        assert np.array_equal(by_head[0][name].result, by_head[1][name].result)
        assert np.array_equal(by_head[2][name].result, by_head[3][name].result)
        assert not np.allclose(by_head[1][name].result, by_head[2][name].result)
    assert not np.allclose(by_head[0]["q"].result, by_head[1]["q"].result)
    assert "heads 2 to 3" in str(by_head[3]["k"].text)


@pytest.mark.parametrize(
    ("tensor", "index", "marked", "packed"),
    [
        ("q", (3, 2, 0), {"q_turned"}, False),
        ("k", (1, 1, 0), {"k_turned"}, False),
        ("v", (1, 1, 0), {"v"}, True),
    ],
)
def test_an_edit_is_marked_where_it_enters(tensor: str, index: tuple[int, ...], marked: set[str], packed: bool) -> None:
    """q and k are set after the rotation; everything is worked out and proved again."""
    trace = checkpoint().trace(TEXT, edit=Edit((Cell(f"{SITE}.{tensor}", index, 3.0),)))
    found = steps(trace)
    assert {key for key, step in found.items() if step.edited} == marked
    assert all(step.proof.holds for step in found.values())
    for step, scope in one_by_one(list(found.values())):
        value = np.atleast_1d(np.asarray(scope[step.variable]))
        np.testing.assert_allclose(value, step.result, rtol=1e-5, atol=1e-5)
    layer = {step.key: step for step in layer_steps(checkpoint(), trace, "decoder.1")}
    assert layer["self.packed"].edited == packed
    assert layer["self.turned"].edited != packed
    assert all(step.proof.holds for step in layer.values())


def test_a_rotation_that_was_not_the_models_turns_red() -> None:
    """The angles are computed anew: a model that turned its vectors otherwise is found out."""
    model = tiny.checkpoint("decoder-only", **tiny.LLAMA)
    model.model.rope_sin = -model.model.rope_sin
    trace = model.trace(TEXT)
    red = {step.key for step in attention_steps(model, trace, SITE, 0, 2) if not step.proof.holds}
    assert {"q", "k", "q_turned", "k_turned", "z", "add"} <= red
    assert "v" not in red
    red = {step.key for step in layer_steps(model, trace, "decoder.1") if not step.proof.holds}
    assert "self.turned" in red

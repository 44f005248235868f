"""Activation patching: one number of the clean run at a time, against plain forwards, the gradient, and a known circuit."""

from typing import Any

import numpy as np
import pytest
import torch

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN
from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.patching import What, attribution_patches, patch_of, patch_runs
from vizformer.analysis.causes.prompt_pairs import EXAMPLES, PromptExample, PromptPair, prompt_pair
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch

KINDS_OF_MODEL: dict[str, dict[str, Any]] = {
    "translator": dict(architecture="encoder-decoder"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "BERT": dict(architecture="encoder-only", **tiny.BERT),
    "ALBERT": dict(architecture="encoder-only", **tiny.ALBERT),
    "OPT": dict(architecture="decoder-only", **tiny.OPT),
}
CLEAN, CORRUPTED, TARGET = [5, 6, 7, 8], [5, 9, 7, 4], [1, 7, 9]
WHATS: tuple[What, ...] = ("stream", "heads", "heads_by_position", "patterns")


def made(name: str):
    """A tiny random model and two runs of it."""
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    target = dict(target_ids=TARGET) if name == "translator" else {}
    clean, corrupted = (checkpoint.trace(ids=ids, **target) for ids in (CLEAN, CORRUPTED))
    return checkpoint, PromptPair(clean, corrupted, 2, 11, 13)


def patched_alone(checkpoint, pair: PromptPair, *patches: Patch) -> float:
    """What is recovered, by one ordinary forward."""
    target = dict(target_ids=TARGET) if len(pair.clean.tokens) == 2 else {}
    run = checkpoint.trace(ids=CORRUPTED, **target, edit=Edit(patches=patches))
    before, after, there = (float(x.logits[2, 11] - x.logits[2, 13]) for x in (pair.corrupted, run, pair.clean))
    return (after - before) / (there - before)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_each_cell_is_what_a_forward_of_its_own_recovers(name: str) -> None:
    checkpoint, pair = made(name)
    told = list[tuple[int, int]]()

    def hear(done: int, of: int) -> None:
        told.append((done, of))

    for kind in ("encoder", "decoder", "cross"):
        if (
            f"{'decoder' if kind == 'cross' else kind}.0.{'cross' if kind == 'cross' else 'self'}"
            not in pair.clean.sites
        ):
            continue
        for what in WHATS:
            if (what, kind) == ("stream", "cross"):
                continue
            told.clear()
            found = patch_runs(checkpoint, pair, what, kind, heard=hear)  # type: ignore[arg-type]
            assert told[-1] == (found.recovered.size, found.recovered.size)
            assert found.recovered.shape == found.estimate.shape
            row = found.names[1]
            if what == "stream":
                one, cell = Patch(row, (2,), pair.clean.residual(row)[2]), found.recovered[1, 2]
            elif what == "patterns":
                one, cell = Patch(f"{row}.pattern", (3,), pair.clean[row].pattern(3)), found.recovered[1, 3]
            elif what == "heads":
                one, cell = Patch(f"{row}.z", (3,), pair.clean[row].z(3)), found.recovered[1, 3]
            else:
                one, cell = Patch(f"{row}.z", (3, 2), pair.clean[row].z(3)[2]), found.recovered[1, 3, 2]
            assert cell == pytest.approx(patched_alone(checkpoint, pair, one), abs=1e-4)
            place = {"stream": (1, 2), "heads": (1, 3), "patterns": (1, 3), "heads_by_position": (1, 3, 2)}[what]
            assert patched_alone(checkpoint, pair, patch_of(pair, what, kind, place)) == pytest.approx(cell, abs=1e-4)  # type: ignore[arg-type]
            alone = patch_runs(checkpoint, pair, what, kind, layers=[1])  # type: ignore[arg-type]
            whole = slice(None) if what == "stream" else slice(1, 2)
            np.testing.assert_allclose(alone.recovered, found.recovered[whole], atol=1e-4)
            estimate = attribution_patches(checkpoint, pair, what, kind, layers=[1])  # type: ignore[arg-type]
            np.testing.assert_allclose(estimate, found.estimate[whole], atol=1e-6)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_everything_taken_from_the_other_run_is_the_other_run(name: str) -> None:
    checkpoint, pair = made(name)
    stack = "decoder" if name in ("LLaMA", "OPT") else "encoder"
    everything = Patch(f"{stack}.0.pre", (), pair.clean.residual(f"{stack}.0.pre"))
    assert patched_alone(checkpoint, pair, everything) == pytest.approx(1.0, abs=1e-5)
    run = tiny.checkpoint(**KINDS_OF_MODEL[name]).trace(
        ids=CORRUPTED, **(dict(target_ids=TARGET) if name == "translator" else {}), edit=Edit(patches=(everything,))
    )
    tiny.assert_close(run.logits, pair.clean.logits, 1e-5)


@pytest.mark.parametrize("name", ["translator", "LLaMA"])
def test_the_last_row_of_the_stream_recovers_all_and_its_estimate_is_exact(name: str) -> None:
    """The logits are linear in it."""
    checkpoint, pair = made(name)
    found = patch_runs(checkpoint, pair, "stream", "decoder")
    assert found.names[-1] == "decoder.final"
    expected = np.eye(found.recovered.shape[1])[2]
    np.testing.assert_allclose(found.recovered[-1], expected, atol=1e-4)
    np.testing.assert_allclose(found.estimate[-1], expected, atol=1e-4)


def test_the_estimate_is_the_slope_towards_the_clean_run() -> None:
    checkpoint, pair = made("LLaMA")
    found = patch_runs(checkpoint, pair, "heads", "decoder")
    for layer, name in enumerate(found.names):
        change = pair.clean[name].z(1) - pair.corrupted[name].z(1)
        slopes = [
            patched_alone(checkpoint, pair, Patch(f"{name}.z", (1,), sign * 1e-2 * change, adds=True)) / 1e-2
            for sign in (1, -1)
        ]
        assert found.estimate[layer, 1] == pytest.approx((slopes[0] - slopes[1]) / 2, abs=2e-2)
    assert found.error == pytest.approx(np.abs(found.estimate - found.recovered).max())
    assert 0 < found.mean_error < found.error


def by_hand(clean: str, corrupted: str, what: What):
    checkpoint = load("induction-by-hand")
    return patch_runs(checkpoint, prompt_pair(checkpoint, clean, corrupted), what, "decoder")


def test_patching_names_the_two_heads_of_the_circuit_built_by_hand() -> None:
    """What stands before the letter differs: the previous-token head tells it, the induction head finds it."""
    found = by_hand("c d f e c", "f d c e c", "heads")
    for place, recovered in np.ndenumerate(found.recovered):
        assert recovered == pytest.approx(1.0 if place in (PREVIOUS_TOKEN, INDUCTION) else 0.0, abs=0.05), place
    patterns = by_hand("c d f e c", "f d c e c", "patterns").recovered
    for place, recovered in np.ndenumerate(patterns):  # the previous-token head looks at the same place in both
        assert recovered == pytest.approx(1.0 if place == INDUCTION else 0.0, abs=0.05), place


def test_the_quick_estimate_misses_the_head_whose_reader_is_saturated() -> None:
    """The induction head's softmax is as good as a choice: its gradient says nothing of the previous-token head."""
    found = by_hand("c d f e c", "f d c e c", "heads")
    assert found.estimate[INDUCTION] == pytest.approx(1.0, abs=0.05)
    assert found.recovered[PREVIOUS_TOKEN] > 0.95
    assert found.estimate[PREVIOUS_TOKEN] < 0.05
    assert found.error > 0.9


def test_only_the_induction_head_carries_a_letter_that_differs() -> None:
    found = by_hand("a b c d a b c", "a b c e a b c", "heads")
    for place, recovered in np.ndenumerate(found.recovered):
        assert recovered == pytest.approx(1.0 if place == INDUCTION else 0.0, abs=0.05), place


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.model}: {one.clean}")
def test_the_model_answers_the_prompts_of_an_example_differently(example: PromptExample) -> None:
    pair = prompt_pair(load(example.model), example.clean, example.corrupted, target=example.target)
    for run, token, against in ((pair.clean, pair.answer, pair.other), (pair.corrupted, pair.other, pair.answer)):
        p = run.logits[pair.row].softmax(-1)
        assert p.argmax() == token
        assert p[token] > 0.3
        assert p[token] > 2 * p[against]


def test_prompts_that_cannot_be_compared_are_refused() -> None:
    checkpoint = load("stories")
    with pytest.raises(TraceError, match="equally many tokens; they have 5 and 6"):
        prompt_pair(checkpoint, "Tom was sad because", "Lily was sad because")
    with pytest.raises(TraceError, match="same for both prompts"):
        prompt_pair(checkpoint, "The boy said that", "The boy said that")
    with pytest.raises(TraceError, match="There is no position 99"):
        prompt_pair(checkpoint, "The boy said that", "The girl said that", row=99)
    with pytest.raises(TraceError, match="There is no token 1000000"):
        prompt_pair(checkpoint, "The boy said that", "The girl said that", answer=10**6)
    with pytest.raises(TraceError, match="what the decoder has read"):
        prompt_pair(load("zh-en"), "我有一只猫。", "我有一只狗。")
    tiny_one, pair = made("LLaMA")
    edited = tiny_one.trace(ids=CLEAN, edit=Edit(patches=(Patch("decoder.0.pre", (0,), 1.0),)))
    with pytest.raises(TraceError, match="no number was set by hand"):
        PromptPair(edited, pair.corrupted, 2, 11, 13)
    for what, kind in (("heads", "cross"), ("stream", "encoder")):
        with pytest.raises(TraceError, match=f"no {kind} attention"):
            patch_runs(tiny_one, pair, what, kind)  # type: ignore[arg-type]


def test_layers_and_cells_that_are_not_there_are_refused() -> None:
    checkpoint, pair = made("LLaMA")
    for layers in ([], [2], [-1]):
        with pytest.raises(TraceError, match="layers 0 to 1"):
            attribution_patches(checkpoint, pair, "heads", "decoder", layers=layers)
    for what, cell in (
        ("stream", (3, 0)),
        ("stream", (0, 4)),
        ("heads", (0, 4)),
        ("heads", (0,)),
        ("heads", (0, 0, 0)),
    ):
        with pytest.raises(TraceError, match="no cell"):
            patch_of(pair, what, "decoder", cell)  # type: ignore[arg-type]


def test_what_heard_raises_ends_the_patching_and_nothing_is_left_behind() -> None:
    checkpoint, pair = made("LLaMA")
    before = {name: tensor.clone() for name, tensor in checkpoint.model.state_dict().items()}

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        patch_runs(checkpoint, pair, "heads", "decoder", heard=stop)
    patch_runs(checkpoint, pair, "heads", "decoder")
    assert all(torch.equal(tensor, before[name]) for name, tensor in checkpoint.model.state_dict().items())
    assert all(parameter.grad is None for parameter in checkpoint.model.parameters())

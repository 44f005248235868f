"""Activation patching: one number of the clean run at a time, against plain forwards, the gradient, and a known circuit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN
from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, sweep
from vizformer.analysis.causes.batches import patched_logits
from vizformer.analysis.causes.patching import What, attribution_patches, patch_of, patch_runs
from vizformer.analysis.causes.prompt_pairs import EXAMPLES, PromptExample, PromptPair, prompt_pair
from vizformer.checkpoints import save
from vizformer.errors import TraceError
from vizformer.model import Edit, Patch

KINDS_OF_MODEL: dict[str, dict[str, Any]] = {
    "translator": dict(architecture="encoder-decoder"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "BERT": dict(architecture="encoder-only", **tiny.BERT),
    "T5": dict(architecture="encoder-decoder", **tiny.T5),
    "ALiBi": dict(architecture="decoder-only", **tiny.ALIBI),
    "window": dict(architecture="decoder-only", **{**tiny.GEGLU, "sliding_window": 2, "sliding_layers": (1,)}),
    "turned": dict(architecture="decoder-only", **tiny.ROPE),
}
CLEAN, CORRUPTED, TARGET = [5, 6, 7, 8], [5, 9, 7, 4], [1, 7, 9]
WHATS: tuple[What, ...] = ("stream", "heads", "heads_by_position", "patterns")


def made(name: str):
    """A tiny random model and two runs of it."""
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    target = dict(target_ids=TARGET) if name in ("translator", "T5") else {}
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
    stack = next(iter(pair.clean.tokens))
    everything = [Patch(f"{stack}.0.pre", (), pair.clean.residual(f"{stack}.0.pre"))]
    assert patched_alone(checkpoint, pair, *everything) == pytest.approx(1.0, abs=1e-5)
    run = tiny.checkpoint(**KINDS_OF_MODEL[name]).trace(
        ids=CORRUPTED,
        **(dict(target_ids=TARGET) if name in ("translator", "T5") else {}),
        edit=Edit(patches=tuple(everything)),
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


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_a_run_that_begins_at_its_patch_is_the_whole_run(name: str) -> None:
    """Each row of the output, of patches of whole heads, of one position, of the sublayers and of what a pattern mixes."""
    checkpoint, pair = made(name)
    stack = "decoder" if "decoder" in pair.clean.tokens else "encoder"
    runs: list[list[Patch]] = [[]]
    for layer in range(2):
        z = pair.clean[f"{stack}.{layer}.self"].z(1)
        runs += [[Patch(f"{stack}.{layer}.self.z", (1,), z)], [Patch(f"{stack}.{layer}.self.z", (2, 1), z[2])]]
        runs += [[Patch(f"{stack}.{layer}.self.k", (0,), 0.0)], [Patch(f"{stack}.{layer}.feedforward", (2,), 1.0)]]
        runs += [[Patch(f"{stack}.{layer}.self.pattern", (0, 2), pair.clean[f"{stack}.{layer}.self"].pattern(0)[2])]]
        runs += [[Patch(f"{stack}.{layer}.self", (), 0.0), Patch(f"{stack}.{layer}.pre", (1,), 0.5, adds=True)]]
    runs += [[Patch("encoder.1.self.z", (0,), 0.0)]] if "encoder" in pair.clean.tokens else []
    whole = [
        checkpoint.trace(
            ids=CORRUPTED,
            **(dict(target_ids=TARGET) if len(pair.clean.tokens) == 2 else {}),
            edit=Edit(patches=tuple(run)),
        ).logits
        for run in runs
    ]
    for row in (None, 0, 1, 2):
        seen = set()
        for there, logits in patched_logits(checkpoint, pair.corrupted, runs, row):
            seen |= set(there)
            for at, found in zip(there, logits, strict=True):
                # other shapes are summed in another order: off by 1.04e-5 where the processor has no AVX
                tiny.assert_close(found, whole[at] if row is None else whole[at][row], 2e-5)
        assert seen == set(range(len(runs)))


@pytest.mark.parametrize("what", ["heads", "stream", "without"])
def test_hooks_on_transformers_say_the_same(what: str, tmp_path: Path) -> None:
    """A GPT-2 of its own, patched as one does it in a notebook."""
    transformers = pytest.importorskip("transformers")
    checkpoint = tiny.checkpoint(
        "decoder-only", positions="learned", norm_order="pre", final_norm=True, activation="gelu_tanh"
    )
    save(checkpoint, tmp_path / "gpt2", torch.float32, layout="hugging-face")
    model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "gpt2").eval()
    pair = PromptPair(*(checkpoint.trace(ids=ids) for ids in (CLEAN, CORRUPTED)), 3, 11, 13)
    kept: dict[str, torch.Tensor] = {}

    def run(ids: list[int], *hooks: tuple[torch.nn.Module, Any]) -> torch.Tensor:
        handles = [module.register_forward_pre_hook(hook) for module, hook in hooks]
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, 3].double()
        for handle in handles:
            handle.remove()
        return logits

    places = {
        f"{kind}{n}": (b.attn.c_proj if kind == "z" else b)
        for kind in ("z", "x")
        for n, b in enumerate(model.transformer.h)
    }
    clean = run(
        CLEAN, *((module, lambda _, x, name=name: kept.update({name: x[0]})) for name, module in places.items())
    )
    corrupted = run(CORRUPTED)

    def patched(name: str, where: tuple[Any, ...], zero: bool = False) -> torch.Tensor:
        def hook(_: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            x = given[0].clone()
            x[where] = 0.0 if zero else kept[name][where]
            return (x, *given[1:])

        return run(CLEAN if zero else CORRUPTED, (places[name], hook))

    def difference(logits: torch.Tensor) -> float:
        return float(logits[11] - logits[13])

    moved = difference(clean) - difference(corrupted)
    if what == "stream":
        found = patch_runs(checkpoint, pair, "stream", "decoder").recovered[:2]
        runs = [[patched(f"x{layer}", (0, at)) for at in range(4)] for layer in range(2)]
    elif what == "heads":
        found = patch_runs(checkpoint, pair, "heads", "decoder").recovered
        runs = [[patched(f"z{layer}", (0, ..., slice(4 * h, 4 * h + 4))) for h in range(4)] for layer in range(2)]
    else:
        parts = [Part(f"decoder.{layer}.self", head) for layer in range(2) for head in range(4)]
        effects = sweep(checkpoint, pair.clean, 3, 11, parts=parts, loss=False)
        expected = [
            patched(f"z{n // 4}", (0, ..., slice(4 * (n % 4), 4 * (n % 4) + 4)), zero=True)[11] for n in range(8)
        ]
        np.testing.assert_allclose([one.logit for one in effects], [float(x - clean[11]) for x in expected], atol=1e-5)
        assert all(one.loss is None for one in effects)
        return
    expected = [[(difference(logits) - difference(corrupted)) / moved for logits in row] for row in runs]
    # shares of a small difference of logits, which multiply how both round
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    assert np.abs(found).max() > 0.1


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

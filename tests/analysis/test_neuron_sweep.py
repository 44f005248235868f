"""Neurons and tokens taken out one by one: against plain forwards, and the circuit that was built by hand."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, effect
from vizformer.analysis.causes.neurons_left_out import mean_neurons, neuron_estimates, neuron_sweep
from vizformer.analysis.causes.part_outputs import Listener
from vizformer.analysis.causes.tokens_left_out import token_sweep, ways
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit, Patch

KINDS_OF_MODEL = {
    "translator": dict(architecture="encoder-decoder", activation="gelu"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "shared keys": dict(architecture="decoder-only", **tiny.SHARED_KEYS),
    "Gemma 4": dict(architecture="decoder-only", **tiny.GEMMA4),
    "small Gemma 4": dict(architecture="decoder-only", **tiny.GEMMA4_SMALL),
    "Gemma 3n": dict(architecture="decoder-only", **tiny.GEMMA3N),
    "short Gemma 3n": dict(architecture="decoder-only", **tiny.GEMMA3N_SHORT),
    "parallel": dict(architecture="decoder-only", norm_order="pre", residual="parallel"),
    "no residual": dict(architecture="decoder-only", norm_order="none", residual="none"),
    "BERT": dict(architecture="encoder-only", **tiny.BERT),
    "normed stream": dict(architecture="decoder-only", embedding_norm=True, last_norm=False),
    "T5": dict(architecture="encoder-decoder", **tiny.T5),
}
ROW, TOKEN = 1, 11


def made(name: str):
    checkpoint = tiny.checkpoint(**KINDS_OF_MODEL[name])
    return checkpoint, traced(checkpoint, [5, 6, 7, 8])


def traced(checkpoint, ids, target=(1, 7, 9), edit=None):
    both = dict(target_ids=list(target)) if checkpoint.model.config.architecture == "encoder-decoder" else {}
    return checkpoint.trace(ids=ids, **both, edit=edit)


def plain(trace, logits) -> list[float]:
    one = effect(trace, Part("x"), logits, ROW, TOKEN)
    return [one.divergence, one.logit, one.probability]


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_each_neuron_is_a_forward_of_its_own(name: str) -> None:
    checkpoint, trace = made(name)
    for stack in trace.tokens:
        for layer, means in ((0, None), (1, torch.linspace(-1, 1, 24))):
            told = list[tuple[int, int]]()
            found = neuron_sweep(
                checkpoint, trace, stack, layer, ROW, TOKEN, means, heard=lambda *heard, told=told: told.append(heard)
            )  # type: ignore[arg-type]
            assert told[-1] == (24 - found.still, 24 - found.still)
            for k in (0, 7, 23):
                value = 0.0 if means is None else float(means[k])
                edit = Edit(patches=(Patch(f"{stack}.{layer}.feedforward.hidden", (None, k), value),))
                expected = plain(trace, traced(checkpoint, [5, 6, 7, 8], edit=edit).logits)
                shown = [found.divergence[k], found.logit[k], found.probability[k]]
                assert shown == pytest.approx(expected, abs=2e-5)
            assert found.divergence.max() > 1e-6
    some = neuron_sweep(checkpoint, trace, stack, 1, ROW, TOKEN, means, neurons=[23, 3])  # type: ignore[arg-type]
    assert some.divergence == pytest.approx(found.divergence[[23, 3]], abs=1e-6)
    assert found.strongest(2)[0] == int(found.divergence.argmax())


def test_neurons_that_are_silent_are_not_run() -> None:
    checkpoint, trace = made("parallel")  # of ReLU
    told = list[tuple[int, int]]()
    found = neuron_sweep(checkpoint, trace, "decoder", 0, ROW, TOKEN, heard=lambda *heard: told.append(heard))
    assert 0 < found.still < 24
    assert told[-1] == (24 - found.still,) * 2
    assert (found.output == 0).sum() == found.still
    assert (found.divergence[found.output == 0] == 0).all()


@pytest.mark.parametrize("name", ["translator", "LLaMA", "BERT"])
def test_the_estimate_is_the_slope_of_the_log_probability(name: str) -> None:
    checkpoint, trace = made(name)
    means = torch.linspace(-1, 1, 24)
    for stack in trace.tokens:
        found = neuron_estimates(checkpoint, trace, stack, 0, ROW, TOKEN, means)  # type: ignore[arg-type]
        assert found.shape == (24,)
        tensor = f"{stack}.0.feedforward.hidden"
        listener = Listener(names=frozenset({tensor}))
        traced(checkpoint, [5, 6, 7, 8], edit=listener)
        for k in (2, 19):
            change = means[k] - listener.heard[tensor][0, :, k]
            ends = [
                traced(
                    checkpoint, [5, 6, 7, 8], edit=Edit(patches=(Patch(tensor, (None, k), sign * change, adds=True),))
                )
                for sign in (0.02, -0.02)
            ]
            slope = np.subtract(*(float(run.logits[ROW].double().log_softmax(-1)[TOKEN]) for run in ends)) / 0.04
            assert found[k] == pytest.approx(slope, abs=2e-4, rel=2e-2)
    exact = neuron_sweep(checkpoint, trace, stack, 0, ROW, TOKEN, means)  # type: ignore[arg-type]
    before = float(trace.logits[ROW].softmax(-1)[TOKEN])
    assert np.corrcoef(found, np.log1p(exact.probability / before))[0, 1] > 0.9


def test_means_are_those_of_all_rows_of_the_other_texts() -> None:
    checkpoint, trace = made("parallel")
    other = traced(checkpoint, [9, 4])
    means = mean_neurons(checkpoint, [trace, other], "decoder", 1)
    rows = []
    for run in (trace, other):
        block = checkpoint.model.decoder.layers[1]
        read = block.feedforward_norm(run.residual("decoder.1.pre"))
        rows.append(torch.relu(block.feedforward.W_in(read)))
    tiny.assert_close(means, torch.cat(rows).mean(0))


def test_the_blocks_of_a_sweep_can_be_ended_and_what_is_not_there_is_refused() -> None:
    checkpoint, trace = made("LLaMA")

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        neuron_sweep(checkpoint, trace, "decoder", 0, ROW, TOKEN, heard=stop)
    for stack, layer in (("decoder", 2), ("decoder", -1), ("encoder", 0)):
        with pytest.raises(TraceError, match="nothing called"):
            neuron_sweep(checkpoint, trace, stack, layer, ROW, TOKEN)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="neurons 0 to 23"):
        neuron_sweep(checkpoint, trace, "decoder", 0, ROW, TOKEN, neurons=[24])
    edited = traced(checkpoint, [5, 6, 7, 8], edit=Edit(cells=(Cell("decoder.0.pre", (0, 0), 1.0),)))
    for sweep in (
        lambda: neuron_sweep(checkpoint, edited, "decoder", 0, ROW, TOKEN),
        lambda: token_sweep(checkpoint, edited, "decoder", ROW, TOKEN, "unseen"),
    ):
        with pytest.raises(TraceError, match="set by hand"):
            sweep()
    experts = tiny.checkpoint("decoder-only", **tiny.MIXTRAL)
    with pytest.raises(TraceError, match="mixture of 5 experts"):
        neuron_sweep(experts, traced(experts, [5, 6, 7, 8]), "decoder", 0, ROW, TOKEN)
    with pytest.raises(TraceError, match="choose another way"):
        token_sweep(checkpoint, trace, "decoder", ROW, TOKEN, "mask")
    with pytest.raises(TraceError, match="no stack called encoder"):
        token_sweep(checkpoint, trace, "encoder", ROW, TOKEN, "unseen")
    with pytest.raises(TraceError, match="no position 4"):
        token_sweep(checkpoint, trace, "decoder", 4, TOKEN, "unseen")
    with pytest.raises(TraceError, match="no position -5"):
        token_sweep(checkpoint, trace, "decoder", -5, TOKEN, "unseen")
    for row in (0, 3):  # the same row, counted from the end
        assert token_sweep(checkpoint, trace, "decoder", row, TOKEN, "unseen") == token_sweep(
            checkpoint, trace, "decoder", row - 4, TOKEN, "unseen"
        )


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(2)
def test_each_token_is_a_forward_of_its_own(name: str) -> None:
    checkpoint, trace = made(name)
    for stack in trace.tokens:
        possible = ways(checkpoint, stack)  # type: ignore[arg-type]
        assert possible == (("mask", "unseen") if name == "BERT" else ("unseen",))
        for way in possible:
            effects = token_sweep(checkpoint, trace, stack, ROW, TOKEN, way)  # type: ignore[arg-type]
            assert [one.position for one in effects] == list(range(len(trace.tokens[stack])))
            for one in effects:
                ids = {key: [token.id for token in tokens] for key, tokens in trace.tokens.items()}
                cells: tuple[Cell, ...] = ()
                if way == "unseen":
                    seen_from = [site for site in trace.sites if site.endswith("cross") or site.startswith(stack)]
                    if stack == "decoder":
                        seen_from = [site for site in seen_from if not site.endswith("cross")]
                    cells = tuple(
                        Cell(f"{site}.mask", (query, one.position), -np.inf)
                        for site in seen_from
                        for query in range(trace[site].q.shape[1])
                    )
                else:
                    ids[stack][one.position] = checkpoint.model.config.mask_id
                first = next(iter(ids.values()))
                run = traced(checkpoint, first, ids.get("decoder", ()), Edit(cells=cells))
                shown = [one.divergence, one.logit, one.probability]
                assert shown == pytest.approx(plain(trace, run.logits), abs=2e-5), (way, one.position)
                assert one.best.id == int(run.logits[ROW].argmax())


def test_the_circuit_built_by_hand_needs_the_letter_that_it_says_and_the_one_before() -> None:
    checkpoint = load("induction-by-hand")
    trace = checkpoint.trace("c d f e c")  # says d
    row, token = 5, int(trace.logits[5].argmax())
    effects = token_sweep(checkpoint, trace, "decoder", row, token, "unknown")
    needed = {one.position for one in effects if one.probability < -0.5}
    assert needed == {1, 2, 5}  # c, d, and the c that asks
    unseen = token_sweep(checkpoint, trace, "decoder", row, token, "unseen")
    assert {one.position for one in unseen if one.probability < -0.5} == {
        1,
        2,
    }  # nobody has to look at the one that asks

"""Tokens taken out one by one: against plain forwards, and the circuit that was built by hand."""

import numpy as np
import pytest

from tests import tiny
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, effect, token_sweep, ways
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit

KINDS_OF_MODEL = {
    "translator": dict(architecture="encoder-decoder", activation="gelu"),
    "LLaMA": dict(architecture="decoder-only", **tiny.LLAMA),
    "no residual": dict(architecture="decoder-only", norm_order="none", residual="none"),
    "BERT": dict(architecture="encoder-only", **tiny.BERT),
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


def test_a_sweep_can_be_ended_and_what_is_not_there_is_refused() -> None:
    checkpoint, trace = made("LLaMA")

    def stop(done: int, of: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        token_sweep(checkpoint, trace, "decoder", ROW, TOKEN, "unseen", heard=stop)
    edited = traced(checkpoint, [5, 6, 7, 8], edit=Edit(cells=(Cell("decoder.0.pre", (0, 0), 1.0),)))
    with pytest.raises(TraceError, match="set by hand"):
        token_sweep(checkpoint, edited, "decoder", ROW, TOKEN, "unseen")
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

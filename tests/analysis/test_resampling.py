"""Outputs of other texts in the place of parts: identities, a plain recomputation, and the circuit built by hand."""

import numpy as np
import pytest
import torch

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN
from tests import tiny
from tests.analysis.test_ablation import KINDS_OF_MODEL, made
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, effect, parts_of, without
from vizformer.analysis.causes.other_texts import read_other_texts
from vizformer.analysis.causes.part_outputs import outputs_of
from vizformer.analysis.causes.resampling import (
    draw_outputs,
    resample_sweep,
    resampled_effect,
    resampled_logits,
)
from vizformer.analysis.corpus_heads import bundled_corpus
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit, Patch


def again(checkpoint, trace, *patches: Patch):
    ids = {stack: [token.id for token in tokens] for stack, tokens in trace.tokens.items()}
    target = dict(target_ids=ids["decoder"]) if len(ids) == 2 else {}
    return checkpoint.trace(ids=next(iter(ids.values())), **target, edit=Edit(patches=patches))


def other_text(name: str, checkpoint):
    target = dict(target_ids=[1, 5, 5]) if name == "post-norm" else {}
    return checkpoint.trace(ids=[9, 4, 8], **target)


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(3)
def test_its_own_outputs_in_the_place_of_every_part_change_nothing(name: str) -> None:
    checkpoint, trace = made(name)
    own = outputs_of(checkpoint, trace)
    assert set(own) == set(parts_of(trace))
    drawn = draw_outputs(trace, [own], draws=2)
    for part in parts_of(trace):
        logits = resampled_logits(checkpoint, trace, [part], drawn)
        tiny.assert_close(logits, trace.logits.expand_as(logits), 1e-5)
    tiny.assert_close(resampled_logits(checkpoint, trace, parts_of(trace), drawn)[1], trace.logits, 1e-5)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_the_effect_is_the_mean_of_plain_runs_and_the_spread_their_deviation(name: str) -> None:
    checkpoint, trace = made(name)
    others = [outputs_of(checkpoint, other_text(name, checkpoint)), outputs_of(checkpoint, trace)]
    drawn = draw_outputs(trace, others, draws=5, seed=3)
    told = list[tuple[int, int]]()
    effects = resample_sweep(checkpoint, trace, 2, 11, drawn, heard=lambda *heard: told.append(heard))
    assert told[-1] == (5 * len(effects), 5 * len(effects))
    for one in effects:
        place = (one.part.sublayer, ()) if one.part.head is None else (f"{one.part.sublayer}.z", (one.part.head,))
        runs = [again(checkpoint, trace, Patch(*place, outputs[one.part])).logits for outputs in drawn]
        plain = [effect(trace, one.part, logits, 2, 11) for logits in runs]
        assert one.divergence == pytest.approx(np.mean([each.divergence for each in plain]), abs=1e-6)
        assert one.spread == pytest.approx(np.std([each.divergence for each in plain]), abs=1e-6)
        assert one.logit == pytest.approx(np.mean([each.logit for each in plain]), abs=1e-5)
        if plain[0].loss is None:
            assert one.loss is None
        else:
            assert one.loss == pytest.approx(np.mean([each.loss for each in plain]), abs=1e-6)
    assert max(one.spread for one in effects) > 1e-4  # (one of the two texts is this one itself)


def test_a_position_takes_the_row_of_its_own_number_and_a_drawn_one_after_the_end() -> None:
    checkpoint, trace = made("pre-norm")
    short, part = outputs_of(checkpoint, checkpoint.trace(ids=[9, 4, 8])), Part("decoder.1.self", 2)
    first, second = draw_outputs(trace, [short], draws=2, seed=1)
    for outputs in (first, second):
        assert torch.equal(outputs[part][:3], short[part])
        assert all(any(torch.equal(row, known) for known in short[part]) for row in outputs[part][3:])
    same = draw_outputs(trace, [short], draws=2, seed=1)
    assert all(torch.equal(a[part], b[part]) for a, b in zip((first, second), same, strict=True))
    many = draw_outputs(trace, [short], draws=20, seed=2)
    assert len({tuple(outputs[part][4].tolist()) for outputs in many}) > 1


def test_numbers_set_by_hand_hold_in_every_draw() -> None:
    checkpoint, trace = made("pre-norm")
    edit = Edit(cells=(Cell("decoder.0.pre", (1, 2), 3.0),), temperatures={"decoder.1.self": 2.0})
    edited = checkpoint.trace(ids=[token.id for token in trace.tokens["decoder"]], edit=edit)
    drawn = draw_outputs(edited, [outputs_of(checkpoint, checkpoint.trace(ids=[9, 4, 8]))], draws=3)
    nothing = resampled_logits(checkpoint, edited, [], drawn)
    tiny.assert_close(nothing, edited.logits.expand_as(nothing), 1e-5)


def test_what_is_not_there_is_refused() -> None:
    checkpoint, trace = made("pre-norm")
    drawn = draw_outputs(trace, [outputs_of(checkpoint, trace)], draws=1)
    for part in (Part("decoder.9.self"), Part("decoder.0.self", 4)):
        with pytest.raises(TraceError, match="nothing called"):
            resampled_logits(checkpoint, trace, [part], drawn)
    with pytest.raises(TraceError, match="no other text"):
        draw_outputs(trace, [], draws=1)


def test_the_two_heads_built_by_hand_are_named_and_zero_agrees() -> None:
    checkpoint = load("induction-by-hand")
    trace = checkpoint.trace("a b c d a b c")
    row, token = len(trace.logits) - 1, int(trace.logits[-1].argmax())
    others = [outputs_of(checkpoint, checkpoint.trace(text)) for text in ("e f g h i j k l", "h g h g f e", "k l m n")]
    drawn = draw_outputs(trace, others, draws=8)
    heads = [part for part in parts_of(trace) if part.head is not None]
    effects = resample_sweep(checkpoint, trace, row, token, drawn, parts=heads)
    named = {f"decoder.{layer}.self": head for layer, head in (PREVIOUS_TOKEN, INDUCTION)}
    for one in effects:
        works = named[one.part.sublayer] == one.part.head
        assert (one.probability < -0.3) == works, one
        assert works or one.divergence < 0.05
    both = resampled_effect(checkpoint, trace, [Part(site, head) for site, head in named.items()], drawn, row, token)
    assert both.probability < -0.9
    assert without(checkpoint, trace, [Part("decoder.1.self", 2)]).logits[row].softmax(-1)[token] < 0.5


def test_other_texts_are_cut_until_the_model_can_read_them() -> None:
    checkpoint = load("induction-by-hand")  # of 48 positions
    passages = bundled_corpus("en").passages
    traces = read_other_texts(checkpoint, passages, 12)
    assert len(traces) == 12
    assert all(12 <= len(trace.logits) <= 48 for trace in traces)
    assert len(read_other_texts(checkpoint, passages[:3], 12)) == 3

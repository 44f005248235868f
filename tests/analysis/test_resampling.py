"""Outputs of other texts in the place of parts: identities, and the circuit built by hand."""

import numpy as np
import pytest
import torch

from recipes.handmade_models import INDUCTION, PREVIOUS_TOKEN
from tests import tiny
from tests.analysis.test_ablation import KINDS_OF_MODEL, made
from tests.bundled import load
from vizformer.analysis.causes.ablation import Part, parts_of, without
from vizformer.analysis.causes.part_outputs import draw_outputs, outputs_of, read_other_texts
from vizformer.analysis.corpus_heads import bundled_corpus
from vizformer.errors import TraceError


@pytest.mark.parametrize("name", KINDS_OF_MODEL)
@pytest.mark.sample(3)
def test_its_own_outputs_in_the_place_of_every_part_change_nothing(name: str) -> None:
    checkpoint, trace = made(name)
    own = outputs_of(checkpoint, trace)
    assert set(own) == set(parts_of(trace))
    (drawn,) = draw_outputs(trace, [own], draws=1)
    for parts in ([part] for part in parts_of(trace)):
        tiny.assert_close(without(checkpoint, trace, parts, drawn).logits, trace.logits, 1e-5)
    tiny.assert_close(without(checkpoint, trace, parts_of(trace), drawn).logits, trace.logits, 1e-5)


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


def test_there_must_be_another_text() -> None:
    __, trace = made("pre-norm")
    with pytest.raises(TraceError, match="no other text"):
        draw_outputs(trace, [], draws=1)


def test_the_two_heads_built_by_hand_are_named() -> None:
    checkpoint = load("induction-by-hand")
    trace = checkpoint.trace("a b c d a b c")
    token = int(trace.logits[-1].argmax())
    others = [outputs_of(checkpoint, checkpoint.trace(text)) for text in ("e f g h i j k l", "h g h g f e", "k l m n")]
    drawn = draw_outputs(trace, others, draws=8)
    named = {f"decoder.{layer}.self": head for layer, head in (PREVIOUS_TOKEN, INDUCTION)}
    before = float(trace.logits[-1].softmax(-1)[token])
    for part in parts_of(trace):
        if part.head is not None:
            runs = [without(checkpoint, trace, [part], outputs).logits[-1].softmax(-1) for outputs in drawn]
            change = np.mean([float(one[token]) for one in runs]) - before
            assert (change < -0.3) == (named[part.sublayer] == part.head), part
    assert float(without(checkpoint, trace, [Part("decoder.1.self", 2)]).logits[-1].softmax(-1)[token]) < 0.5


def test_other_texts_are_cut_until_the_model_can_read_them() -> None:
    checkpoint = load("induction-by-hand")  # of 48 positions
    passages = bundled_corpus("en").passages
    traces = read_other_texts(checkpoint, passages, 12)
    assert len(traces) == 12
    assert all(12 <= len(trace.logits) <= 48 for trace in traces)
    assert len(read_other_texts(checkpoint, passages[:3], 12)) == 3

"""The whole model as one picture: every number of it is the trace's, and what is left out is left out by rule."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.heads.measures import Rest, find_rest
from vizformer.analysis.one_forward import picture_numbers
from vizformer.analysis.one_forward.picture_numbers import HEADS, SHOWN, apart, forward_picture, shown_layers

CASES = {
    "zh-en": "I have a cat.",
    "stories": "The dog was tired, so it went to",
    "cloze": "She opened the [MASK].",
}


@pytest.mark.parametrize("name", CASES)
def test_every_number_is_the_traces(name):
    checkpoint = load(name)
    trace = checkpoint.trace(CASES[name])
    found = forward_picture(checkpoint, trace)
    assert [lane.stack for lane in found.lanes] == [s for s in ("encoder", "decoder") if s in trace.tokens]
    for lane in found.lanes:
        assert lane.tokens == trace.tokens[lane.stack]
        for one in lane.attention:
            site = f"{lane.stack}.{one.layer}.{'cross' if one.kind == 'cross' else 'self'}"
            for at, head in enumerate(one.heads):
                np.testing.assert_allclose(one.weights[at], trace[site].pattern(head).numpy(), atol=1e-6)
                seen = one.reasons == 0
                made = np.exp(one.scores[at] - one.totals[at][:, None])
                np.testing.assert_allclose(made[seen], one.weights[at][seen], atol=1e-5)
                assert (one.weights[at][~seen] == 0).all()
            assert one.plain == torch.equal(trace[site].scores(0), trace[site].content_scores(0))
    for row, candidates in enumerate(found.candidates):
        p = torch.softmax(trace.logits[row].double(), -1)
        assert [c.probability for c in candidates] == pytest.approx([float(p[c.token.id]) for c in candidates])
    if "encoder" in trace.tokens and "decoder" in trace.tokens:
        rows = found.lanes[0].embedded + found.lanes[0].added
        entering = trace.residual("encoder.0.pre")[:, : rows.shape[1]].numpy()
        np.testing.assert_allclose(rows, entering, atol=1e-4)
        whole = checkpoint.tokenizer.decode([token.id for token in trace.tokens["decoder"]])
        assert "".join(found.written) == whole


def test_it_begins_with_a_look_at_a_word_from_the_row_that_chooses():
    for name, text in CASES.items():
        checkpoint = load(name)
        trace = checkpoint.trace(text)
        found = forward_picture(checkpoint, trace)
        look = found.look
        one = [one for lane in found.lanes for one in lane.attention][look.attention]
        query, key = found.lanes[-1].tokens[look.query], found.lanes[0].tokens[look.key]
        assert not key.special
        assert 0.1 < one.weights[look.head, look.query, look.key] < 0.99
        if name == "cloze":
            assert query.id == checkpoint.model.config.mask_id
        if name == "stories":
            assert look.query == len(found.lanes[0].tokens) - 1


def test_of_a_long_text_the_first_tokens_are_drawn_and_what_is_not_is_in_the_sums():
    checkpoint = load("stories")
    trace = checkpoint.trace("The dog was tired. " * 12)
    found = forward_picture(checkpoint, trace)
    [lane] = found.lanes
    assert (len(lane.tokens), lane.count) == (SHOWN - 1, len(trace.tokens["decoder"]))
    for one in lane.attention:
        assert one.weights.shape == (min(HEADS, one.n_heads), SHOWN - 1, SHOWN - 1)
    assert len(found.candidates) == SHOWN - 1


def test_layers_and_heads_that_are_drawn():
    assert shown_layers(3, 1) == [0, 1, 2]
    assert shown_layers(12, 5) == [0, 5, 11]
    assert shown_layers(12, 0) == [0, 6, 11]
    maps = np.zeros((6, 1, 4))
    for head, key in enumerate((0, 0, 1, 0, 2, 3)):
        maps[head, 0, key] = 1
    assert {tuple(maps[head, 0]) for head in apart(maps, 4)} == {tuple(row) for row in np.eye(4)}
    assert apart(maps[:3], 4) == [0, 1, 2]


def test_a_model_that_adds_to_its_scores_says_so():
    checkpoint = tiny.checkpoint("decoder-only", **tiny.ALIBI)
    found = forward_picture(checkpoint, checkpoint.trace("The cats"), predicts=False)
    assert not any(one.plain for one in found.lanes[0].attention)
    assert found.lanes[0].added is None
    assert found.candidates == ()


def test_a_head_that_rests_is_found_and_so_is_one_whose_tokens_rest_on_themselves():
    found = forward_picture(load("zh-en"), load("zh-en").trace("我有一只猫。"))
    for lane in found.lanes:
        for one in lane.attention:
            assert list(one.rests) == [find_rest(weights, one.reasons) for weights in one.weights]  # (none on itself)
    assert any(rest is not None and rest.key == 0 for rest in found.lanes[0].attention[0].rests)
    free, even = np.zeros((4, 4), np.uint8), np.full((4, 4), 0.25, np.float32)
    maps = np.stack([np.eye(4, dtype=np.float32), even])
    assert picture_numbers._rests("encoder", maps, free) == (Rest(picture_numbers.ITSELF, 1.0), None)
    assert picture_numbers._rests("cross", maps, free) == (None, None)

"""The leading candidates of a text: those of every step's own distribution, and the chosen token among them."""

import numpy as np
import pytest
import torch

from tests import tiny
from vizformer.generation import GenerationStep, NextToken, Sampling, leading_candidates, stream

LOOSE = Sampling(temperature=1.5, top_k=12, top_p=0.9, seed=3)


def test_every_row_is_that_of_its_step():
    model = tiny.model("decoder-only", eos_id=None, **tiny.LLAMA)
    steps = list(stream(model, [1, 5, 6, 7], max_new=6, sampling=LOOSE, instead={2: 9}))
    found = leading_candidates(iter(steps), count=4)
    assert found.ids == [step.id for step in steps]
    assert found.by_hand == [False, False, True, False, False, False]
    assert found.kept == [int((step.cut == 0).sum()) for step in steps]
    assert found.end == steps[-1].end == "limit"
    assert found.candidates.shape == (6, 4)
    assert found.seen == sorted(set(found.candidates.ravel().tolist()))
    for row, step in enumerate(steps):
        ids = found.candidates[row]
        np.testing.assert_array_equal(found.before[row], step.probabilities.numpy()[ids])
        np.testing.assert_array_equal(found.after[row], step.filtered.numpy()[ids])
        np.testing.assert_array_equal(found.cut[row], step.cut.numpy()[ids])
        assert step.id in ids
        assert ids[:3].tolist() == step.probabilities.topk(3).indices.tolist()


def chosen_from(probabilities):
    return lambda: NextToken(probabilities, probabilities, torch.zeros(len(probabilities), dtype=torch.uint8))


def test_a_chosen_token_that_is_not_probable_takes_the_last_row():
    probabilities = torch.tensor([0.1, 0.5, 0.3, 0.06, 0.04])
    step = GenerationStep(4, chosen_from(probabilities), 1, 0, by_hand=True)
    found = leading_candidates([step], count=3)
    assert found.candidates.tolist() == [[1, 2, 4]]
    assert found.before[0].tolist() == pytest.approx([0.5, 0.3, 0.04])


def test_a_small_vocabulary_is_shown_whole():
    probabilities = torch.tensor([0.2, 0.8])
    step = GenerationStep(1, chosen_from(probabilities), 1, 0)
    assert leading_candidates([step]).candidates.tolist() == [[1, 0]]


def test_a_text_without_steps_has_none():
    with pytest.raises(ValueError, match="without steps"):
        leading_candidates([])


def test_the_first_steps_are_those_of_a_text_that_ends_there():
    model = tiny.model("decoder-only", eos_id=None, **tiny.LLAMA)
    whole, short = (leading_candidates(stream(model, [1, 5, 6], max_new=n, sampling=LOOSE), count=4) for n in (6, 4))
    cut = whole.first(4)
    for name in ("ids", "kept", "by_hand", "end"):
        assert getattr(cut, name) == getattr(short, name)
    for name in ("candidates", "before", "after", "cut"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(short, name))
    assert whole.first(6) is whole
    steps = list(stream(model, [1, 5, 6], max_new=6, sampling=LOOSE))
    np.testing.assert_array_equal(whole.probabilities, [step.probabilities[step.id] for step in steps])


def test_of_equally_probable_tokens_the_first_ones_are_seen():
    probabilities = torch.tensor([0.1, 0.2, 0.1, 0.3, 0.1, 0.1, 0.1])
    step = GenerationStep(3, chosen_from(probabilities), 1, 0)
    assert leading_candidates([step], count=4).candidates.tolist() == [[3, 1, 0, 2]]

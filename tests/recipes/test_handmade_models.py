"""Models with weights set by hand do what their builder says, exactly, and their heads look where it says."""

import random

import pytest
import torch

from recipes.handmade_models import (
    INDUCTION,
    LENGTH,
    LETTERS,
    LOUD,
    PREVIOUS_TOKEN,
    induction_by_hand,
    task_by_hand,
)
from vizformer.analysis import head_scores, repeated_tokens
from vizformer.checkpoints import load, save

PERIOD = 20


@pytest.fixture(scope="module", params=[0, 1, 2])
def induction(request):
    return induction_by_hand(seed=request.param)


def repeated(checkpoint, sequences=50):
    letters = torch.tensor([checkpoint.tokenizer.id_of(letter) for letter in LETTERS])
    ids = repeated_tokens(letters, sequences=sequences, period=PERIOD, seed=5)
    return torch.cat([torch.zeros(sequences, 1, dtype=torch.long), ids], dim=1)


def test_every_token_of_the_second_half_of_random_repeated_tokens_is_predicted(induction):
    ids = repeated(induction)
    said = induction.model(ids).argmax(-1)
    assert torch.equal(said[:, PERIOD + 1 : -1], ids[:, PERIOD + 2 :])


def test_the_two_heads_look_where_they_should_and_no_other_does(induction):
    scores = head_scores(induction.model, repeated(induction, 8), PERIOD, start=1)
    assert scores.previous_token[PREVIOUS_TOKEN] > 0.999
    assert scores.induction[INDUCTION] > 0.999
    for found, head in ((scores.previous_token, PREVIOUS_TOKEN), (scores.induction, INDUCTION)):
        found[head] = 0
        assert found.max() < 0.2


def test_where_a_letter_is_new_nothing_is_said(induction):
    trace = induction.trace("abcdefghij")
    layer, head = INDUCTION
    pattern = trace[f"decoder.{layer}.self"].pattern(head)
    assert pattern[1:, 0].min() > 0.98
    assert trace.logits[1:].max() < LOUD / 2  # of a letter that is known it is LOUD


@pytest.mark.parametrize("task", ["copy", "reverse"])
@pytest.mark.sample(1)
def test_a_question_is_copied_or_reversed(task):
    checkpoint, rng = task_by_hand(task), random.Random(1)
    for __ in range(50):
        question = "".join(rng.choice(LETTERS) for __ in range(LENGTH))
        answer = question if task == "copy" else question[::-1]
        assert checkpoint.generate(f"{question}>", max_new=LENGTH).text == answer


def test_letters_are_counted():
    checkpoint, rng = task_by_hand("count"), random.Random(1)
    for count in range(LENGTH + 1):
        for __ in range(10):
            letters = ["a"] * count + rng.choices(LETTERS[1:], k=LENGTH - count)
            rng.shuffle(letters)
            assert checkpoint.generate("".join(letters) + ">", max_new=1).text == str(count)


def test_what_is_saved_is_what_was_built(tmp_path):
    built = induction_by_hand()
    save(built, tmp_path / "model")
    opened = load(tmp_path / "model")
    assert opened.model.config == built.model.config
    assert all(
        torch.equal(tensor, built.model.state_dict()[name]) for name, tensor in opened.model.state_dict().items()
    )


def test_the_bundled_model_is_what_the_builder_makes():
    built, bundled = induction_by_hand(), load("induction-by-hand")
    assert bundled.model.config == built.model.config
    for name, tensor in built.model.state_dict().items():
        # its numbers are kept in float16: without AVX some round to the next one
        torch.testing.assert_close(bundled.model.state_dict()[name], tensor, rtol=2**-10, atol=1e-5, msg=name)
    assert bundled.tokenizer.to_json() == built.tokenizer.to_json()

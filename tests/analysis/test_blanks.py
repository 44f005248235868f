"""Hidden tokens: the same as typing [MASK], the guesses against one forward each."""

import math

import numpy as np
import pytest
import torch

from recipes.vocabulary import CLS, SEP, train_wordpiece
from tests import tiny
from vizformer.analysis import guess, guesses, head_maps, hide, looks_at, mean_guess
from vizformer.analysis.one_forward import predictions
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError
from vizformer.text import Tokenizer

TEXT = "she has two dogs and a cat."


def bert() -> Checkpoint:
    tokenizer = Tokenizer(train_wordpiece(tiny.TEXTS * 3, 200))
    options = {**tiny.BERT, "vocab_size": tokenizer.vocab_size, "bos_id": 2, "eos_id": 3, "mask_id": 4}
    return Checkpoint("bert", tiny.model("encoder-only", **options), tokenizer)


def test_hiding_is_what_typing_the_mask_gives() -> None:
    model = bert()
    tokens = model.encode(TEXT)
    place = [token.text for token in tokens].index("dogs")
    typed = model.trace(TEXT.replace("dogs", "[MASK]"))
    hidden = hide(model, tokens, [place])
    assert torch.equal(typed.logits, hidden.logits)
    assert not torch.equal(hidden.logits, model.trace(TEXT).logits)


def test_every_guess_is_that_of_its_own_forward() -> None:
    model = bert()
    tokens = model.encode(TEXT + " [SEP] 她有两只狗。")  # two segments
    found = guesses(model, tokens)
    for position, token in enumerate(tokens):
        if token.special:
            assert math.isnan(found[position])
            continue
        one = guess(hide(model, tokens, [position]), position, token.id)
        assert found[position] == pytest.approx(one.probability, rel=1e-5)
        logits = hide(model, tokens, [position]).logits[position]
        assert one.rank == int((logits > logits[token.id]).sum())


def test_many_tokens_take_several_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = bert()
    tokens = model.encode(TEXT)
    at_once = guesses(model, tokens)
    monkeypatch.setattr(predictions, "AT_ONCE", 3)
    np.testing.assert_allclose(guesses(model, tokens), at_once, rtol=1e-6)


def test_a_separator_begins_the_next_segment() -> None:
    model = bert()
    tokens = model.encode("cats [SEP] dogs")
    segments = model.segments(tokens)
    assert segments is not None
    assert [token.piece for token in tokens] == [CLS, "cats", SEP, "dogs", SEP]
    assert segments.tolist() == [[0, 0, 0, 1, 1]]
    with torch.inference_mode():
        expected = model.model(torch.tensor([[t.id for t in tokens]]), segments=segments)
    assert torch.equal(model.trace("cats [SEP] dogs").logits, expected[0])
    assert not torch.equal(expected, model.model(torch.tensor([[t.id for t in tokens]])))


def test_the_mean_guess_is_geometric_and_leaves_out_marks() -> None:
    assert mean_guess(np.array([np.nan, 0.25, 1.0, np.nan])) == pytest.approx(0.5)
    assert mean_guess(np.array([0.0, 1.0])) == pytest.approx(1e-6)  # a 0 counts as 1e-12
    assert mean_guess(np.array([np.nan])) is None
    assert mean_guess(np.array([])) is None


def test_where_a_position_looks_in_one_head_and_on_average() -> None:
    trace = bert().trace(TEXT)
    weights = head_maps(trace, "encoder").weights
    np.testing.assert_array_equal(looks_at(trace, 2, 1), weights[:, 1, 2])
    np.testing.assert_allclose(looks_at(trace, 2), weights[:, :, 2].mean(1))
    np.testing.assert_allclose(looks_at(trace, 2).sum(-1), 1.0, rtol=1e-5)


def test_models_without_a_mask_say_so() -> None:
    model = tiny.checkpoint("decoder-only")
    with pytest.raises(TraceError, match=r"has no \[MASK\] token"):
        guesses(model, model.encode(TEXT))
    with pytest.raises(TraceError, match="no position 99: choose 0 to"):
        hide(bert(), bert().encode(TEXT), [99])


def test_wordpiece_offsets_are_those_of_the_text() -> None:
    """Hidden words are cut out of what was typed by their offsets, upper case and Chinese included."""
    tokenizer = Tokenizer(train_wordpiece(tiny.TEXTS * 3, 200))
    text = "She HAS 两只 dogs."
    for token in tokenizer.encode(text):
        if not token.special:
            assert text[token.start : token.end].lower() == token.text.replace("##", "")

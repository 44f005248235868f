"""What each row of a decoder is trained to say, and what one error leads to."""

import math
import re

import pytest
import torch

from tests.bundled import load
from vizformer.analysis.decoding.teacher_forcing import LONGEST, forced_rows, one_error, right_rows
from vizformer.errors import TraceError

SENTENCE = "我有一只猫。"


def test_the_rows_of_a_target_are_torchs_cross_entropy() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE, target="I have a dog.")
    rows = forced_rows(checkpoint, trace)
    ids = [token.id for token in trace.tokens["decoder"]]
    wanted = torch.tensor([*ids[1:], checkpoint.model.config.eos_id])
    loss = torch.nn.functional.cross_entropy(trace.logits.double(), wanted, reduction="sum")
    assert [row.read.id for row in rows] == ids
    assert [row.wanted.id for row in rows] == wanted.tolist()
    assert math.fsum(row.loss for row in rows) == pytest.approx(float(loss), abs=1e-9)
    assert [row.is_right for row in rows] == (trace.logits.argmax(-1) == wanted).tolist()


def test_of_a_text_that_goes_on_the_last_row_has_no_target() -> None:
    checkpoint = load("stories")
    trace = checkpoint.trace("The cat sat")
    rows = forced_rows(checkpoint, trace)
    assert [row.wanted.id for row in rows] == [token.id for token in trace.tokens["decoder"][1:]]


def test_a_model_without_a_decoder_has_no_rows() -> None:
    checkpoint = load("cloze")
    with pytest.raises(TraceError, match="no decoder"):
        forced_rows(checkpoint, checkpoint.trace("The cat sat."))


@pytest.mark.parametrize(("name", "text"), [("zh-en", SENTENCE), ("stories", "Once upon a time")])
def test_the_right_text_is_what_the_model_writes(name: str, text: str) -> None:
    checkpoint = load(name)
    rows = right_rows(checkpoint, text, checkpoint.trace(text))
    written = checkpoint.generate(text, max_new=12).ids
    assert tuple(row.wanted.id for row in rows)[: len(written)] == written
    assert all(row.is_right for row in rows)


@pytest.mark.parametrize(("name", "text"), [("zh-en", SENTENCE), ("stories", "Once upon a time")])
def test_after_an_error_the_model_goes_on_from_what_it_wrote(name: str, text: str) -> None:
    checkpoint = load(name)
    found = one_error(checkpoint, text, right_rows(checkpoint, text, checkpoint.trace(text)), 1, 0)
    right = [row.wanted.id for row in found.rows]
    free = [token.id for token in found.free]
    assert free[0] == right[0]
    assert free[1] == found.wrong.id != right[1]
    ids = [step.id for step in checkpoint.stream(text, max_new=12, instead={0: free[0], 1: free[1]})]
    assert free == ids
    rest, mine = right[2:], free[2:]
    differ = sum(a != b for a, b in zip(rest, mine, strict=False)) + abs(len(rest) - len(mine))
    assert found.changed == differ > 0
    forced = [row.probability for row in found.rows]
    assert found.chances[:2] == pytest.approx(forced[:2], abs=1e-5)  # they have read the same
    source, beginning = checkpoint.opening(text)
    start = [token.id for token in beginning]
    read = {"target_ids": [*start, *ids[:-1]]} if source else {"ids": [*start, *ids[:-1]]}
    logits = checkpoint.trace(**({"ids": [token.id for token in source]} if source else {}) | read).logits
    p = logits[len(start) - 1 :].double().softmax(-1)
    expected = [float(p[i, id]) for i, id in zip(range(len(p)), right, strict=False)]
    assert found.chances == pytest.approx(expected, abs=1e-5)
    assert max(abs(a - b) for a, b in zip(found.chances[2:], forced[2:], strict=False)) > 0.1


def test_an_error_begins_with_the_given_target() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE, target="I have a dog.")
    found = one_error(checkpoint, SENTENCE, right_rows(checkpoint, SENTENCE, trace), 2, 1)
    assert [row.wanted.text for row in found.rows[:4]] == ["I", "have", "a", "dog"]
    assert [token.text for token in found.free[:2]] == ["I", "have"]
    best = [p.token.id for p in found.rows[2].best if p.token.id != found.rows[2].wanted.id]
    assert found.wrong.id == best[1]


def test_the_text_after_an_error_has_no_space_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = load("zh-en")
    rows = right_rows(checkpoint, SENTENCE, checkpoint.trace(SENTENCE))
    monkeypatch.setattr(type(checkpoint.tokenizer), "decode", lambda tokenizer, ids: f" {len(ids)} tokens ")
    assert re.fullmatch(r"\d tokens", one_error(checkpoint, SENTENCE, rows, 1, 0).whole)


def test_a_step_that_is_not_there_is_said_to_be() -> None:
    checkpoint = load("zh-en")
    rows = right_rows(checkpoint, SENTENCE, checkpoint.trace(SENTENCE))
    with pytest.raises(TraceError, match="no step 99"):
        one_error(checkpoint, SENTENCE, rows, 99, 0)


def test_a_long_target_is_compared_over_its_first_tokens() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(SENTENCE, target="I have a dog and a cat and a bird and a fish and a horse.")
    rows = right_rows(checkpoint, SENTENCE, trace)
    assert len(rows) == LONGEST < len(trace.tokens["decoder"])
    found = one_error(checkpoint, SENTENCE, rows, 3, 0)
    assert len(found.free) <= LONGEST
    assert found.changed <= LONGEST - 4


def test_a_token_without_probability_costs_infinitely_much() -> None:
    checkpoint = load("stories")
    trace = checkpoint.trace(ids=[1, 3, 4])
    with torch.inference_mode():
        trace.logits[0, 3] = -torch.inf
    assert forced_rows(checkpoint, trace)[0].loss == math.inf

"""What the rows of a decoder choose."""

from tests.bundled import load
from vizformer.analysis import choices


def test_a_row_of_a_translation_chooses_the_token_after_it() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    tokens, found = trace.tokens["decoder"], choices(checkpoint, trace)
    assert len(found) == len(tokens)
    assert [choice.next.id for choice in found[:-1]] == [token.id for token in tokens[1:]]
    assert [choice.own.id for choice in found] == trace.logits.argmax(-1).tolist()  # greedy, so it chose its own text
    assert [choice.own.id for choice in found[:-1]] == [choice.next.id for choice in found[:-1]]
    assert found[-1].next == found[-1].own  # nothing follows: what it would choose


def test_a_typed_target_is_what_its_rows_are_asked_for() -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。", target="I have a dog.")
    tokens, found = trace.tokens["decoder"], choices(checkpoint, trace)
    row = [token.text for token in tokens].index("a")
    assert (found[row].next.text, found[row].own.text) == ("dog", "cat")


def test_a_model_that_only_writes_on_has_rows_that_choose_too() -> None:
    checkpoint = load("stories")
    trace = checkpoint.trace("I have a cat.")
    assert [choice.next for choice in choices(checkpoint, trace)[:-1]] == list(trace.tokens["decoder"][1:])


def test_an_encoder_chooses_nothing() -> None:
    checkpoint = load("cloze")
    assert choices(checkpoint, checkpoint.trace("我有一只猫。")) == ()

"""Symbolic tasks: right answers, held-out questions, tokens."""

import random

import pytest

from vizformer.errors import VizformerError
from vizformer.training.tasks import TASKS, examples, is_held_out


@pytest.mark.parametrize(
    ("task", "typed", "question", "answer"),
    [
        ("copy", "c a F e", "cafe", "cafe"),
        ("reverse", "badge", "badge", "egdab"),
        ("sort", "３1４15", "31415", "11345"),
        ("addition", "47 + 38", "47+38", "85"),
        ("addition", "123＋9=", "123+9", "132"),
        ("copy", "cafe:ca", "cafe", "cafe"),  # what follows the separator would be the answer
        ("repeat", "gcadg", "gcadg", "cadg"),
        ("repeat", "abcabcab", "abcabcab", "cab"),
        ("repeat", "aa", "aa", "a"),
    ],
)
def test_right_answers(task, typed, question, answer):
    assert TASKS[task].read(typed) == (question, answer)


@pytest.mark.parametrize(
    ("task", "typed", "complaint"),
    [
        ("copy", "  ", "Type something"),
        ("copy", ":abc", "Type something"),
        ("copy", "hello 世", "not 世"),
        ("sort", "3a1", "not a"),
        ("copy", "a" * 41, "41 symbols; at most 40"),
        ("addition", "12", "not a sum"),
        ("addition", "1+2+3", "not a sum"),
        ("addition", "+2", "not a sum"),
        ("repeat", "abcd", "Nothing is repeated"),
    ],
)
def test_questions_without_an_answer(task, typed, complaint):
    with pytest.raises(VizformerError, match=complaint):
        TASKS[task].read(typed)


@pytest.mark.parametrize("name", TASKS)
def test_examples_are_right_legal_and_the_same_for_the_same_seed(name):
    task = TASKS[name]
    found = examples(task, random.Random(3), 200, held_out=False)
    assert found == examples(task, random.Random(3), 200, held_out=False)
    for question, answer in found:
        assert set(question + answer) <= set(task.symbols)
        assert len(question) <= task.longest
        if task.ends:
            assert task.read(question) == (question, answer)
        else:  # a training text goes on for longer than what is asked of a typed one
            assert answer.startswith(task.solve(question)[: len(answer)])
    assert task.read(task.example)


@pytest.mark.parametrize("name", TASKS)
def test_nothing_held_out_is_trained_on(name):
    task = TASKS[name]
    trained = {e.question for e in examples(task, random.Random(0), 400, held_out=False)}
    held = {e.question for e in examples(task, random.Random(0), 100, held_out=True)}
    assert all(map(is_held_out, held))
    assert not any(map(is_held_out, trained))


@pytest.mark.parametrize("architecture", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("typed", ["312", "3 1 2", " ３ 12"])
def test_every_symbol_is_a_token(architecture, typed):
    tokenizer = TASKS["sort"].tokenizer(architecture)
    tokens = tokenizer.encode(typed)
    marked = ["3", "1", "2", "</s>"] if architecture == "encoder-decoder" else ["<s>", "3", "1", "2"]
    assert [token.text for token in tokens] == marked
    assert [token.special for token in tokens] == [text.startswith("<") for text in marked]
    assert tokenizer.decode([token.id for token in tokens]) == "312"
    for token in tokens:
        if not token.special:
            assert typed[token.start : token.end].translate(str.maketrans("３", "3")) == token.text


def test_a_strange_symbol_is_seen_to_be_one():
    tokens = TASKS["sort"].tokenizer("decoder-only").encode("31猫")
    assert [token.text for token in tokens] == ["<s>", "3", "1", "<unk>"]
    assert tokens[-1].special


def test_the_tokenizer_survives_the_file(tmp_path):
    from vizformer.text import Tokenizer

    tokenizer = TASKS["addition"].tokenizer("decoder-only")
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert again.encode("4 7+38=85") == tokenizer.encode("4 7+38=85")
    assert again.vocab_size == len(TASKS["addition"].vocabulary)

"""The questions that a cell of a map answers: right, and about a cell that a reader can tell."""

from dataclasses import replace

import numpy as np
import pytest

from tests import tiny
from vizformer.analysis import answer_cell, cell_question, habit_question, head_maps, kinds
from vizformer.analysis.heads import questions
from vizformer.analysis.heads.measures import head_statistics
from vizformer.errors import TraceError

KINDS = [("encoder-decoder", {}), ("decoder-only", tiny.LLAMA), ("encoder-only", tiny.BERT)]


def traced(architecture: str, options: dict[str, object]):
    checkpoint = tiny.checkpoint(architecture, **options)
    return checkpoint.trace("我有一只猫和两只狗。", target="a cat" if architecture == "encoder-decoder" else None)


def is_word(token) -> bool:
    return not token.special and any(character.isalnum() for character in token.text)


def asked_habit(trace, kind):
    return habit_question(trace, kind, 24, head_statistics(head_maps(trace, kind), cross=kind == "cross"))


@pytest.mark.parametrize("most", [3, 24])
@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_no_word_gives_another_word_a_larger_weight(architecture, options, most):
    trace = traced(architecture, options)
    for kind in kinds(trace):
        asked, maps = cell_question(trace, kind, most), head_maps(trace, kind)
        assert asked is not None
        expected = maps.weights[asked.layer, asked.head, :most, :most]
        np.testing.assert_allclose(asked.weights, expected, atol=1e-6)
        assert max(asked.weights.shape) <= most
        queries = trace.tokens["encoder" if kind == "encoder" else "decoder"]
        keys = trace.tokens["decoder" if kind == "decoder" else "encoder"]
        cells = [
            (layer, head, i, j)
            for layer, head, i, j in np.ndindex(maps.weights.shape)
            if max(i, j) < most and (i != j or kind == "cross") and maps.reasons[layer, i, j] == 0
        ]
        of_words = [cell for cell in cells if is_word(queries[cell[2]]) and is_word(keys[cell[3]])]
        here = (asked.layer, asked.head, asked.query, asked.key)
        assert here in cells
        if of_words:
            other_heads = [cell for cell in of_words if cell[:2] != (0, 0)]
            assert here == max(other_heads or of_words, key=lambda cell: maps.weights[cell])


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_a_habit_is_asked_about_where_the_row_has_it(architecture, options):
    trace = traced(architecture, options)
    for kind in kinds(trace):
        asked, maps = asked_habit(trace, kind), head_maps(trace, kind)
        assert asked is not None
        row = maps.weights[asked.layer, asked.head, asked.query]
        assert asked.key == row.argmax()
        if asked.habit is not None:
            found = head_statistics(maps, cross=kind == "cross")
            assert found.leading(asked.layer, asked.head) == asked.habit


@pytest.mark.parametrize(
    ("habit", "shift"), [("previous", -1), ("own", 0), ("next", 1), ("first", None), ("last", None)]
)
def test_every_habit_has_its_cell(monkeypatch, habit, shift):
    """One head of two does one thing in every row; the other one spreads its attention."""
    from vizformer.analysis import HeadMaps

    n = 6
    trace = tiny.checkpoint("encoder-only").trace(ids=[5, 6, 7, 8, 9, 10])
    trace.tokens["encoder"] = tuple(replace(token, text="word", special=False) for token in trace.tokens["encoder"])
    targets = [{"first": 0, "last": n - 1}.get(habit, i + (shift or 0)) for i in range(n)]
    weights = np.full((1, 2, n, n), 1 / n)
    for i, target in enumerate(targets):
        if 0 <= target < n:
            weights[0, 1, i] = 0.02
            weights[0, 1, i, target] = 0.9
    maps = HeadMaps(weights, weights, np.zeros((1, n, n), np.uint8))
    monkeypatch.setattr(
        questions,
        "head_maps",
        lambda trace, kind, queries: HeadMaps(
            weights[:, :, :queries], weights[:, :, :queries], maps.reasons[:, :queries]
        ),
    )
    found = head_statistics(maps)
    asked = habit_question(trace, "encoder", 24, found)
    assert (asked.layer, asked.head, asked.habit) == (0, 1, habit)
    assert asked.key == targets[asked.query]
    assert habit_question(trace, "encoder", 4, found).weights.shape == (4, 4)


@pytest.mark.parametrize(("architecture", "options"), KINDS[:2])
def test_the_cell_of_an_answer_is_blocked_and_holds_the_token_after(architecture, options):
    trace = traced(architecture, options)
    asked = answer_cell(trace, 24)
    tokens = trace.tokens["decoder"]
    assert asked.key == asked.query + 1
    assert is_word(tokens[asked.query])
    assert tokens[asked.query].id != tokens[asked.key].id
    assert asked.weights[asked.query, asked.key] == 0
    patterns = [trace["decoder.0.self"].pattern(head).numpy() for head in range(trace["decoder.0.self"].n_heads)]
    np.testing.assert_allclose(asked.weights, np.mean(patterns, 0)[:24, :24], atol=1e-6)


def test_nothing_is_asked_about_a_single_token():
    trace = tiny.checkpoint("decoder-only").trace(ids=[5])
    assert cell_question(trace, "decoder", 24) is None
    assert asked_habit(trace, "decoder") is None
    assert answer_cell(trace, 24) is None


def test_a_model_without_a_decoder_has_no_cell_of_an_answer():
    with pytest.raises(TraceError):
        answer_cell(tiny.checkpoint("encoder-only", **tiny.BERT).trace("我有一只猫。"), 24)

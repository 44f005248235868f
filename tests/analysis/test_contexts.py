"""One token in two texts: alike in the table, different in the layers, and the same where nothing before it differs."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.bundled import load
from vizformer.analysis.vectors.contextual import contexts, shared
from vizformer.errors import TraceError
from vizformer.model import Cell, Edit

FIRST, SECOND, CONTROL = "我在花园里。", "我花了十元。", "他们在花园里玩。"


def flower(model: object, text: str) -> int:
    trace = model.trace(text)  # type: ignore[attr-defined]
    return [token.text for token in next(iter(trace.tokens.values()))].index("花")


def test_cosines_are_those_of_the_residual_stream() -> None:
    model = load("cloze")
    a, b = model.trace(FIRST), model.trace(SECOND)
    i, j = flower(model, FIRST), flower(model, SECOND)
    found = contexts(model, a, b, i, j)
    places = ["encoder.0.pre", *(f"encoder.{layer}.post" for layer in range(4))]
    x_A, x_B = [a.residual(name) for name in places], [b.residual(name) for name in places]
    for l in range(5):  # noqa: E741
        value = F.cosine_similarity(x_A[l][i], x_B[l][j], dim=-1)
        assert found.same[l] == pytest.approx(float(value), abs=1e-5)
        assert np.array_equal(found.first[l], x_A[l][i].numpy())
        assert np.array_equal(found.second[l], x_B[l][j].numpy())
    assert found.table == pytest.approx(1.0)
    assert np.array_equal(found.curve, [found.table, *found.same])
    assert not found.identical


def test_different_tokens_are_the_measure() -> None:
    model = load("cloze")
    a, b = model.trace(FIRST), model.trace(SECOND)
    found = contexts(model, a, b, 3, 2)
    rows, columns = a.tokens["encoder"], b.tokens["encoder"]
    pairs = [
        (r, c)
        for r, s in enumerate(rows)
        for c, t in enumerate(columns)
        if s.id != t.id and not s.special and not t.special
    ]
    assert found.others == len(pairs)
    x, y = a.residual("encoder.3.post"), b.residual("encoder.3.post")
    cosines = torch.tensor([F.cosine_similarity(x[r], y[c], dim=0) for r, c in pairs])
    assert found.other[-1] == pytest.approx(float(cosines.mean()), abs=1e-5)
    assert found.low[-1] == pytest.approx(float(cosines.quantile(0.1)), abs=1e-5)
    assert found.high[-1] == pytest.approx(float(cosines.quantile(0.9)), abs=1e-5)


def test_the_sense_counts_more_than_the_neighbours() -> None:
    # What the lesson says of its example: money spent parts from the garden, another garden does not.
    model = load("cloze")
    first, second, control = model.trace(FIRST), model.trace(SECOND), model.trace(CONTROL)
    at = flower(model, FIRST)
    apart = contexts(model, first, second, at, flower(model, SECOND)).same[-1]
    together = contexts(model, first, control, at, flower(model, CONTROL)).same[-1]
    assert apart < 0.7 < 0.9 < together


def test_apples_of_both_kinds_stay_alike() -> None:
    model = load("cloze")
    first, second = model.trace("苹果是一种好吃的水果。"), model.trace("苹果是一个伟大的品牌。")
    assert contexts(model, first, second, 1, 1).same[-1] > 0.9


def test_a_causal_model_sees_only_what_is_before() -> None:
    model = load("stories")
    first, second = model.trace("苹果是一种好吃的水果。"), model.trace("苹果是一个伟大的品牌。")
    assert contexts(model, first, second, 2, 2).identical  # <s> 苹 果 in both
    assert not contexts(model, first, second, 3, 4).identical
    for change in (-9.0, 9.0):  # one number, whichever side is the larger one
        other = model.trace("苹果是一个伟大的品牌。", edit=Edit((Cell("decoder.4.post", (2, 0), change),)))
        assert not contexts(model, first, other, 2, 2).identical
    shorter = model.trace("苹果很好吃。")  # another length: products in another order, the same but for rounding
    assert contexts(model, first, shorter, 2, 2).identical
    assert not contexts(load("cloze"), load("cloze").trace(FIRST), load("cloze").trace(SECOND), 3, 2).identical


def test_shared_tokens_are_listed_once_and_special_ones_not() -> None:
    model = load("zh-en")
    first, second = model.trace("花园里有很多花。", target="."), model.trace("我花了很多钱。", target=".")
    found = {
        (first.tokens["encoder"][i].text, second.tokens["encoder"][j].text): (i, j) for i, j in shared(first, second)
    }
    begun = len(model.encode("花")) - 2  # tokens before a text; there is an end mark after it
    expected = {("花", "花"): (0, 1), ("很", "很"): (4, 3), ("多", "多"): (5, 4), ("。", "。"): (7, 6)}
    assert found == {pair: (i + begun, j + begun) for pair, (i, j) in expected.items()}
    with pytest.raises(TraceError, match="position 99"):
        contexts(model, first, second, 0, 99)

"""The head that a page opens on: its row looks most at one other word."""

from itertools import product

import numpy as np
import pytest

from tests.bundled import load
from vizformer.analysis import kinds
from vizformer.analysis.heads.telling_head import find_telling_head, telling, words_to_look_at


@pytest.mark.parametrize(
    ("model", "text"), [("zh-en", "我有一只猫。"), ("stories", "The cat sat on the"), ("cloze", "A cat, [MASK].")]
)
def test_no_head_s_row_gives_more_to_any_other_word(model: str, text: str) -> None:
    trace = load(model).trace(text)
    for kind in kinds(trace):
        tokens = trace.tokens["encoder" if kind != "decoder" else "decoder"]
        query = len(trace.tokens["decoder" if kind != "encoder" else "encoder"]) - 2
        found = find_telling_head(trace, kind, query)
        assert found is not None
        key = tokens[found.key]
        assert any(map(str.isalnum, key.text))
        assert not key.special
        assert kind == "cross" or found.key not in (0, query)
        weights = {
            (layer, head, at): float(trace[site].pattern(head)[query, at])
            for layer, site in enumerate(_sites(trace, kind))
            for head, at in product(range(trace[site].n_heads), np.flatnonzero(_words(tokens, kind, query)).tolist())
        }
        assert found.weight == pytest.approx(max(weights.values()), abs=1e-6)
        assert weights[found.layer, found.head, found.key] == pytest.approx(found.weight, abs=1e-6)


def _sites(trace, kind):
    suffix = "cross" if kind == "cross" else "self"
    stack = "encoder" if kind == "encoder" else "decoder"
    return [site for site in trace.sites if site.startswith(stack) and site.endswith(suffix)]


def _words(tokens, kind, query):
    return [
        any(map(str.isalnum, one.text)) and not one.special and (kind == "cross" or at not in (0, query))
        for at, one in enumerate(tokens)
    ]


def test_where_there_is_no_other_word_no_head_is_singled_out() -> None:
    trace = load("stories").trace(".")
    assert find_telling_head(trace, "decoder", 0) is None
    weights = np.full((1, 2, 3), np.nan, dtype=np.float32)
    assert telling(weights, np.array([True, False, True])) is None
    assert telling(np.ones((1, 2, 3), dtype=np.float32), np.zeros(3, dtype=bool)) is None
    assert not words_to_look_at(load("stories").trace("a b").tokens["decoder"], 1)[:2].any()

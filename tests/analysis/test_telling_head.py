"""The head that a page opens on: its row looks most at one other word."""

from itertools import product

import numpy as np
import pytest

from tests.bundled import load
from vizformer.analysis import kinds
from vizformer.analysis.heads.measures import find_telling_head, resting_head, telling, words_to_look_at
from vizformer.web.link.view import usual_query


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
        rest = {
            place
            for place in {key[:2] for key in weights}
            if resting_head(trace, _sites(trace, kind)[place[0]], place[1])
        }
        assert rest or kind != "decoder" or model == "stories"
        awake = {place: weight for place, weight in weights.items() if place[:2] not in rest}
        assert found.weight == pytest.approx(max(awake.values()), abs=1e-6)
        more = {place[:2] for place, weight in weights.items() if weight > found.weight + 1e-6}
        assert found.resting == len(more)
        assert more <= rest
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


def test_heads_that_rest_are_passed_over_unless_all_do() -> None:
    weights = np.array([[[0.0, 0.9, 0.1], [0.0, 0.8, 0.2]], [[0.0, 0.1, 0.7], [0.4, 0.3, 0.3]]], dtype=np.float32)
    keys = np.array([False, True, True])
    found = telling(weights, keys, lambda layer, head: layer == 0)
    assert found is not None
    assert (found.layer, found.head, found.key, found.resting) == (1, 0, 2, 2)
    assert found.weight == pytest.approx(0.7)
    found = telling(weights, keys, lambda layer, head: True)
    assert found is not None
    assert (found.layer, found.head, found.key, found.resting) == (0, 0, 1, 0)
    assert telling(weights, keys) == found


@pytest.mark.parametrize(
    "text", ["I have a cat.", "我有一只猫。", "The dog was tired, so it went to", "小明把苹果放在桌上，然后吃掉了它。"]
)
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_no_map_that_a_page_opens_on_is_one_bright_column(model: str, text: str) -> None:
    trace = load(model).trace(text)
    for kind in kinds(trace):
        queries = trace.tokens["decoder" if kind != "encoder" else "encoder"]
        found = find_telling_head(trace, kind, usual_query(queries))
        assert found is not None
        record = trace[_sites(trace, kind)[found.layer]]
        choosing = (record.reason(found.head) == 0).sum(1) > 1  # a row that sees one key alone has no choice
        assert record.pattern(found.head)[choosing].mean(0).max() <= 0.6

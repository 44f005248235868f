"""The map of words in Chromium: its numbers are the library's, and a click opens a word."""

import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.analysis.test_head_overview import KINDS_OF_MODEL, traced
from tests.analysis.test_word_map import words_of
from tests.components.conftest import OpenFile
from tests.components.test_attention_in_browser import label, place
from tests.components.test_computed_head_in_browser import packed
from vizformer.analysis import TraceNumbers, kinds, word_map, word_starts
from vizformer.components import attention
from vizformer.components._bundle import _in_order
from vizformer.components.attention import Selection, pack_heads, to_html

pytestmark = pytest.mark.browser

HEAD = 3
ALL_WORDS = """(text) => {
  const [data, queryWords, keyWords] = JSON.parse(text);
  %s
  const model = readHeads(data);
  const { computed } = model;
  const rows = new RowScores(computed);
  const [scores, norms] = [new Float32Array(computed.scores.length), new Float64Array(computed.norms.length)];
  rows.fill(0, model.queries, computed.reasons, scores, norms);
  computed.put(0, scores, norms);
  const map = new WordMap();
  const names = (count) => Array.from({ length: count }, () => "");
  map.take({ query_words: queryWords, key_words: keyWords }, { queries: names(model.queries), keys: names(model.keys) });
  const large = map.enlarge(model, 1, 3);
  return JSON.stringify([large.queries, large.keys, Array.from(large.weights), large.reasons && Array.from(large.reasons)]);
}"""


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_every_number_of_a_long_head_s_words_is_that_of_the_library(open_file: OpenFile, name: str) -> None:
    folder = Path(attention.__file__).parent / "js"
    script = ALL_WORDS % "\n".join(module.body for module in _in_order(folder / "words.js", {}, ()))
    trace, page = traced(*KINDS_OF_MODEL[name]), open_file("<p></p>")
    for kind in kinds(trace):
        payload = packed(trace, kind, 1)
        text = to_html(payload, query_tokens=[""] * payload.shape[2], key_tokens=[""] * payload.shape[3])
        sent = page.evaluate("(text) => { const show = () => {}; return JSON.parse(text); }", data_in(text))
        whole, words = (
            TraceNumbers(trace).heads(kind).pattern(1, HEAD),
            (words_of(payload.shape[2], 1), words_of(payload.shape[3], 2)),
        )
        queries, keys, weights, reasons = json.loads(page.evaluate(script, json.dumps([sent, *words])))
        rows, columns = (word_starts(axis) for axis in words)
        np.testing.assert_allclose(weights, word_map(whole, rows, columns).ravel(), atol=5e-6)
        assert (queries, keys) == (len(rows), len(columns))
        why = np.broadcast_to(TraceNumbers(trace).heads(kind).blocked(), (2, *whole.shape))[1]
        why = np.minimum.reduceat(np.minimum.reduceat(why, rows, axis=0), columns, axis=1)
        assert np.array_equal(reasons if reasons else np.zeros(why.size), why.ravel())


def data_in(text: str) -> str:
    """What a file tells its component."""
    start = text.index("inFile(attention, ") + len("inFile(attention, ")
    return text[start : text.index(");\n</script>", start)]


def test_a_click_opens_a_word_and_all_can_be_closed(open_file: OpenFile) -> None:
    weights = np.random.default_rng(3).dirichlet(np.ones(5), size=(1, 1, 5)).astype(np.float32)
    tokens = ["the", "lone", "li", "est", "cat"]
    words = [0, 1, 1, 1, 2]
    page = open_file(
        to_html(
            pack_heads(weights, weights),
            query_tokens=tokens,
            key_tokens=tokens,
            selected=Selection(query=4),
            by_word=(words, words),
        )
    )
    found = word_map(weights[0, 0], word_starts(words), word_starts(words))
    spot = page.locator(".vf-readout")
    page.mouse.move(*place(page, 1, 2))
    expect(spot).to_have_text(f"query 1 “loneliest” attends to key 4 “cat” with weight {found[1, 2]:.4f}")
    expect(page.locator("[data-view=scores]")).to_have_count(0)
    close = page.get_by_role("button", name="close the words")
    expect(close).to_be_hidden()
    page.mouse.click(*place(page, 2, 1))
    expect(close).to_be_visible()
    page.mouse.move(*place(page, 3, 2))
    expect(spot).to_have_text(f"query 3 “est” attends to key 2 “li” with weight {weights[0, 0, 3, 2]:.4f}")
    close.click()
    page.mouse.click(*label(page, 1))
    page.mouse.move(*place(page, 4, 4))
    expect(spot).to_have_text(f"query 4 “cat” attends to key 4 “cat” with weight {weights[0, 0, 4, 4]:.4f}")


def test_words_that_do_not_fit_the_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="by_word"):
        to_html(pack_heads(np.ones((1, 1, 2, 2)) / 2), query_tokens="ab", key_tokens="ab", by_word=([0], [0, 1]))

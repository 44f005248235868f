"""A head computed in Chromium from its queries and keys: the numbers are the library's."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.analysis.test_head_overview import KINDS_OF_MODEL, N, traced
from tests.components.conftest import OpenFile
from tests.components.test_attention_in_browser import readout
from vizformer.analysis import TraceNumbers, kinds
from vizformer.components import attention
from vizformer.components._bundle import read_module
from vizformer.components.attention import HeadsPayload, Selection, pack, to_html
from vizformer.components.contract import Operands
from vizformer.components.packing import pack_operands
from vizformer.model import Trace

pytestmark = pytest.mark.browser

HEAD, QUERY, KEY = 3, 123, 45
# Thousands of numbers come and go as one text: Playwright takes each of a list by itself.
ALL_NUMBERS = """(text) => {
  const [q, k, distances, reasons, queries, keys] = JSON.parse(text);
  %s
  const typed = (list, kind) => list && new kind(list);
  const head = new ComputedHead({
    q: typed(q, Float32Array), k: typed(k, Float32Array),
    byDistance: typed(distances, Float32Array), reasons: typed(reasons, Uint8Array), queries, keys,
  });
  head.fill(0, queries, head.reasons, head.scores, head.norms);
  const [weights, scores] = [[], []];
  for (let query = 0; query < queries; query++) for (let key = 0; key < keys; key++) {
    weights.push(head.weight(query, key));
    scores.push(head.scoreOf(query, key));
    const [cell, score] = [query * keys + key, scores.at(-1)];
    const exact = head.reasons && head.reasons[cell] ? 0 : Math.fround(score);
    if (!Object.is(head.scores[cell], exact)) throw new Error(`${query}, ${key}: ${head.scores[cell]}, not ${exact}`);
  }
  return JSON.stringify([weights, scores]);
}"""


SCRIPTS = Path(attention.__file__).parent / "js"
ON_GRAPHICS = """(text) => {
  const [q, k, distances, reasons, queries, keys, damage] = JSON.parse(text);
  %s
  const typed = (list, kind) => list && new kind(list);
  const gl = new OffscreenCanvas(1, 1).getContext("webgl2");
  if (!gl.getExtension("EXT_color_buffer_float")) throw new Error("no WebGL2");
  const read = gl.readPixels.bind(gl);
  gl.readPixels = (...all) => { read(...all); for (let at = 0; at < all[6].length && damage; at++) all[6][at] *= 1.01; };
  const operands = {
    q: typed(q, Float32Array), k: typed(k, Float32Array), byDistance: typed(distances, Float32Array), queries, keys,
  };
  const [here, drawn] = [new RowScores(operands), new GraphicsScores(operands, gl)];
  const found = [here, drawn].map((head) => {
    const [scores, norms] = [new Float32Array(queries * keys).fill(7), new Float64Array(queries)];
    for (let first = 0; first < queries; first += 64) {
      const end = Math.min(queries, first + 64);
      const [from, to] = [first * keys, end * keys];
      const hidden = reasons && new Uint8Array(reasons.slice(from, to));
      head.fill(first, end, hidden, scores.subarray(from, to), norms.subarray(first, end));
    }
    return [[...scores], [...norms].map((norm) => Math.min(norm, 1e9))];
  });
  drawn.close();
  return JSON.stringify([...found, drawn.believed, gl.getError()]);
}"""


def packed(trace: Trace, kind: str, layer: int) -> HeadsPayload:
    return pack(TraceNumbers(trace).heads(kind), chosen=(layer, HEAD), limit=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_every_number_is_that_of_the_library(open_file: OpenFile, name: str) -> None:
    source = read_module(SCRIPTS / "computed_head.js").body
    script = ALL_NUMBERS % source.split("// What came of a head")[0]
    trace, page = traced(*KINDS_OF_MODEL[name]), open_file("<p></p>")
    for kind in kinds(trace):
        heads = TraceNumbers(trace).heads(kind)
        found, whole, reasons = heads.operands(1, HEAD), heads.pattern(1, HEAD), heads.blocked(1)
        lists = [
            None if one is None else one.ravel().tolist() for one in (found.q, found.k, found.by_distance, reasons)
        ]
        weights, scores = json.loads(page.evaluate(script, json.dumps([*lists, *whole.shape])))
        np.testing.assert_allclose(weights, whole.ravel(), atol=2e-6)  # float32 sums in another order
        np.testing.assert_allclose(scores, heads.scores(1, HEAD).ravel(), atol=1e-5)


def drawn_rows(open_file: OpenFile, trace: Trace, kind: str, *, damage: bool) -> tuple[Any, Any, bool]:
    """Scores and norms of a head without and with the graphics processor, and whether what that gave is believed."""
    page = open_file("<p></p>")
    sources = [read_module(SCRIPTS / f"{name}.js").body for name in ("computed_head", "graphics_scores")]
    heads = TraceNumbers(trace).heads(kind)
    found, reasons, shape = heads.operands(1, HEAD), heads.blocked(1), heads.shape[2:]
    lists = [None if one is None else one.ravel().tolist() for one in (found.q, found.k, found.by_distance, reasons)]
    sent = json.dumps([*lists, *shape, damage])
    here, drawn, believed, error = json.loads(page.evaluate(ON_GRAPHICS % "\n".join(sources), sent))
    assert error == 0
    return here, drawn, believed


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", KINDS_OF_MODEL)
def test_the_graphics_processor_gives_the_same_numbers(open_file: OpenFile, name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    for kind in kinds(trace):
        here, drawn, believed = drawn_rows(open_file, trace, kind, damage=False)
        assert believed
        np.testing.assert_allclose(drawn[0], here[0], atol=1e-5)  # float32 sums in another order
        np.testing.assert_allclose(drawn[1], here[1], atol=1e-5)


def test_a_graphics_processor_that_is_wrong_by_a_hundredth_is_not_believed(open_file: OpenFile) -> None:
    here, drawn, believed = drawn_rows(open_file, traced(*KINDS_OF_MODEL["alibi"]), "decoder", damage=True)
    assert not believed
    assert drawn == here


@pytest.mark.parametrize("name", ["encoder and decoder", "window in one layer", "buckets"])
def test_the_cell_under_the_pointer_is_the_library_s(open_file: OpenFile, name: str) -> None:
    trace = traced(*KINDS_OF_MODEL[name])
    kind = kinds(trace)[0]
    tokens = [f"t{index}" for index in range(N)][: trace[f"{kind}.1.self"].q.shape[1]]
    payload = packed(trace, kind, 1)
    page = open_file(to_html(payload, query_tokens=tokens, key_tokens=tokens, selected=Selection(1, HEAD, QUERY, KEY)))
    heads = TraceNumbers(trace).heads(kind)
    spot = page.locator(".vf-readout")
    if name == "window in one layer":
        expect(spot).to_have_text(f"query {QUERY} “t{QUERY}” → key {KEY} “t{KEY}” is masked: outside the window")
        return
    expect(spot).to_have_text(
        f"query {QUERY} “t{QUERY}” attends to key {KEY} “t{KEY}” with weight {heads.pattern(1, HEAD)[QUERY, KEY]:.4f}"
    )
    page.locator("[data-view=scores]").last.click()
    assert f"{abs(heads.scores(1, HEAD)[QUERY, KEY]):.4f}" in readout(page)


def one_strong_cell(n: int) -> str:
    """A file with a head of n tokens, of which one looks at one other; every other one looks at all alike."""
    q, k = np.zeros((n, 2), np.float32), np.zeros((n, 2), np.float32)
    q[3 * n // 4, 0] = k[n // 6, 0] = 6.0
    small = np.zeros((1, 1, 32, 32), np.uint8)
    tokens = [str(index) for index in range(n)]
    selected = Selection(query=3 * n // 4, key=n // 6)
    return to_html(
        pack_operands(small, Operands(q, k, None), chosen=(0, 0)),
        query_tokens=tokens,
        key_tokens=tokens,
        selected=selected,
    )


STRONG = f"with weight {1 / (1 + 1999 * np.exp(-36.0)):.4f}"


def test_a_large_head_is_computed_by_workers(open_file: OpenFile) -> None:
    page = open_file(one_strong_cell(2000))
    expect(page.locator(".vf-readout")).to_contain_text(STRONG)
    assert 1 <= len(page.workers) <= 4


def test_a_large_head_is_computed_on_the_graphics_processor(open_file: OpenFile) -> None:
    file = one_strong_cell(2000)
    for before, after in {  # a program that draws counts as a graphics processor here, and what it draws is counted
        "static PROGRAMS = /": "static PROGRAMS = /none of them|",
        "gl.drawArrays(": "self.drawn = (self.drawn ?? 0) + 1; gl.drawArrays(",
    }.items():
        assert file.count(before) == 1
        file = file.replace(before, after)
    file = file.replace("none of them|swiftshader|llvmpipe|softpipe|software|basic render/i", "none of them/")
    page = open_file(file)
    expect(page.locator(".vf-readout")).to_contain_text(STRONG)
    assert sum(worker.evaluate("self.drawn") for worker in page.workers) == 32  # blocks of 64 rows


FORBIDDEN = {
    "not there": "<script>window.Worker = undefined;</script>",
    "refused": "<meta http-equiv='Content-Security-Policy' content=\"worker-src 'none'\">",
}


@pytest.mark.parametrize("why", FORBIDDEN)
def test_a_large_head_is_computed_where_there_are_no_workers(open_file: OpenFile, why: str) -> None:
    page = open_file(one_strong_cell(2000).replace("<head>", f"<head>{FORBIDDEN[why]}", 1))
    expect(page.locator(".vf-readout")).to_contain_text(STRONG)
    assert not page.workers


def test_one_strong_cell_is_seen_where_cells_are_smaller_than_pixels(open_file: OpenFile) -> None:
    page = open_file(one_strong_cell(2000))
    expect(page.locator(".vf-readout")).to_contain_text(STRONG)
    expect(page.locator(".vf-pooled")).to_contain_text("the strongest of 4 × 4 cells")
    left, top, width, height = map(float, page.locator(".vf-stage").get_attribute("data-plot").split())
    strong, weak = (
        page.evaluate(
            "([x, y]) => [...document.querySelector('.vf-base').getContext('2d').getImageData(x, y, 3, 3).data]",
            [int(left + 333.5 * width) - 1, int(top + row * height) - 1],
        )
        for row in (1500.5, 900.5)
    )
    assert np.abs(np.subtract(strong, weak)).max() > 100
    page.locator(".vf-zoom button").nth(1).click()
    page.locator(".vf-zoom button").nth(1).click()
    page.locator(".vf-zoom button").nth(1).click()
    expect(page.locator(".vf-pooled")).to_be_empty()


def test_only_the_cells_in_sight_of_an_enlarged_map_are_painted(open_file: OpenFile) -> None:
    page = open_file(one_strong_cell(2000))
    expect(page.locator(".vf-readout")).to_contain_text(STRONG)
    stage = page.locator(".vf-stage")
    left, top, width, height = map(float, stage.get_attribute("data-plot").split())
    box = stage.bounding_box()
    x, y = left + 333.5 * width, top + 1500.5 * height
    page.evaluate(
        """() => {
          window.largest = 0;
          const before = CanvasRenderingContext2D.prototype.putImageData;
          CanvasRenderingContext2D.prototype.putImageData = function (image, ...more) {
            window.largest = Math.max(window.largest, image.width * image.height);
            return before.call(this, image, ...more);
          };
        }"""
    )

    def strong_is_seen() -> bool:
        return page.evaluate(  # type: ignore[no-any-return]
            """([x, y]) => {
              const { data } = document.querySelector(".vf-base").getContext("2d").getImageData(x, y, 600, 600);
              return data.some((one, at) => Math.abs(one - data[at % 4]) > 100);
            }""",
            [left, top],
        )

    def drag(start: int, end: int) -> None:  # three times, beyond the cells that were painted around those in sight
        for _ in range(3):
            page.mouse.move(box["x"] + left + start, box["y"] + y)
            page.mouse.down()
            page.mouse.move(box["x"] + left + end, box["y"] + y)
            page.mouse.up()

    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.wheel(0, -2000)
    expect(page.locator(".vf-pooled")).to_be_empty()
    assert strong_is_seen()
    drag(10, 400)
    assert not strong_is_seen()
    drag(400, 10)
    assert strong_is_seen()
    assert 0 < page.evaluate("window.largest") < 1_000_000

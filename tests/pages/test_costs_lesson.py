"""The lesson Costs, variants, results: what is on the screen is what the library computes, and the code on it runs."""

import json
import re
from urllib.parse import parse_qs

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, opens_well, run, said, tables
from tests.pages.test_questions import enter, right
from tests.refs import subject
from vizformer.analysis.costs.layer_types import (
    SPARSE_KINDS,
    SparseKind,
    SparseSettings,
    cell_count,
    sparse_cells,
    sparse_cost,
)
from vizformer.analysis.costs.paper_results import TABLE_2, TABLE_3, counted, loss_changes, own_rows
from vizformer.analysis.costs.parameter_count import mixture
from vizformer.assets import asset
from vizformer.explain.attention_without_softmax import linear_attention
from vizformer.explain.softmax_in_blocks import online_softmax
from vizformer.web.lessons.costs.flash import factor
from vizformer.web.lessons.costs.sparse import KINDS

PAGE = "pages/learn/costs.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
SITES = {"zh-en": "encoder.1.self", "stories": "decoder.1.self", "cloze": "encoder.1.self"}
ATTENTION = {"zh-en": "encoder", "stories": "decoder", "cloze": "encoder"}


def link(model: str, part: str, *dials: str) -> dict[str, str]:
    return dict(part=part, model=model, text=TEXTS[model], dials="~".join(dials))


def own_tokens(model: str) -> int:
    return len(load(model).encode(TEXTS[model]))


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_tiles_are_those_of_the_library_and_their_code_runs(open_app: Open, model: str) -> None:
    place = dict(kind=ATTENTION[model], layer=1, head=2, query=3)
    app = open_app(PAGE, **link(model, "flash", "costs.tile:2"), **place, step=2)
    assert not app.exception
    assert not app.error
    record = load(model).trace(TEXTS[model])[SITES[model]]
    found = online_softmax(record, 2, 3, 2)
    shown = tables(app)[0]
    assert [number(row[4]) for row in shown[:-1]] == pytest.approx([tile.total for tile in found.tiles], abs=1e-4)
    assert number(shown[-1][-1]) == pytest.approx(found.z[0], abs=1e-4)
    assert any("Equal to the softmax of the whole row" in box.value for box in app.success)
    assert float(run(app.code[0].value)["l"]) == pytest.approx(found.tiles[1].total, rel=1e-4)
    last = online_softmax(record, 2, record.q.shape[1] - 1, 2).tiles
    assert right(enter(app, "costs", "factor", round(last[1].factor, 3)))


def test_zero_is_no_answer_where_the_factor_of_a_tile_is_small() -> None:
    asked = factor(subject("stories", "我有一只猫。"))
    assert asked is not None
    assert asked.answer == pytest.approx(0.0116, abs=5e-4)
    assert asked.tolerance < asked.answer / 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_linear_attention_is_that_of_the_head(open_app: Open, model: str) -> None:
    place = dict(kind=ATTENTION[model], layer=1, head=2, query=3)
    app = open_app(PAGE, **link(model, "linear"), **place)
    assert not app.exception
    assert not app.error
    found = linear_attention(load(model).trace(TEXTS[model])[SITES[model]], 2)
    costs, weights = tables(app)[0], array(chart(app, 0)["data"][0]["z"])[1]
    assert weights == pytest.approx([w for w in found.weights[3] if w > 0][: len(weights)], abs=1e-6)
    n, d = own_tokens(model), load(model).model.config.d_head
    assert [number(row[1].split("= ")[1]) for row in costs] == [2 * n * n * d, 2 * n * d * d]
    assert any(f"{found.apart[3]:.0%}" in box.value for box in app.warning)
    done = run(app.code[0].value)
    assert done["same"]
    assert f"{20 * n * d * d:,}" not in said(app)  # it is asked for a longer text: the page does not say it
    assert right(enter(app, "costs", "bracket", 20 * n * d * d))


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", TEXTS)
def test_the_formula_and_the_code_count_the_cells_of_the_chosen_mask(
    open_app: Open, model: str, kind: SparseKind
) -> None:
    app = open_app(PAGE, **link(model, "sparse", f"costs.sparse:{kind}"))
    assert not app.exception
    cells = sparse_cells(kind, own_tokens(model), SparseSettings(1, 1, 1, causal=model == "stories")).open
    live = app.latex[1].value
    rows, counted, most = re.search(r"([\d +\\dots]+) = (\d+) \\le \d+ \\cdot \d+ = (\d+)", live).groups()  # type: ignore[union-attr]
    if "dots" not in rows:
        assert [int(row) for row in rows.strip().split(" + ")] == cells.sum(1).tolist()
    assert int(counted) == cells.sum() <= int(most)
    assert run(app.code[0].value)["cells"] == cells.sum()


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_sparse_masks_are_counted(open_app: Open, model: str) -> None:
    dials = ("costs.sparse:longformer", "costs.reach:2", "costs.global:1")
    app = open_app(PAGE, **link(model, "sparse", *dials))
    assert not app.exception
    n, config = own_tokens(model), load(model).model.config
    s = SparseSettings(2, 1, 1, 0, causal=model == "stories")
    for row, kind in zip(tables(app)[0], SPARSE_KINDS, strict=True):
        found = sparse_cost(kind, sparse_cells(kind, n, s).open)
        assert row[1].startswith(f"{found.cells:,} (")
        assert row[2] == ("never" if found.layers is None else str(found.layers))
        products = 2 * cell_count(kind, 4096, s) * config.d_head * config.n_heads
        value, power = row[4].split(" · ") if " · " in row[4] else (row[4], "")
        assert number(value) * {"": 1, "10⁶": 1e6, "10⁹": 1e9}[power] == pytest.approx(products, rel=1e-3)
    done, own = run(app.code[0].value), sparse_cost("longformer", sparse_cells("longformer", n, s).open)
    assert done["cells"] == own.cells
    assert int(done["hears"].sum()) == own.heard[min(1, len(own.heard) - 1)]
    assert right(enter(app, "costs", "layers", int(np.ceil((n - 1) / 2))))


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_family_is_read_off_the_options(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "family", "costs.experts:16", "costs.used:2"))
    assert not app.exception
    family, experts = tables(app)
    config = load(model).model.config
    assert family[0][4] == {"zh-en": "ReLU", "stories": "SwiGLU", "cloze": "GELU"}[model]
    assert family[0][5] == ("4 for 8 heads" if model == "stories" else "one set for each head")
    assert [row[1] for row in family[1:]].count("decoder") == 2
    found = mixture(config, 16, 2)
    for cell, count in zip(experts[0][1:3], (found.total, found.active), strict=True):
        assert number(cell.split(" ·")[0]) * 1e6 == pytest.approx(count, rel=1e-3)
    done = run(app.code[0].value)
    assert done["same"]
    one, eight = mixture(config, 1, 1), mixture(config, 8, 1)
    assert right(enter(app, "costs", "experts", round(eight.total / one.total, 2)))


def test_who_goes_on_from_the_family_takes_the_sentence_along(open_app: Open) -> None:
    app = open_app(PAGE, **{**link("stories", "family"), "text": "Two dogs sleep."})
    parts = [parse_qs(one.proto.query_string) for one in app.get("page_link") if "part=" in one.proto.query_string]
    assert len(parts) > 2
    assert {(one["model"][0], one["text"][0]) for one in parts} == {("stories", "Two dogs sleep.")}


def test_a_model_of_the_family_is_opened(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "family"))
    app = app.button(key="costs.open.stories").click().run()
    assert not app.exception
    assert tables(app)[0][0][4] == "SwiGLU"


@pytest.mark.sample(1)
@pytest.mark.parametrize("pair", ["de", "fr"])
def test_the_results_are_those_of_the_paper(open_app: Open, pair: str) -> None:
    app = open_app(PAGE, **link("cloze", "results", f"costs.to:{pair}"))
    assert not app.exception
    at = ("de", "fr").index(pair)
    both = [row for row in TABLE_2 if row.bleu[at] is not None and row.flops[at] is not None]
    drawn = chart(app, 0)["data"]
    points = [(cost, score) for one in drawn for cost, score in zip(array(one["x"]), array(one["y"]), strict=True)]
    np.testing.assert_allclose(sorted(points), sorted((row.flops[at], row.bleu[at]) for row in both), rtol=1e-6)
    table_2, recipes, table_3, own = tables(app)
    assert recipes[4][1:3] == ["63,082,496", "214,245,376"]
    assert table_2[-1][1:3] == ["28.4", "41.8"]
    for shown, row in zip(table_3, TABLE_3, strict=True):
        assert shown[2:4] == [f"{row.perplexity:.2f}", f"{row.bleu:.1f}"]
        assert shown[5] == ("" if row.millions is None else str(row.millions))
        assert number(shown[6]) == pytest.approx(counted(row) / 1e6, abs=0.06)
    rows = own_rows(json.loads(asset("lessons", "costs", "ablations.json").read_text(encoding="utf-8")))
    for shown, row in zip(own, rows, strict=True):
        assert shown[2:5] == [f"{row.perplexity:.2f}", f"{row.bleu:.1f}", f"{row.bleu_range:.1f}"]
        assert shown[7] == f"{row.parameters:,}"
    changes = [array(one["x"]) for one in chart(app, 1)["data"]]
    np.testing.assert_allclose(np.transpose(changes), loss_changes(rows), atol=1e-6)
    done = run(app.code[0].value)
    assert done["base"] == pytest.approx(3.3e18, rel=0.01)
    assert right(enter(app, "costs", "hours", 2.3))


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    for part, word in (
        ("flash", "当前最大值"),
        ("linear", "线性注意力"),
        ("sparse", "堆叠"),
        ("family", "专家"),
        ("results", "逐个乘积"),
    ):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert word in said(app), part


@pytest.mark.sweep
def test_a_mark_and_one_token_are_enough(open_app: Open) -> None:
    for part in ("flash", "linear", "sparse", "family", "results"):
        opens_well(open_app(), PAGE, part=part, model="stories", text=".")

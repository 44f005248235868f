"""The lesson Costs, variants, results: what is on the screen is what the library computes, and the code on it runs."""

import json
import math
import re

import numpy as np
import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, opens_well, run, said, tables
from tests.pages.test_questions import enter, right
from tests.refs import subject
from vizformer.analysis.costs.attention_speed import COMPARISONS, WAYS, Kind, Measured
from vizformer.analysis.costs.layer_types import table_one
from vizformer.analysis.costs.model_costs import mixture, model_cost, overtakes
from vizformer.analysis.costs.own_ablations import loss_changes, own_rows
from vizformer.analysis.costs.paper_results import TABLE_2, TABLE_3, counted
from vizformer.analysis.costs.sparse_reach import (
    SPARSE_KINDS,
    SparseKind,
    SparseSettings,
    cell_count,
    sparse_cells,
    sparse_cost,
)
from vizformer.assets import asset
from vizformer.config import ModelConfig
from vizformer.explain.attention_without_softmax import linear_attention
from vizformer.explain.softmax_in_blocks import online_softmax
from vizformer.web.catalogue import speed_run
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
def test_table_one_is_that_of_the_typed_length(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "complexity", "costs.k:4", "costs.r:5"))
    assert not app.exception
    n, d = own_tokens(model), load(model).model.config.d_model
    found = table_one(n, d, 4, 5)
    for row, one in zip(tables(app)[0], found, strict=True):
        assert number(row[1].split("= ")[1]) == one.per_layer
        assert number(row[2].removeprefix("n = ")) == one.sequential
        assert number(row[3].split("= ")[-1]) == pytest.approx(one.path, rel=0.01)
    done = run(app.code[0].value)
    assert [done["attention"], done["recurrent"], done["convolution"], done["restricted"]] == [
        one.per_layer for one in found[:4]
    ]
    assert done["path"] == pytest.approx(found[2].path)
    assert right(enter(app, "costs", "times", round(d / n, 2)))


def test_a_longer_text_makes_another_layer_the_cheaper_one(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "complexity", "costs.n:1024", "costs.r:64"))
    assert any("by the table self-attention needs 4 times as many" in text.value for text in app.text)
    assert number(tables(app)[0][0][1].split("= ")[1]) == 1024**2 * 256


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_calculator_counts_the_readers_model(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "calculator"))
    assert not app.exception
    config, n = load(model).model.config, own_tokens(model)
    found = model_cost(config, n)
    components, forward, _memory, _training = tables(app)
    assert [number(row[1]) for row in components] == [*(count for __, count in found.components()), found.total]
    assert found.total == sum(p.numel() for p in load(model).model.parameters())
    counts = (found.forward.attention, found.forward.projections, found.forward.feedforward, found.forward.unembedding)
    for row, count in zip(forward, counts, strict=False):
        shown = number(row[1].split(" ·")[0]) * (1e6 if "10⁶" in row[1] else 1)
        assert shown == pytest.approx(count, rel=1e-3)
    assert run(app.code[0].value)["overtakes"] == found.overtakes.products
    assert right(enter(app, "costs", "overtakes", round(overtakes(config).products)))


def test_a_published_model_is_counted_beside_what_its_authors_print(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "calculator", "costs.model:gpt3-175b", "costs.length:2048", "costs.bytes:2"))
    assert not app.exception
    found = model_cost(ModelConfig.preset("gpt3-175b"), 2048)
    components, __, memory, training = tables(app)
    assert number(components[-1][1]) == found.total
    assert any("arXiv:2005.14165v4, Table 2.1" in caption.value for caption in app.caption)
    assert memory[0][1] == f"{2 * found.total / 2**30:.1f} GiB"
    assert memory[-1][1].startswith(f"{2 * found.kv_numbers / 2**30:.1f} GiB")
    assert training[0][1].startswith("3.14")
    assert "10²³" in training[0][1]
    assert run(app.code[0].value)["training"] == pytest.approx(found.rule_of_thumb(300e9))


def test_a_number_between_the_ends_can_be_typed(open_app: Open) -> None:
    app = open_app(PAGE, **link("stories", "calculator", "costs.model:numbers"))
    before = said(app)
    app.number_input(key="setting.costs.d").set_value(1024).run()
    assert app.number_input(key="setting.costs.d").value == 1024
    assert "costs.d:1024" in str(app.query_params["dials"])
    assert "d_model 1,024" in said(app)
    assert "d_model 1,024" not in before


def test_numbers_of_ones_own_are_counted_and_impossible_ones_refused(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "calculator", "costs.model:numbers", "costs.encoder:0", "costs.d:768"))
    assert not app.exception
    config = ModelConfig(
        vocab_size=37_000, d_model=768, n_heads=8, n_kv_heads=8, d_ff=2048, n_decoder_layers=6, positions="none"
    )
    assert number(tables(app)[0][-1][1]) == model_cost(config, 8).total
    app = open_app(PAGE, **link("zh-en", "calculator", "costs.model:numbers", "costs.heads:7"))
    assert not app.exception
    assert any("not divisible by n_heads=7" in error.value.replace("\\", "") for error in app.error)
    opens_well(app, PAGE, **link("zh-en", "calculator", "costs.model:numbers", "costs.d:999999999"))


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
    assert asked.answer == pytest.approx(0.009, abs=5e-4)
    assert asked.tolerance < asked.answer / 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_linear_attention_is_that_of_the_head(open_app: Open, model: str) -> None:
    place = dict(kind=ATTENTION[model], layer=1, head=2, query=3)
    app = open_app(PAGE, **link(model, "linear"), **place)
    assert not app.exception
    assert not app.error
    found = linear_attention(load(model).trace(TEXTS[model])[SITES[model]], 2)
    weights, costs = tables(app)[:2]
    assert [number(row[2]) for row in weights] == pytest.approx(
        [100 * w for w in found.weights[3] if w > 0][: len(weights)], abs=0.06
    )
    n, d = own_tokens(model), load(model).model.config.d_head
    assert [number(row[1].split("= ")[1]) for row in costs] == [2 * n * n * d, 2 * n * d * d]
    assert any(f"{found.apart[3]:.0%}" in box.value for box in app.warning)
    done = run(app.code[0].value)
    assert done["same"]
    assert f"{20 * n * d * d:,}" not in said(app)  # it is asked for a longer text: the page does not say it
    assert right(enter(app, "costs", "bracket", 20 * n * d * d))


def test_the_formulas_of_table_one_hold_for_short_texts(open_app: Open) -> None:
    app = open_app(PAGE, part="complexity", model="zh-en", text="猫", dials="costs.k:9~costs.r:8")
    n, d = len(load("zh-en").encode("猫")), load("zh-en").model.config.d_model
    assert n < 8
    values = {"n": n, "d": d, "k": 9, "r": 8, "max": max, "min": min, "log": math.log}
    for row in tables(app)[0]:
        for cell in (row[1], row[3]):
            formula, __, shown = cell.rpartition(" = ")
            written = formula.replace("logₖ n", "log(n, k)").replace("²", "**2").replace("·", "*")
            if formula:
                assert eval(written, values) == pytest.approx(number(shown), rel=0.01), cell


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


def test_what_was_measured_is_drawn_and_can_be_begun_and_stopped(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Run:
        """A measurement of which two lengths are there."""

        def __init__(self) -> None:
            self.running, self.found = False, tuple[Measured, ...]()

        def look(self, kind: Kind) -> speed_run.SpeedState:
            return speed_run.SpeedState(self.found, self.running, "" if self.running or not self.found else "stopped")

        def start(self, kind: Kind) -> None:
            self.running = True
            self.found = tuple(Measured(way, n, n / 1e5, 4 * n) for n in (128, 256) for way in WAYS)

        def stop(self, kind: Kind) -> None:
            self.running = False

    fake = Run()
    monkeypatch.setattr(speed_run, "speed_run", lambda: fake)
    app = open_app(PAGE, **link("zh-en", "measured"))
    assert not app.exception
    known = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))
    full = [1e3 * one["seconds"] for one in known["heads"] if one["way"] == "full"]
    np.testing.assert_allclose(array(chart(app, 0)["data"][0]["y"]), full, rtol=1e-5)
    assert known["processor"] in said(app)
    assert run(app.code[0].value)["same"]
    app = app.button(key="costs.speed.start").click().run()
    assert not app.exception
    assert fake.running
    times, memory = chart(app, 0)["data"], chart(app, 1)["data"]
    np.testing.assert_allclose(array(times[0]["y"]), [1.28, 2.56], rtol=1e-5)
    np.testing.assert_allclose(array(memory[0]["y"]), [512 / 2**20, 1024 / 2**20], rtol=1e-5)
    assert tables(app)[0][0][1] == "1.28 ms, 512 B"
    app = app.button(key="costs.speed.stop").click().run()
    app.run()
    assert any("Stopped" in info.value for info in app.info)
    assert app.button(key="costs.speed.start").label == "Measure again"
    n = own_tokens("zh-en")
    assert right(enter(app, "costs", "bytes", 4 * n * n))


def test_a_layer_of_attention_is_timed_beside_a_recurrent_one(open_app: Open) -> None:
    app = open_app(PAGE, **link("zh-en", "measured", "costs.compared:layers"))
    assert not app.exception
    known = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))["layers"]
    for trace, way in zip(chart(app, 0)["data"], COMPARISONS["layers"].ways, strict=True):
        own = [1e3 * one["seconds"] for one in known if one["way"] == way]
        np.testing.assert_allclose(array(trace["y"]), own, rtol=1e-5)
    times, theory = tables(app)
    assert (
        [row[0] for row in times] == [row[0] for row in theory] == ["32", "64", "128", "256", "512", "1,024", "2,048"]
    )
    for row in theory:
        n, d = int(number(row[0])), 128
        assert (number(row[1]), number(row[2])) == (2 * n * n * d + 4 * n * d * d, 6 * n * d * d)
        assert (row[4], row[5]) == ("1", row[0])
    assert next(row for row in theory if row[0] == "128")[3] == "1.00"  # n = d
    run(app.code[0].value)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_family_is_read_off_the_options(open_app: Open, model: str) -> None:
    app = open_app(PAGE, **link(model, "family", "costs.experts:16", "costs.used:2", "costs.cached:2048"))
    assert not app.exception
    family, caches, experts = tables(app)
    config = load(model).model.config
    assert family[0][4] == {"zh-en": "ReLU", "stories": "SwiGLU", "cloze": "GELU"}[model]
    assert family[0][5] == ("4 for 8 heads" if model == "stories" else "each head its own")
    assert [row[1] for row in family[1:]].count("decoder") == 2
    assert [row[0] for row in caches] == ["1", "2", "4", "8", "16", "32"]
    assert caches[-1][2] == f"{2 * 2 * 32 * 32 * 128 * 2048 / 2**30:.1f} GiB"
    found = mixture(config, 16, 2)
    for cell, count in zip(experts[0][1:3], (found.total, found.active), strict=True):
        assert number(cell.split(" ·")[0]) * 1e6 == pytest.approx(count, rel=1e-3)
    (lengths,) = (one for one in app.select_slider if one.key == "setting.costs.cached")
    assert [option for option in lengths.options if "your text" in option] == [f"{own_tokens(model)} (your text)"]
    done = run(app.code[0].value)
    assert done["same"]
    one, eight = mixture(config, 1, 1), mixture(config, 8, 1)
    assert right(enter(app, "costs", "experts", round(eight.total / one.total, 2)))


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
    recipes, table_2, table_3, own = tables(app)
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
        ("complexity", "自注意力"),
        ("calculator", "嵌入"),
        ("flash", "当前最大值"),
        ("linear", "线性注意力"),
        ("sparse", "堆叠"),
        ("measured", "机器"),
        ("family", "专家"),
        ("results", "逐个乘积"),
    ):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert word in said(app), part


@pytest.mark.sweep
def test_a_mark_and_one_token_are_enough(open_app: Open) -> None:
    for part in ("complexity", "calculator", "flash", "linear", "sparse", "measured", "family", "results"):
        opens_well(open_app(), PAGE, part=part, model="stories", text=".")

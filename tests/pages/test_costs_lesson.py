"""Lesson 11, Costs, variants, results: what is on the screen is what the library computes, and the code on it runs."""

import numpy as np
import pytest

from tests.pages.conftest import Open
from tests.pages.reading import number, opens_well, run, tables
from tests.pages.test_questions import enter, right
from vizformer import load
from vizformer.analysis.complexity import table_one
from vizformer.analysis.model_costs import model_cost, overtakes
from vizformer.analysis.sparse_reach import SPARSE_KINDS, SparseSettings, cell_count, sparse_cost
from vizformer.config import ModelConfig
from vizformer.explain.linear_attention import linear_attention
from vizformer.explain.online_softmax import online_softmax

PAGE = "pages/learn/costs.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
SITES = {"zh-en": "encoder.1.self", "stories": "decoder.1.self", "cloze": "encoder.1.self"}
KINDS = {"zh-en": "encoder", "stories": "decoder", "cloze": "encoder"}


def link(model: str, part: str, *dials: str) -> dict[str, str]:
    return dict(part=part, model=model, text=TEXTS[model], dials="~".join(dials))


def own_tokens(model: str) -> int:
    return len(load(model).encode(TEXTS[model]))


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
    assert any("self-attention needs more multiplications" in text.value for text in app.text)
    assert number(tables(app)[0][0][1].split("= ")[1]) == 1024**2 * 256


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


@pytest.mark.parametrize("model", TEXTS)
def test_the_tiles_are_those_of_the_library_and_their_code_runs(open_app: Open, model: str) -> None:
    place = dict(kind=KINDS[model], layer=1, head=2, query=3)
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


@pytest.mark.parametrize("model", TEXTS)
def test_linear_attention_is_that_of_the_head(open_app: Open, model: str) -> None:
    place = dict(kind=KINDS[model], layer=1, head=2, query=3)
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
    assert right(enter(app, "costs", "bracket", 2 * n * d * d))


@pytest.mark.parametrize("model", TEXTS)
def test_sparse_masks_are_counted(open_app: Open, model: str) -> None:
    dials = ("costs.sparse:longformer", "costs.reach:2", "costs.global:1")
    app = open_app(PAGE, **link(model, "sparse", *dials))
    assert not app.exception
    n, config = own_tokens(model), load(model).model.config
    s = SparseSettings(2, 1, 1, 0, causal=model == "stories")
    for row, kind in zip(tables(app)[0], SPARSE_KINDS, strict=True):
        found = sparse_cost(kind, n, s)
        assert row[1].startswith(f"{found.cells:,} (")
        assert row[2] == ("never" if found.layers is None else str(found.layers))
        products = 2 * cell_count(kind, 4096, s) * config.d_head * config.n_heads
        value, power = row[4].split(" · ") if " · " in row[4] else (row[4], "")
        assert number(value) * {"": 1, "10⁶": 1e6, "10⁹": 1e9}[power] == pytest.approx(products, rel=1e-3)
    done = run(app.code[0].value)
    assert done["cells"] == sparse_cost("longformer", n, s).cells
    assert (
        int(done["hears"].sum())
        == sparse_cost("longformer", n, s).heard[min(1, len(sparse_cost("longformer", n, s).heard) - 1)]
    )
    assert right(enter(app, "costs", "layers", int(np.ceil((n - 1) / 2))))

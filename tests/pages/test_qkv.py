"""The lesson Query, key, value: what is on the screen is what the library computes, and the code on it runs."""

import numpy as np
import pytest
import torch

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, marked, number, run, tables
from vizformer.analysis import head_maps
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.analysis.scores import qk_circuit, score_scaling, soft_lookup
from vizformer.web.link.view import usual_query

PAGE = "pages/learn/qkv.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
SITES = {
    "zh-en": ("encoder", "encoder.1.self"),
    "stories": ("decoder", "decoder.1.self"),
    "cloze": ("encoder", "encoder.1.self"),
}


def texts(app) -> str:
    return "\n".join(element.value for element in app.text)


# --- a soft look-up ---


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_notes_are_looked_up_as_the_link_says(open_app: Open, locale: str) -> None:
    app = open_app(PAGE, locale=locale, part="lookup", dials="qkv.t:0.5~qkv.sweet:-1~qkv.spicy:2.5")
    assert not app.exception
    query = np.array([-1.0, 1.0, 2.5])
    assert [slider.value for slider in app.slider if slider.key.startswith("setting.qkv.")] == query.tolist()
    found = soft_lookup.look_up(soft_lookup.RECIPE_KEYS @ query, soft_lookup.RECIPE_VALUES, temperature=0.5)
    drawn = chart(app, 0)
    assert array(drawn["data"][0]["x"]) == pytest.approx(found.weights)
    names = drawn["layout"]["yaxis"]["ticktext"]
    assert [number(name.rpartition(" = ")[2]) for name in names] == pytest.approx(found.scores)
    for answer in (found.soft, found.hard):
        assert all(f"{value:.4g}" in texts(app) for value in answer)
    done = run(app.code[0].value)  # its numbers are written out
    np.testing.assert_allclose(done["answer"].numpy(), found.soft, rtol=1e-4)


@pytest.mark.parametrize("model", TEXTS)
def test_the_sentence_is_a_table_too(open_app: Open, model: str) -> None:
    kind, site = SITES[model]
    app = open_app(PAGE, part="lookup", model=model, text=TEXTS[model], site=kind, layer=1, head=3, query=2)
    assert not app.exception
    trace = load(model).trace(TEXTS[model])
    found = soft_lookup.head_look_up(trace, site, 3, 2)
    rows = tables(app)[0]
    n = len(found.dots)
    assert len(rows) == n + 2
    assert [row[0] for row in rows[:n]] == [f"{i} · {t.text}" for i, t in enumerate(trace.tokens[kind])]
    assert [number(row[3]) for row in rows[:n]] == pytest.approx(found.found.weights, abs=1e-4)
    assert [number(row[4]) for row in rows[:n]] == pytest.approx(found.values[:, 0], abs=1e-4)
    assert [number(cell) for cell in rows[n][4:]] == pytest.approx(trace[site].z(3)[2, :2].tolist(), abs=1e-4)
    assert all(row[2] == "−∞" for row, s in zip(rows[:n], found.found.scores, strict=True) if np.isneginf(s))
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)


def test_at_another_temperature_nothing_is_proved(open_app: Open) -> None:
    app = open_app(PAGE, part="lookup", text=TEXTS["zh-en"], dials="qkv.t:2", layer=0, head=0)
    assert not app.success
    trace = load("zh-en").trace(TEXTS["zh-en"])
    query = usual_query(trace.tokens["encoder"])
    found = soft_lookup.head_look_up(trace, "encoder.0.self", 0, query, temperature=2.0)
    assert [number(row[3]) for row in tables(app)[0][: len(found.dots)]] == pytest.approx(found.found.weights, abs=1e-4)


def test_long_sentences_show_the_largest_weights(open_app: Open) -> None:
    text = "他喜欢喝水，我喜欢喝茶，她喜欢喝咖啡。"
    app = open_app(PAGE, part="lookup", text=text, layer=2, query=0)
    weights = soft_lookup.head_look_up(load("zh-en").trace(text), "encoder.2.self", 0, 0).found.weights
    rows = tables(app)[0]
    assert len(rows) == 12 + 1 + 2
    assert f"{len(weights) - 12} more" in rows[12][0]
    assert sum(number(row[3]) for row in rows[:13]) == pytest.approx(1.0, abs=2e-3)
    assert min(number(row[3]) for row in rows[:12]) >= np.sort(weights)[-12] - 1e-4


@pytest.mark.sample(1)
@pytest.mark.parametrize("site", ["encoder", "decoder", "cross"])
def test_where_a_query_looks_is_asked_of_the_sentence(open_app: Open, site: str) -> None:
    app = open_app(PAGE, part="lookup", text=TEXTS["zh-en"], site=site)
    asked = (box.value for box in app.markdown if "Predict first" in box.value)
    question = next(one for one in asked if "the query is" in one).replace("\\", "")
    layer, head = (int(word.rstrip(",:")) for word in question.split() if word.rstrip(",:").isdigit())
    query = int(question.split("“")[1].split(" ")[0])
    trace = load("zh-en").trace(TEXTS["zh-en"])
    weights = head_maps(trace, site).weights[layer, head, query]
    radio = next(r for r in app.radio if r.key.startswith("ask.qkv.self"))
    options = [option.replace("\\", "") for option in radio.options]
    right = next(i for i, option in enumerate(options) if option.startswith(f"{weights.argmax()} · "))
    app = radio.set_value(right).run()
    app = next(b for b in app.button if b.key.startswith("ask.qkv.self.button")).click().run()
    answer = next(box.value for box in app.success if "Right" in box.value).replace("\\", "")
    assert f"{weights.max():.3f}" in answer


# --- why three matrices ---


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("kind", ["identity", "shared"])
def test_the_scores_stand_side_by_side(open_app: Open, model: str, kind: str) -> None:
    stack, site = SITES[model]
    app = open_app(
        PAGE, part="three", model=model, text=TEXTS[model], site=stack, layer=1, head=2, dials=f"qkv.matrices:{kind}"
    )
    assert not app.exception
    checkpoint = load(model)
    trace = checkpoint.trace(TEXTS[model])
    forms = qk_circuit.score_forms(checkpoint, trace, site, 2)
    np.testing.assert_allclose(array(chart(app, 0)["data"][0]["z"]), getattr(forms, kind), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(array(chart(app, 1)["data"][0]["z"]), forms.learned, rtol=1e-5, atol=1e-5)
    assert "Symmetric: the largest" in texts(app)
    record = trace[site]
    done = run(app.code[0].value, q=record.q[2], k=record.k[record.kv_head(2)])
    learned = qk_circuit.asymmetry(forms.learned)
    assert float(done["largest"]) == pytest.approx(learned.largest, abs=1e-5)
    rows = tables(app)[0]
    assert len(rows) == checkpoint.model.config.n_heads
    assert number(rows[2][1]) == pytest.approx(learned.largest, abs=1e-4)
    assert [number(row[3]) for row in rows] == pytest.approx([0.0] * len(rows), abs=1e-9)
    assert marked(app, 0) == [2]
    found = qk_circuit.bilinear(checkpoint, trace, site, 2)
    assert any(f"only {found.rank} of its rows are independent" in box.value for box in app.markdown)
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)


def test_numbers_set_by_hand_are_not_proved(open_app: Open) -> None:
    app = open_app(PAGE, part="three", text=TEXTS["zh-en"], edits="encoder.0.self.q@0,0,0=30")
    assert any("You set numbers by hand" in box.value for box in app.warning)
    assert not app.success
    assert not app.error
    app = open_app(PAGE, part="lookup", text=TEXTS["zh-en"], edits="encoder.0.self.q@0,0,0=30")
    assert len(app.success) == 1  # the look-up uses the number that was set, as the model does


def test_cross_attention_gives_way_to_the_decoders_own(open_app: Open) -> None:
    app = open_app(PAGE, part="three", text=TEXTS["zh-en"], site="cross")
    assert not app.exception
    assert not app.error
    assert app.query_params["site"] in ("decoder", ["decoder"])


# --- why the division ---


def test_the_experiment_is_the_librarys(open_app: Open) -> None:
    app = open_app(PAGE, part="scale", text=TEXTS["zh-en"], dials="qkv.d:256~qkv.t:2")
    assert not app.exception
    measured = score_scaling.variances(0)
    np.testing.assert_allclose(array(chart(app, 0)["data"][1]["y"]), measured, rtol=1e-6)
    curves = score_scaling.saturation(0)
    np.testing.assert_allclose(array(chart(app, 1)["data"][1]["y"]), curves.slopes, rtol=1e-5)
    marks = [shape["x0"] for shape in chart(app, 1)["layout"]["shapes"]]
    assert marks == pytest.approx([256**0.5 / 2, 1 / 2])
    assert f"{curves.at(8.0)[0]:.1%}" in texts(app)
    torch.manual_seed(0)
    done = run(app.code[0].value)
    assert float(done["variance"]) == pytest.approx(256, rel=0.15)
    app = next(b for b in app.button if b.key == "qkv.again").click().run()
    np.testing.assert_allclose(array(chart(app, 0)["data"][1]["y"]), score_scaling.variances(1), rtol=1e-6)
    assert "qkv.seed:1" in str(app.query_params["dials"])


@pytest.mark.parametrize("model", TEXTS)
def test_a_real_head_with_its_own_divisor(open_app: Open, model: str) -> None:
    kind, site = SITES[model]
    app = open_app(PAGE, part="scale", model=model, text=TEXTS[model], site=kind, layer=1, head=1)
    checkpoint = load(model)
    found = score_scaling.score_scale(checkpoint.trace(TEXTS[model]), site, 1)
    undivided, divided = tables(app)[0]
    assert f"√{checkpoint.model.config.d_head}" in divided[0]
    assert [number(cell) for cell in undivided[1:]] == pytest.approx(
        [found.dots, found.largest_undivided.mean(), found.slope_undivided.mean()], abs=1e-4
    )
    assert [number(cell) for cell in divided[1:]] == pytest.approx(
        [found.scores, found.largest.mean(), found.slope.mean()], abs=1e-4
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_what_forgetting_the_division_does_is_asked_of_the_sentence(open_app: Open, model: str) -> None:
    kind = SITES[model][0]
    app = open_app(PAGE, part="scale", model=model, text=TEXTS[model], site=kind)
    asked = (box.value for box in app.markdown if "Predict first" in box.value)
    question = next(one for one in asked if "query “" in one).replace("\\", "")
    layer, head = (int(word.rstrip(",:")) for word in question.split()[2:6] if word.rstrip(",:").isdigit())
    query = int(question.split("query “")[1].split(" ")[0])
    found = score_scaling.score_scale(load(model).trace(TEXTS[model]), f"{kind}.{layer}.self", head)
    assert f"{found.largest[query]:.1%}" in question
    radio = next(r for r in app.radio if r.key.startswith("ask.qkv.scale"))
    options = [option.replace("\\", "") for option in radio.options]
    assert len(options) >= 3
    app = radio.set_value(options.index(f"{found.largest_undivided[query]:.1%}")).run()
    app = next(b for b in app.button if b.key.startswith("ask.qkv.scale.button")).click().run()
    assert any("Right" in box.value for box in app.success)


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    for part, word in (("lookup", "笔记"), ("three", "对称"), ("scale", "标准差")):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert any(word in element.value for element in (*app.text, *app.markdown, *app.caption)), part


def test_the_scores_of_a_long_sentence_are_drawn_without_their_digits(open_app: Open) -> None:
    app = open_app(PAGE, part="three", text=TEXTS["zh-en"] * 5)
    assert not app.error
    assert [chart.proto.spec.count("texttemplate") for chart in app.get("plotly_chart")[:2]] == [0, 0]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("page", "part"),
    [
        ("qkv", "lookup"),
        ("qkv", "three"),
        ("masks", "kinds"),
        ("masks", "paint"),
        ("costs", "flash"),
        ("costs", "linear"),
    ],
)
def test_a_part_opens_on_the_head_that_says_most(open_app: Open, page: str, part: str) -> None:
    text = TEXTS["zh-en"]
    app = open_app(f"pages/learn/{page}.py", part=part, text=text)
    assert not app.exception
    kind = "decoder" if page == "masks" else "encoder"
    trace = load("zh-en").trace(text)
    found = find_telling_head(trace, kind, usual_query(trace.tokens[kind]))
    assert (found.layer, found.head) != (0, 0)
    boxes = {box.key: box for box in app.selectbox}
    assert (boxes["view.layer"].value, boxes["view.head"].value) == (found.layer, found.head)
    which = "Of the heads that do not rest on one token" if found.resting else "Of all heads"
    assert any(f"layer {found.layer}, head {found.head}. {which}" in one.value for one in app.caption)
    assert "layer" not in app.query_params  # of another sentence the link shows another head
    other = (found.layer + 1) % 3
    app = boxes["view.layer"].set_value(other).run()
    assert str(app.query_params["layer"]) in (f"{other}", f"['{other}']")
    assert not any("Shown: layer" in one.value for one in app.caption)

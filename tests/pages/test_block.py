"""The lesson Add & norm, feed-forward: what is on the screen is what the library computes, and the code on it runs."""

import json

import numpy as np
import pytest
import torch

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import array, chart, number, run, tables
from vizformer.analysis.heads.measures import find_telling_head
from vizformer.analysis.training import depth_gradients
from vizformer.assets import asset
from vizformer.explain.block_rows import block_stream, feedforward_input, find_norm_rows, norm_numbers, stack_stream
from vizformer.explain.feedforward_rows import each_alone, multiplied_out, one_matrix
from vizformer.web.link.view import usual_query

PAGE = "pages/learn/block.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
STACKS = {"zh-en": "decoder", "stories": "decoder", "cloze": "encoder"}


def shown(app: object) -> str:
    return " ".join(str(box.value) for box in (*app.text, *app.caption, *app.success, *app.markdown))  # type: ignore[attr-defined]


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_running_sum_is_the_models(open_app: Open, model: str) -> None:
    stack = STACKS[model]
    app = open_app(PAGE, part="stream", model=model, text=TEXTS[model], site=stack, layer=1, query=2)
    assert not app.exception
    assert not app.error
    checkpoint = load(model)
    trace = checkpoint.trace(TEXTS[model])
    found = block_stream(checkpoint, trace, stack, 1, 2)
    rows = tables(app)[0]
    assert [number(row[2]) for row in rows] == pytest.approx(found.lengths, abs=1e-3)
    assert [number(row[3]) for row in rows] == pytest.approx(found.to_start, abs=1e-3)
    assert [number(row[4]) for row in rows] == pytest.approx(found.to_end, abs=1e-3)
    np.testing.assert_allclose(array(chart(app, 0)["data"][0]["y"]), found.lengths, rtol=1e-5)
    recorded = trace.residual(f"{stack}.1.post")[2]
    assert number(rows[-1][2]) == pytest.approx(float(recorded.norm()), abs=1e-3)
    assert f"= {found.first_sum.length:.4f}" in app.latex[-1].value
    x, f = found.points[0].row, found.attention_added
    block = getattr(checkpoint.model, stack).layers[1]
    learned = {"gamma": block.self_norm.weight.double()}
    if model != "stories":
        learned["beta"] = block.self_norm.bias.double()
    done = run(app.code[0].value, x=torch.from_numpy(x), f=torch.from_numpy(f), **learned)
    where = 1 if model == "stories" else 2
    assert float(done["length"]) == pytest.approx(found.lengths[where], rel=1e-5)
    assert float(done["cosine"]) == pytest.approx(found.to_start[where], abs=1e-5)


@pytest.mark.sample(2)
@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("part", ["stream", "norm", "ffn"])
def test_the_layer_of_the_telling_head_is_shown_where_nobody_chose(open_app: Open, part: str, model: str) -> None:
    trace = load(model).trace(TEXTS[model])
    found = find_telling_head(trace, STACKS[model], usual_query(trace.tokens[STACKS[model]]))
    assert found is not None
    app = open_app(PAGE, part=part, model=model, text=TEXTS[model], site=STACKS[model])
    assert not app.exception
    assert app.selectbox(key="view.layer").value == found.layer
    which = "the heads that do not rest on one token" if found.resting else "all heads"
    assert f"Shown: layer {found.layer}. Of {which}" in shown(app)
    app = open_app(PAGE, part=part, model=model, text=TEXTS[model], site=STACKS[model], layer=0)
    assert app.selectbox(key="view.layer").value == 0
    assert "Shown: layer" not in shown(app)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_all_layers_are_those_that_the_trace_has(open_app: Open, model: str) -> None:
    stack = STACKS[model]
    app = open_app(PAGE, part="stream", model=model, text=TEXTS[model], site=stack, query=1, dials="block.range:stack")
    found = stack_stream(load(model).trace(TEXTS[model]), stack, 1)
    np.testing.assert_allclose(array(chart(app, 0)["data"][0]["y"]), found.lengths, rtol=1e-5)
    radio = next(r for r in app.radio if r.key.startswith("ask.block.growth"))
    ratio = found.lengths[found.last_layer] / found.lengths[0]
    app = radio.set_value(2 if ratio > 2 else 0 if ratio < 0.5 else 1).run()
    app = next(b for b in app.button if b.key.startswith("ask.block.growth.button")).click().run()
    assert any("Right" in box.value for box in app.success)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_norm_is_worked_out_and_gamma_and_beta_can_be_set(open_app: Open, model: str) -> None:
    link = dict(part="norm", model=model, text=TEXTS[model], site=STACKS[model], layer=1, query=1)
    app = open_app(PAGE, **link, dials="block.norm:feedforward")
    assert not app.exception
    checkpoint = load(model)
    rows, norm = find_norm_rows(checkpoint, checkpoint.trace(TEXTS[model]), STACKS[model], 1, "feedforward")
    found = norm_numbers(rows, norm, 1)
    assert any(f"{found.proof.difference:.1g}" in box.value for box in app.success)
    assert f"= {found.result[0]:.4f}" in app.latex[1].value
    done = run(
        app.code[0].value,
        **{name: torch.from_numpy(v) for name, v in (("x", found.row), ("gamma", found.gamma), ("beta", found.beta))},
    )
    np.testing.assert_allclose(done["result"].numpy(), found.result, atol=1e-6)
    app = open_app(PAGE, **link, dials="block.norm:feedforward~block.by_hand:1~block.gamma:2~block.beta:0.5")
    by_hand = norm_numbers(rows, norm, 1, 2.0, 0.5)
    assert any(f"length {by_hand.result_length:.4f}" in text.value for text in app.text)


def test_only_under_batch_norm_a_neighbour_matters(open_app: Open) -> None:
    app = open_app(PAGE, part="norm", text=TEXTS["zh-en"])
    moved = {row[0]: number(row[2]) for row in tables(app)[0]}
    assert moved["LayerNorm"] == moved["RMSNorm"] == 0
    assert moved["BatchNorm"] > 0.1


def test_the_length_after_a_norm_is_asked_as_a_number(open_app: Open) -> None:
    app = open_app(PAGE, part="norm", text=TEXTS["zh-en"])
    app.number_input[0].set_value(16.05)
    app = next(b for b in app.button if b.key.startswith("ask.block.length.button")).click().run()
    assert any("Right" in box.value for box in app.success)


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_the_feed_forward_of_one_token(open_app: Open, model: str) -> None:
    stack = STACKS[model]
    app = open_app(
        PAGE, part="ffn", model=model, text=TEXTS[model], site=stack, layer=1, query=2, dials="block.changed:1"
    )
    assert not app.exception
    assert not app.error
    checkpoint = load(model)
    x, network = feedforward_input(checkpoint, checkpoint.trace(TEXTS[model]), stack, 1)
    moved = each_alone(x, network, 1).moved
    assert np.flatnonzero(moved).tolist() == [1]
    np.testing.assert_allclose(
        array(chart(app, 1)["data"][0]["x" if "h" in str(chart(app, 1)["data"][0].get("orientation")) else "y"]),
        moved,
        rtol=1e-5,
    )
    given = {"W_in": network.W_in.weight.T, "W_out": network.W_out.weight.T}
    if network.W_gate is None:
        given |= {"b_in": network.W_in.bias, "b_out": network.W_out.bias}
    else:
        given["W_gate"] = network.W_gate.weight.T
    with torch.inference_mode():
        rows = torch.from_numpy(x).float()
        done = run(app.code[0].value, x=rows[2], **given)
        np.testing.assert_allclose(done["out"].numpy(), network(rows[None])[0, 2].numpy(), atol=1e-4)
    single = one_matrix(x, network, multiplied_out(network))
    assert (single is None) == (model == "stories") == ("this network has a gate" in shown(app))
    if single is not None:
        assert f"{single.proof.difference:.1g}" in shown(app)
        assert f"{single.apart[2]:.2g} times" in shown(app)  # of the chosen token, as all the part
    app = open_app(PAGE, part="ffn", model=model, text=TEXTS[model], site=stack, layer=1, query=2)
    assert next(box for box in app.selectbox if box.key == "setting.block.changed").value == 2


@pytest.mark.sweep
def test_gradients_by_depth_are_the_librarys(open_app: Open) -> None:
    app = open_app(PAGE, part="residual", text=TEXTS["zh-en"], dials="block.depth:8")
    assert not app.exception
    at = depth_gradients.DEPTHS.index(8)
    drawn = chart(app, 0)["data"]
    for curve, kind in zip(drawn, depth_gradients.ARRANGEMENTS, strict=True):
        gradients = depth_gradients.untrained(kind, 8).gradients
        assert float(array(curve["y"])[at]) == pytest.approx(float(gradients[0]), rel=1e-4)
    done = run(app.code[0].value)
    assert float(done["with_sum"] / done["without"]) > 100


def test_the_trainings_are_the_bundled_ones(open_app: Open) -> None:
    app = open_app(PAGE, part="order", text=TEXTS["zh-en"], dials="block.layers:6")
    assert not app.exception
    curves = [array(one["y"]) for one in chart(app, 0)["data"]]
    assert curves[0][-1] > 2  # stuck at guessing
    assert max(curves[1][-1], curves[2][-1]) < 0.5
    by_layer = array(chart(app, 1)["data"][1]["y"])
    np.testing.assert_allclose(by_layer, depth_gradients.untrained("pre", 6).gradients, rtol=1e-4)
    done = run(app.code[0].value)
    post, pre = (float(length) for length in done["lengths"])
    assert post == pytest.approx(8, abs=0.1)
    assert pre > 50
    radio = next(r for r in app.radio if r.key.startswith("ask.block.warmup"))
    app = radio.set_value(0).run()
    app = next(b for b in app.button if b.key.startswith("ask.block.warmup.button")).click().run()
    assert any("Right" in box.value for box in app.success)


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    for part, word in (
        ("stream", "残差流"),
        ("norm", "按行归一化"),
        ("order", "预热"),
        ("count", "参数"),
    ):
        app = open_app(PAGE, locale="zh-CN", part=part)
        assert not app.exception
        assert any(word in element.value for element in (*app.text, *app.markdown, *app.caption)), part


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", TEXTS)
def test_parameters_are_counted(open_app: Open, model: str) -> None:
    app = open_app(PAGE, part="count", model=model, text=TEXTS[model])
    assert not app.exception
    by_part = {row[0]: row[1] for row in tables(app)[0]}
    assert by_part["encoder, 6 layers"] == "18,914,304"
    assert by_part["decoder, 6 layers"] == "25,224,192"
    assert by_part["together"] == "63,082,496"
    done = run(app.code[0].value)
    assert (done["encoder"], done["decoder"], done["total"]) == (18_914_304, 25_224_192, 63_082_496)
    app = open_app(PAGE, part="count", model=model, text=TEXTS[model], dials="block.encoder:0~block.d:128")
    done = run(app.code[0].value)
    assert {row[0]: row[1] for row in tables(app)[0]}["together"] == f"{done['total']:,}"
    assert f"{done['total']:,} parameters" in app.success[0].value


def test_widths_are_compared_at_one_depth_and_at_one_size(open_app: Open) -> None:
    app = open_app(PAGE, part="ffn")
    assert not app.exception
    bundled = json.loads(asset("lessons", "block", "feed_forward_width.json").read_text(encoding="utf-8"))
    means = {
        (one["layers"], one["ratio"]): np.mean([run["held_out"] for run in one["runs"]]) for one in bundled["models"]
    }
    drawn = [trace for trace in chart(app, -1)["data"] if trace["mode"] == "lines"]
    for trace, shapes in zip(drawn, ([(2, 1), (2, 2), (2, 4), (2, 8)], [(4, 1), (3, 2), (2, 4), (1, 10)]), strict=True):
        values = array(trace["y"])
        np.testing.assert_allclose(values[~np.isnan(values)], [means[shape] for shape in shapes], rtol=1e-5)
        np.testing.assert_allclose(array(trace["x"])[~np.isnan(values)], [ratio for __, ratio in shapes])

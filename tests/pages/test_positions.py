"""The lesson Positional encoding: what is on the screen is what the library computes, and its code runs."""

import base64
import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import Open
from vizformer.analysis import positions
from vizformer.assets import asset
from vizformer.components import matrix
from vizformer.model.positions import sinusoidal_encoding
from vizformer.training import lengths
from vizformer.web.lessons.positions.past_trained_length import own_losses
from vizformer.web.lessons.positions.sinusoid import SCHEMES, small

PAGE = "pages/learn/positions.py"
TEXT = "我有一只猫。"


def opened(open_app: Open, part: str, dials: str = "", **more: str) -> AppTest:
    link = {"part": part, "text": TEXT, "model": "zh-en", **({"dials": dials} if dials else {}), **more}
    app = open_app(PAGE, **link)
    assert not app.exception
    assert not app.error
    return app


def plotted(app: AppTest, index: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(app.get("plotly_chart")[index].proto.spec)["data"]
    return found


def numbers(value: Any) -> np.ndarray:
    """A trace's array, however Plotly has written it."""
    if not isinstance(value, dict):
        return np.array(value, dtype=np.float64)
    kind = {"f4": np.float32, "f8": np.float64, "i1": np.int8, "i2": np.int16, "i4": np.int32, "u1": np.uint8}
    flat = np.frombuffer(base64.b64decode(value["bdata"]), dtype=kind[value["dtype"]]).astype(np.float64)
    return flat.reshape([int(n) for n in str(value["shape"]).split(",")]) if "shape" in value else flat


def run(app: AppTest, **names: Any) -> dict[str, Any]:
    """The code on the screen, executed as it is pasted, and then with these names."""
    known: dict[str, Any] = dict(names)
    for block in app.code:
        exec(block.value, {})
        exec(re.sub(rf"(?m)^({'|'.join(names) or '-'}) = .*\n", "", block.value), known)
    return known


def words(app: AppTest) -> str:
    kinds = ("markdown", "caption", "text", "success", "info", "latex")
    html = [element.proto.body for element in app.get("html")]
    return " ".join([*(element.value for kind in kinds for element in getattr(app, kind)), *html])


@pytest.mark.sample(3)
@pytest.mark.parametrize("part", ["waves", "clock", "distance", "shuffle", "function", "options", "longer"])
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_part_in_both_languages_with_another_model(open_app: Open, part: str, locale: str) -> None:
    app = opened(open_app, part, locale=locale, model="stories", text="a <b> $x$ cat")
    assert app.get("plotly_chart") or part == "shuffle"
    from vizformer.web.widgets.slides import lesson_prose

    found = lesson_prose("positions", "zh_CN" if locale == "zh-CN" else "en")[part]
    assert found.rest in words(app)
    assert found.tries
    assert found.wrongs


def test_waves_row_zero_and_the_chosen_number(open_app: Open) -> None:
    app = opened(open_app, "waves", "positions.pos:5~positions.dim:7~positions.pairs:0,9~positions.cosines:1")
    code = sinusoidal_encoding(64, 256)
    known = run(app)
    assert float(known["value"]) == pytest.approx(float(code[5, 7]), abs=1e-6)
    assert f"{code[5, 7]:.4f}" in words(app)
    curves, n = plotted(app, 0), len(load("zh-en").encode(TEXT))
    dims = [0, 1, 18, 19]  # sine and cosine of pairs 0 and 9
    assert [curve["name"].split(",")[0] for curve in curves[::2]] == [f"dimension {dim}" for dim in dims]
    for curve, dots, dim in zip(curves[::2], curves[1::2], dims, strict=True):
        tokens = numbers(dots["y"])
        assert len(tokens) == n
        assert np.abs(tokens - code[:n, dim].numpy()).max() < 1e-6
        x, y = numbers(curve["x"]), numbers(curve["y"])
        assert np.abs(np.interp(np.arange(n), x, y) - tokens).max() < 0.01
    (heatmap,) = (trace for trace in plotted(app, 1) if trace["type"] == "heatmap")
    assert np.abs(numbers(heatmap["z"]) - code[:64].numpy()).max() < 1e-6
    assert f"{2 * math.pi:.3g}" in words(app)
    model = load("zh-en").model
    assert torch.equal(model.positions(64), code)  # "adds exactly this encoding"
    assert "exactly this encoding" in words(app)
    assert "in another way" in words(opened(open_app, "waves", model="stories", text="a cat"))


def test_the_hands_and_the_rotation(open_app: Open) -> None:
    app = opened(open_app, "clock", "positions.d:16~positions.pos:4~positions.k:6~positions.pair:2")
    code = sinusoidal_encoding(512, 16)
    known = run(app)
    assert torch.allclose(known["moved"], code[10, 4:6], atol=1e-6)
    assert torch.allclose(known["hand"](4), code[4, 4:6], atol=1e-6)
    now, then = (trace for trace in plotted(app, 0) if trace.get("name"))
    for trace, row in ((now, code[4]), (then, code[10])):
        x, y = numbers(trace["x"]).reshape(-1, 3), numbers(trace["y"]).reshape(-1, 3)
        tips = np.stack([x[:, 1] - x[:, 0], y[:, 1] - y[:, 0]], axis=1) / 0.9
        assert np.abs(tips.ravel() - row.numpy()).max() < 1e-5  # all 8 pairs have a clock
    error = positions.code_facts(512, 16, 6).shift_error
    assert f"{error:.1e}" in app.success[0].value
    assert f"“{load('zh-en').encode(TEXT)[4].text}”" in app.text[0].value


def test_dot_products_and_promises(open_app: Open) -> None:
    app = opened(open_app, "distance", "positions.d:64~positions.i:2~positions.j:5")
    code = sinusoidal_encoding(512, 64)
    product = float(run(app)["product"])
    assert f"{product:.4f}" in words(app)
    assert product == pytest.approx(float(code[2] @ code[5]), abs=1e-4)
    curve = plotted(app, 0)[0]
    by_distance = dict(zip(numbers(curve["x"]).tolist(), numbers(curve["y"]).tolist(), strict=True))
    assert by_distance[-3.0] == by_distance[3.0] == pytest.approx(product, abs=1e-4)
    facts = positions.code_facts(512, 64)
    for number in (f"{facts.closest[0]:.3f}", f"{facts.norms[0]:.4f}", f"{facts.spread:.1e}"):
        assert number in words(app)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("scheme", "mask", "order", "blind"),
    [
        ("none", "both", "reverse", True),
        ("none", "both", "random", True),
        ("none", "causal", "reverse", False),
        ("sinusoidal", "both", "reverse", False),
        ("alibi", "both", "reverse", True),
        ("alibi", "both", "random", False),
        ("relative", "causal", "random", False),
    ],
)
def test_shuffled_tokens(open_app: Open, scheme: Any, mask: str, order: str, blind: bool) -> None:
    app = opened(
        open_app, "shuffle", f"positions.scheme:{scheme}~positions.mask:{mask}~positions.order:{order}", text="我爱中国"
    )
    assert bool(app.success) == blind
    ids = [token.id for token in load("zh-en").encode("我爱中国") if not token.special]
    model = positions.small_model(scheme, load("zh-en").model.config.vocab_size, causal=mask == "causal")
    found = positions.shuffle(model, ids, positions.other_order(4, order, 1))
    verdict = (app.success or app.info)[-1].value
    assert matrix.number(found.sets) in verdict
    assert f": {int((found.moved < 1e-5).sum())} of 4." in verdict
    assert f"{found.after[0, 0]:.2f}".replace("-", "−") in words(app)


def test_an_example_is_typed_and_one_token_is_told(open_app: Open) -> None:
    app = opened(open_app, "shuffle")
    next(button for button in app.button if button.label == "国中爱我").click().run()
    assert not app.exception
    assert app.text_input[0].value == "国中爱我"
    assert any("only one order" in info.value for info in opened(open_app, "shuffle", text="猫").info)


def test_the_question_about_shuffling_is_the_sentences(open_app: Open) -> None:
    app = opened(open_app, "shuffle", text="我爱我")  # a palindrome: no third choice
    radio = next(radio for radio in app.radio if radio.label == "Your answer")
    assert len(radio.options) == 2
    radio.set_value(1).run()
    next(button for button in app.button if button.label == "Show the answer").click().run()
    assert app.success[0].value.startswith("**Right.**")
    assert "我" in app.success[0].value


@pytest.mark.sample(2)
@pytest.mark.parametrize("scheme", ["none", "sinusoidal", "learned", "rope", "alibi", "relative"])
def test_what_a_scheme_adds(open_app: Open, scheme: Any) -> None:
    app = opened(
        open_app,
        "options",
        f"positions.way:{scheme}~positions.head:2~positions.query:4~positions.key:1~"
        "positions.shift:9~positions.rope_pair:3",
    )
    if scheme == "none":
        assert not app.get("plotly_chart")
        return
    ids = [token.id for token in load("zh-en").encode(TEXT) if not token.special]
    trained = load(asset("lessons", "positions", scheme)).model
    tables = trained if scheme in ("learned", "relative") else None
    model = positions.small_model(scheme, load("zh-en").model.config.vocab_size, causal=True, tables_of=tables)
    effect = positions.score_effect(model, ids)[2]
    drawn = [trace for i in range(2) for trace in plotted(app, min(i, len(app.get("plotly_chart")) - 1))]
    maps = [numbers(trace["z"]) for trace in drawn if trace["type"] == "heatmap"]
    below = np.tril(np.ones((6, 6))) > 0
    assert any(z.shape == (6, 6) and np.abs(z[below] - effect[below]).max() < 1e-5 for z in maps)
    if scheme in ("sinusoidal", "learned"):
        known = run(app, e=model.embedding(torch.tensor(ids)), P=model.positions(len(ids)))
        assert torch.allclose(known["x"], model.embed(torch.tensor([ids]))[0])
        assert f"{float(known['x'][4, 0]):.4f}" in words(app)
    elif scheme == "rope":
        rows = positions.unturned(model, ids)
        pair = positions.rotary_pair(rows[0][2, 4], rows[1][2, 1], 3, (13, 10))
        known = run(app)  # q and k are written out
        assert float(known["score"]) == pytest.approx(pair.score, abs=1e-4)
        assert f"{pair.score:.5f}" in words(app)
        turned = [trace for trace in plotted(app, 0) if "turned" in trace["name"]]
        assert [numbers(t["x"])[1] for t in turned] == pytest.approx([pair.query[1][0], pair.key[1][0]], abs=1e-5)
    else:
        table = positions.position_tables(model)
        known = run(app, **({"table": table[0]} if table else {}))
        assert float(known["bias"]) == pytest.approx(effect[4, 1], abs=1e-4)
        assert f"{float(known['bias']):.4f}" in words(app)


def test_past_the_trained_length(open_app: Open) -> None:
    app = opened(open_app, "longer", "positions.past:1~positions.text:chinese")
    notes = lengths.measured(asset("lessons", "positions"))
    for index, curve in enumerate(plotted(app, 0)):
        measured = np.array(notes["loss"]["chinese"][SCHEMES[index]])
        y = numbers(curve["y"])
        assert len(y) == len(measured)
        assert y[30] == pytest.approx(measured[26:35].mean(), abs=1e-5)
    table = next(element.value for element in app.markdown if element.value.startswith("| |"))
    assert f"{np.mean(notes['loss']['chinese']['alibi'][224:256]):.3f}" in table
    bytes_read = (TEXT + "\n" + notes["passages"]["chinese"]).encode()[:257]
    model = load(asset("lessons", "positions", "alibi")).model
    own = lengths.losses(model, torch.tensor([list(bytes_read)]))[0].numpy()
    drawn = numbers(plotted(app, 1)[SCHEMES.index("alibi")]["y"])
    assert drawn[100] == pytest.approx(own[84:117].mean(), abs=1e-4)
    hidden = opened(open_app, "longer")
    assert all(len(numbers(curve["y"])) == notes["trained"] for i in range(2) for curve in plotted(hidden, i))
    assert not any(element.value.startswith("| |") for element in hidden.markdown)


def test_the_answer_past_the_length_is_the_smallest_loss(open_app: Open) -> None:
    app = opened(open_app, "longer", text="The cat sat on the mat.", model="stories")
    own = own_losses("The cat sat on the mat.", "book")
    read = [scheme for scheme in SCHEMES if scheme != "learned"]
    best = min(range(len(read)), key=lambda i: own[read[i]][64:].mean())
    radio = next(radio for radio in app.radio if radio.label == "Your answer")
    radio.set_value(best).run()
    next(button for button in app.button if button.label == "Show the answer").click().run()
    assert app.success[0].value.startswith("**Right.**")
    assert f"{own[read[best]][64:].mean():.2f}".replace(".", "") in app.success[0].value.replace("\\", "").replace(
        ".", ""
    )


def test_settings_that_do_not_fit_count_as_not_set(open_app: Open) -> None:
    for part in ("waves", "clock", "distance", "options"):
        app = opened(
            open_app,
            part,
            "positions.d:7~positions.pos:999~positions.pair:500~positions.pairs:a,9999~positions.i:88~"
            "positions.query:50~positions.key:50~positions.way:none2",
        )
        assert app.get("plotly_chart")


def test_a_slider_that_was_moved_keeps_its_place_when_the_sentence_gets_shorter(open_app: Open) -> None:
    """With other ends it is another widget to Streamlit, which would begin where the key was last assigned."""
    app = opened(open_app, "distance", text="I have a cat.", model="stories")
    app.text_input(key="view.text").set_value("I have a cat and two dogs and a bird.").run()  # assigned: the last one
    app.slider(key="setting.positions.j").set_value(0).run()
    app.text_input(key="view.text").set_value("I have a cat and two dogs.").run()
    assert not app.exception
    assert not app.error
    assert app.slider(key="setting.positions.j").value == 0


@pytest.mark.sweep
def test_a_pair_moved_on_keeps_its_score_where_the_library_says_so(open_app: Open) -> None:
    app = opened(open_app, "function")
    curves = {trace["name"]: numbers(trace["y"]) for trace in plotted(app, 0) if trace.get("mode") == "lines"}
    tokens = [token.id for token in load("zh-en").tokenizer_of("encoder").encode(TEXT, special=False)]
    for name, scheme in (("RoPE", "rope"), ("sinusoidal", "sinusoidal"), ("ALiBi", "alibi")):
        model = small(scheme, 8000, True, trained=True)
        expected = positions.moved_scores(model, tokens[-1], tokens[0], len(tokens) - 1, 48)[0]
        np.testing.assert_allclose(curves[name], expected, rtol=1e-4, atol=1e-5)
    assert np.ptp(curves["RoPE"]) < 1e-5 < np.ptp(curves["sinusoidal"])
    assert bool(run(app)["same"])

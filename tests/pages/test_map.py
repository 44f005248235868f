"""The lesson The map: what is on the screen is what the library computes."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

from tests.bundled import load
from tests.components.test_mount import sent
from tests.pages.conftest import Open
from tests.pages.reading import run, said
from vizformer.analysis.costs.layer_types import LAYER_TYPES, longest_path, reach, table_cost
from vizformer.analysis.costs.model_boxes import architecture
from vizformer.analysis.training.depth_gradients import gru_gradients, transformer_gradients
from vizformer.assets import asset
from vizformer.training.repeater import load_gru
from vizformer.web.frame.progress import QUESTIONS
from vizformer.web.lessons.map import gru as felt
from vizformer.web.link.beginnings import CHINESE, ENGLISH, Beginning
from vizformer.web.widgets.slides import lesson_prose
from vizformer.web.words.i18n import quoted

PAGE = "pages/learn/map.py"
PARTS = ("drawing", "rnn", "gru")
LONG = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"


def last_line(code: str) -> Any:
    """The value of the last line of code that is pasted."""
    *before, last = code.splitlines()
    names: dict[str, Any] = {}
    exec("\n".join(before), names)
    return eval(last, names)


def shown(app: AppTest) -> str:
    return "\n".join(element.value for element in app.markdown)


def figure(app: AppTest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(app.get("plotly_chart")[0].proto.spec)
    return found


def numbers(values: Any) -> np.ndarray:
    """An array of a figure, as it travels."""
    import base64

    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
    return np.array(values, dtype=float)


@pytest.mark.sample(1)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_every_part_opens_in_both_languages_with_every_model(
    open_app: Open, locale: str, part: str, model: str
) -> None:
    app = open_app(PAGE, locale=locale, part=part, model=model)
    assert not app.exception
    assert not app.error
    words = lesson_prose("map", "zh_CN" if locale == "zh-CN" else "en")[part]
    assert words.rest in shown(app)
    assert words.wrongs


@pytest.mark.parametrize("model", ["zh-en", "stories", "cloze"])
def test_the_table_has_every_box_with_its_shape_and_count(open_app: Open, model: str) -> None:
    app = open_app(PAGE, model=model, text="I have a cat.")
    checkpoint = load(model)
    tokens = checkpoint.trace("I have a cat.").tokens
    n = len(tokens.get("encoder") or tokens["decoder"])
    expected = architecture(checkpoint.model, n, len(tokens["decoder"]) if model == "zh-en" else 0)
    [html] = [one.proto.body for one in app.get("html") if "vf-table" in one.proto.body]
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr.*?</tr>", html)[1:]]
    total = 0
    for box, (__, into, out, count) in zip(expected, rows, strict=True):
        assert out == f"[{', '.join(map(str, box.output))}]"
        assert into.count("[") == len(box.inputs)
        written = [int(part.replace(",", "")) for part in re.findall(r"[\d,]+", count)]
        total += math.prod(written) if written else 0
    assert total == sum(p.numel() for p in checkpoint.model.parameters())  # what is written of the boxes adds up
    assert f"{total:,}" in " ".join(caption.value for caption in app.caption)


@pytest.mark.parametrize(
    ("model", "box", "leads_to"),
    [
        ("zh-en", "encoder.embedding", "tokens"),
        ("zh-en", "decoder.mask", "masks"),
        ("stories", "decoder.rotation", "positions"),
        ("stories", "prediction.softmax", "generation"),
        ("cloze", "prediction.softmax", "blanks"),
        ("cloze", "encoder.feedforward", "layer"),
        ("zh-en", "encoder.attention", "qkv"),
    ],
)
def test_a_chosen_box_says_what_it_is_and_leads_on(open_app: Open, model: str, box: str, leads_to: str) -> None:
    app = open_app(PAGE, model=model, dials=f"map.box:{box}")
    assert not app.exception
    links = [link.proto.page for link in app.get("page_link")]
    assert leads_to in links
    for code in app.code:  # the line that is shown counts the parameters that are shown
        assert f"{last_line(code.value):,}" in shown(app)
    counted = box in ("encoder.embedding", "encoder.feedforward", "encoder.attention")
    assert len(app.code) == counted


@pytest.mark.parametrize(
    ("model", "box", "written"),
    [
        (
            "zh-en",
            "encoder.feedforward",
            r"\operatorname{ReLU}(x W_\text{in} + b_\text{in})\, W_\text{out} + b_\text{out}",
        ),
        (
            "cloze",
            "encoder.feedforward",
            r"\operatorname{GELU}(x W_\text{in} + b_\text{in})\, W_\text{out} + b_\text{out}",
        ),
        (
            "stories",
            "decoder.feedforward",
            r"(\operatorname{SiLU}(x W_\text{gate}) \odot x W_\text{in})\, W_\text{out}",
        ),
    ],
)
def test_the_feedforward_formula_has_the_biases_and_the_activation_of_the_model(
    open_app: Open, model: str, box: str, written: str
) -> None:
    app = open_app(PAGE, model=model, dials=f"map.box:{box}")
    assert any(latex.value.strip("$\n") == written for latex in app.latex)


@pytest.mark.parametrize(
    ("model", "box", "kind", "title", "key"),
    [
        ("zh-en", "feedforward", "decoder", "Feed-forward", "decoder.feedforward"),
        ("zh-en", "norm", "encoder", "Add & Norm (LayerNorm)", "encoder.attention_norm"),
        ("zh-en", "", "cross", "Multi-head cross-attention", "decoder.cross"),
        ("zh-en", "output", "decoder", "Linear (unembedding)", "prediction.unembedding"),
        ("stories", "norm", "decoder", "Add", "decoder.attention_add"),
    ],
)
def test_what_is_pressed_in_the_picture_is_told(
    open_app: Open, model: str, box: str, kind: str, title: str, key: str
) -> None:
    app = open_app(PAGE, model=model, text="I have a cat.")
    assert app.subheader[0].value.endswith("ulti-head self-attention")
    app.session_state["map.drawing"] = {"selected": {"does": "opened", "box": box, "kind": kind, "seq": 1.0}}
    app.run()
    assert not app.exception
    assert title == app.subheader[0].value
    assert app.query_params["dials"] in (f"map.box:{key}", [f"map.box:{key}"])
    [data] = [sent(app, i) for i, one in enumerate(app.get("bidi_component")) if "picture" in one.proto.component_name]
    assert data["reports"]  # it is the first page's picture, and tells the page what was opened


def test_the_switch_shows_another_architecture(open_app: Open) -> None:
    app = open_app(PAGE, dials="map.box:decoder.cross")
    switch = next(control for control in app.button_group if control.key == "map.switch")
    app = switch.set_value("decoder-only").run()
    assert not app.exception
    assert app.query_params["model"] in ("stories", ["stories"])
    assert app.subheader[0].value == "Masked multi-head self-attention"  # that box is not there


def test_paths_are_counted_for_the_sentence(open_app: Open) -> None:
    app = open_app(PAGE, part="rnn", text=LONG, model="zh-en", dials="map.k:4~map.r:5~map.kind:dilated")
    assert not app.exception
    n = len(load("zh-en").encode(LONG))
    rows = [line for line in shown(app).splitlines() if line.startswith("| ") and "**" in line]
    found = [int(re.search(r"\*\*(\d+)\*\*", row).group(1)) for row in rows]  # type: ignore[union-attr]
    kinds = ("attention", "recurrent", "contiguous", "dilated", "restricted")
    assert found == [reach(kind, n, 4, 5).path for kind in kinds]  # type: ignore[arg-type]
    way = figure(app)["data"][2]
    assert numbers(way["x"]).tolist() == longest_path("dilated", n, 4).T[0].tolist()
    assert any(f"\\rceil = {reach('dilated', n, 4).path}" in latex.value for latex in app.latex)


def test_the_page_does_not_say_what_is_asked_about_paths(open_app: Open) -> None:
    app = open_app(PAGE, part="rnn", model="zh-en", text="我有一只猫。")
    n = 10 * len(load("zh-en").encode("我有一只猫。"))
    assert "ten times as long" in said(app)
    (asked,) = [radio for radio in app.radio if str(n) in radio.options]
    layers = reach("contiguous", n, 5, 5).layers
    assert 4 * (layers - 1) < n - 1 <= 4 * layers
    assert str(layers) in asked.options
    assert f"**{layers}**" not in said(app)
    assert f"{layers} layers" not in said(app)


def test_the_pasted_code_of_the_paths_runs_with_the_numbers_of_the_sentence(open_app: Open) -> None:
    n = len(load("zh-en").encode(LONG))
    shown = {
        kind: open_app(PAGE, part="rnn", text=LONG, dials=f"map.kind:{kind}").code[0].value
        for kind in ("attention", "recurrent", "dilated")
    }
    assert last_line(shown["dilated"]) == reach("dilated", n, 3).path
    left = run(shown["recurrent"])
    assert (left["n"], left["d"]) == (n, 256)
    gru, cell = nn.GRU(256, 256), left["cell"]
    gru.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    assert torch.allclose(left["h"], gru(left["x"])[0][-1], atol=1e-5)
    left = run(shown["attention"])
    assert (left["n"], left["d_head"]) == (n, load("zh-en").model.config.d_head)
    q, k, v = left["q"], left["k"], left["v"]
    assert torch.allclose(left["z"], nn.functional.scaled_dot_product_attention(q, k, v), atol=1e-5)


@pytest.mark.parametrize("kind", ["contiguous", "restricted"])
def test_the_code_of_a_stack_gives_its_layers(open_app: Open, kind: str) -> None:
    app = open_app(PAGE, part="rnn", text=LONG, dials=f"map.kind:{kind}")
    n = len(load("zh-en").encode(LONG))
    assert last_line(app.code[0].value) == reach(kind, n, 3, 8).path  # type: ignore[arg-type]


def test_costs_are_those_of_the_sentence_and_the_model(open_app: Open) -> None:
    app = open_app(PAGE, part="rnn", text=LONG, dials="map.k:5")
    assert not app.exception
    n = len(load("zh-en").encode(LONG))
    for kind in LAYER_TYPES:
        assert f" = {table_cost(kind, n, 256, 5, 8):,} |" in shown(app)


def curves(app: AppTest) -> list[dict[str, Any]]:
    """The lines of the two networks, without the bands behind them."""
    return [trace for trace in figure(app)["data"] if trace["mode"] == "lines+markers"]


@pytest.mark.sweep
def test_gradients_are_those_of_the_trained_models(open_app: Open) -> None:
    app = open_app(PAGE, part="gru", text=LONG, model="cloze", dials="map.back:20")
    assert not app.exception
    gru, tokenizer = load_gru(asset("lessons", "map"))
    cloze = load("cloze")
    sizes = gru_gradients(gru, tokenizer.encode_ids([LONG])[0])
    own = transformer_gradients(cloze.model, [token.id for token in cloze.encode(LONG)])
    for trace, expected in zip(curves(app), (sizes, own), strict=True):
        assert numbers(trace["y"]) == pytest.approx(expected / expected[-1], rel=1e-4)
    t = len(sizes) - 21
    assert any(f"= {sizes[t] / sizes[-1]:.4f}" in latex.value for latex in app.latex)
    assert any(f"token {t} “" in text.value for text in app.text)


@pytest.mark.sweep
def test_the_pasted_code_of_the_gru_gives_its_gradients(open_app: Open) -> None:
    app = open_app(PAGE, part="gru", text=LONG, model="stories", dials="map.back:20")
    model, tokenizer = load_gru(asset("lessons", "map"))
    ids = tokenizer.encode_ids([LONG])[0]
    left = run(app.code[0].value, gru=model.gru, x=model.embedding(torch.tensor([ids])))
    sizes = gru_gradients(model, ids)
    assert left["sizes"].numpy() == pytest.approx(sizes, rel=1e-4)
    assert any(f"= {left['share']:.4f}" in latex.value for latex in app.latex)


def test_two_curves_over_different_tokens_are_said_to_be(open_app: Open) -> None:
    app = open_app(PAGE, part="gru", text="我有一只猫。", model="zh-en", dials="map.long:0")
    own, other = load_gru(asset("lessons", "map"))[1].encode("我有一只猫。"), load("zh-en").encode("我有一只猫。")
    assert own[-1].text != other[-1].text
    said = next(caption.value for caption in app.caption if "its own tokenizer" in caption.value)
    assert f"GRU reads {len(own)} and ends with “{quoted(own[-1].text)}”" in said
    assert f"zh-en reads {len(other)} and ends with “{quoted(other[-1].text)}”" in said
    named = [trace["name"] for trace in figure(app)["data"]]
    assert [len(numbers(trace["y"])) for trace in figure(app)["data"]] == [len(own), len(other)]
    assert named == ["GRU", "Transformer zh-en"]
    app = open_app(PAGE, part="gru", text="我有一只猫。", model="stories")  # the GRU reads its tokens
    assert [token.id for token in own] == [token.id for token in load("stories").encode("我有一只猫。")]
    assert not any("its own tokenizer" in caption.value for caption in app.caption)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("locale", "said"), [("en-US", "bytes of UTF-8"), ("zh-CN", "UTF-8")])
def test_tokens_of_bytes_are_explained_where_the_curves_have_some(open_app: Open, locale: str, said: str) -> None:
    text = "一个"  # no tokens of bytes; the other text has some
    for typed, shown in ((text, False), ("鼹鼠", True)):
        tokens = [token.text for token in load_gru(asset("lessons", "map"))[1].encode(typed)]
        bytes_shown = [token for token in tokens if re.fullmatch("⟨[0-9A-F ]+⟩", token)]
        assert bool(bytes_shown) == shown
        app = open_app(PAGE, part="gru", text=typed, model="stories", locale=locale)
        explained = [caption.value for caption in app.caption if said in caption.value]
        assert bool(explained) == shown
        if shown:
            assert bytes_shown[0] in explained[0]


def test_a_model_too_large_to_be_differentiated_is_said_to_be(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(felt, "AFFORDABLE", 10**9)
    app = open_app(PAGE, part="gru", text=LONG, model="zh-en")
    assert not app.exception
    assert any("too large" in info.value for info in app.info)
    assert len(figure(app)["data"]) == 1


@pytest.mark.parametrize("beginning", [CHINESE, ENGLISH], ids=["zh", "en"])
def test_the_lesson_begins_with_a_sentence_in_which_the_gru_forgets_more(open_app: Open, beginning: Beginning) -> None:
    app = open_app(PAGE, part="gru", text=beginning.text, model=beginning.model.name)
    assert not app.exception
    recurrent, attending = curves(app)
    assert [recurrent["name"], attending["name"]] == ["GRU", "Transformer stories"]
    recurrent, attending = (numbers(trace["y"]) for trace in (recurrent, attending))
    assert len(recurrent) == len(attending) > 20
    assert (attending[:-10] > recurrent[:-10]).all()
    assert max(attending[1:6]) >= attending[-2]  # the first words are felt as strongly as the last but one
    assert max(recurrent[1:6]) < recurrent[-2] / 3
    assert [len(numbers(one["y"])) for one in figure(app)["data"] if one["mode"] == "lines"] == [20] * 4
    app = app.toggle(key="setting.map.long").set_value(False).run()
    here = load_gru(asset("lessons", "map"))[1].encode(beginning.text)
    assert len(numbers(curves(app)[0]["y"])) == len(here)
    app = open_app(PAGE, part="gru", text="我有一只狗。")  # what somebody typed is what is read
    assert app.toggle(key="setting.map.long").value is False
    assert not open_app(PAGE, part="gru", text=felt.EXAMPLES["zh"]).toggle


def test_what_is_said_of_ten_sentences_is_counted_in_them(open_app: Open) -> None:
    app = open_app(PAGE, part="gru")
    with asset("lessons", "map", "ten_sentences.json").open(encoding="utf-8") as file:
        found = json.load(file)
    pairs = [list(zip(own, other, strict=True)) for own, other in zip(found["gru"], found["stories"], strict=True)]
    near = [own >= other for one in pairs for own, other in one[1:4]]
    far = [other > own for one in pairs for own, other in one[8:-1]]
    early, own = ([max(one[-6:-1]) >= one[1] for one in found[name]] for name in ("stories", "gru"))
    said = next(caption.value for caption in app.caption if caption.value.startswith("Ten sentences"))
    assert (
        f"of the {len(near)} tokens at most three positions before the last, {sum(near)} influence the GRU more" in said
    )
    assert (
        f"of the {len(far)} tokens at least eight positions before it, {sum(far)} influence the Transformer more."
        in said
    )
    assert f"In {sum(early)} of 10 sentences one of the first five tokens influences the Transformer" in said
    assert f"the GRU, in {sum(own)}." in said
    assert sum(near) > 0.9 * len(near)
    assert sum(far) > 0.9 * len(far)
    assert sum(early) >= 7
    assert sum(own) == 0


@pytest.mark.parametrize(("part", "name", "right"), [("rnn", "path", 2), ("rnn", "cost", 0)])
def test_the_questions_know_the_answer(open_app: Open, part: str, name: str, right: int) -> None:
    for choice in (right, 1):
        app = open_app(PAGE, part=part, text="I have a cat.")
        radio = next(radio for radio in app.radio if radio.key.startswith(f"ask.map.{name}"))
        app = radio.set_value(choice).run()
        app = next(one for one in app.button if one.key and one.key.startswith(f"ask.map.{name}.button")).click().run()
        assert not app.exception
        assert bool(app.success) == (choice == right)
        assert f"1 of {len(QUESTIONS['map'])} questions answered" in " ".join(caption.value for caption in app.caption)

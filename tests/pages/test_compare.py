"""The page Check your own: numbers that are handed in, the first step that departs, and the mistake that gives them."""

import io
import json

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import marked, said, tables
from vizformer.analysis.other_programs import first_departure as departure
from vizformer.web.catalogue import uploads

PAGE = "pages/learn/compare.py"
TEXT = "他喜欢喝水。"
WEIGHTS = "encoder.0.self.weights"


def right(name: str) -> np.ndarray:
    checkpoint = load("zh-en")
    found = departure.expected(checkpoint, checkpoint.trace(TEXT), name)
    assert found is not None
    return found


def sent(app: AppTest, text: str, name: str = "") -> AppTest:
    app.text_area(key="compare.text").set_value(text)
    if name:
        app.selectbox(key="compare.name").set_value(name)
    return next(button for button in app.button if button.label in ("Compare", "比较")).click().run()


@pytest.mark.sweep
def test_a_printed_tensor_that_agrees(open_app: Open) -> None:
    np.set_printoptions(threshold=10**6)
    app = sent(open_app(PAGE, text=TEXT), str(right(WEIGHTS)), WEIGHTS)
    assert not app.exception
    assert not app.error
    assert any("submitted steps agree with the model" in box.value for box in app.success)
    assert tables(app)[0][0][0] == WEIGHTS


@pytest.mark.sweep
def test_the_first_that_departs_is_marked_drawn_and_named(open_app: Open) -> None:
    z, out = right("encoder.0.self.z"), right("encoder.0.self.out")
    wrong = z.reshape(z.shape[1], -1)
    text = json.dumps(
        {
            "encoder.0.self.out": (out + 1).tolist(),
            "encoder.0.self.z": z.tolist(),
            "encoder.0.self.concat": wrong.tolist(),
        }
    )
    app = sent(open_app(PAGE, text=TEXT), text)
    assert not app.exception
    assert any("encoder.0.self.concat" in box.value.replace("\\", "") for box in app.warning)
    assert "joined with reshape or view alone" in said(app)
    rows = tables(app)[0]
    assert [row[-1] for row in rows] == ["agrees", "differs", "differs"]
    assert marked(app, 0) == [1]
    assert len(app.get("plotly_chart")) == 1
    app.text_input[0].set_value("我有一只猫。").run()
    assert any("not for the current choice" in box.value for box in app.info)


@pytest.mark.parametrize(("model", "locale"), [("zh-en", "en-US"), ("stories", "zh-CN"), ("cloze", "en-US")])
def test_it_begins_with_a_mistake_that_the_reader_s_numbers_take_the_place_of(
    open_app: Open, model: str, locale: str
) -> None:
    app = open_app(PAGE, locale=locale, text=TEXT, model=model)
    assert not app.exception
    stack = next(iter(load(model).trace(TEXT).tokens))
    rows = tables(app)[0]
    assert marked(app, 0) == [len(rows) - 1]
    assert rows[-1][0] == f"{stack}.0.self.concat"
    assert {"en-US": "joined with reshape or view alone", "zh-CN": "reshape"}[locale] in said(app)
    assert "compare.checked" not in app.session_state
    agrees = {"en-US": "agrees", "zh-CN": "一致"}[locale]
    assert all(row[-1] == agrees for row in rows[:-1])


def test_a_shape_that_does_not_fit_and_a_name_that_is_none(open_app: Open) -> None:
    app = sent(open_app(PAGE, text=TEXT), json.dumps({WEIGHTS: [[0.5, 0.5]], "<b>mine</b>": [1]}))
    assert not app.exception
    assert "Its shape should be 4 ×" in said(app).replace("\\", "")
    assert any("mine" in box.value for box in app.warning)


def test_what_cannot_be_read_is_said(open_app: Open) -> None:
    for text, words in (("hello", "no tensor in this text"), ("[1, ..., 2]", "dots in place"), ("", "paste a tensor")):
        app = sent(open_app(PAGE, text=TEXT), text)
        assert not app.exception
        assert any(words in box.value.replace("\\", "") for box in (*app.error, *app.warning, *app.info)), text


def test_a_file_of_steps_is_read_and_not_kept(open_app: Open) -> None:
    file = io.BytesIO()
    np.savez(file, **{WEIGHTS: right(WEIGHTS).astype(np.float32), "logits": right("logits").astype(np.float32)})
    app = open_app(PAGE, text=TEXT)
    app.file_uploader[0].upload("steps.npz", file.getvalue(), "application/octet-stream")
    app = sent(app, "")
    assert not app.exception
    assert any("steps compared: 2" in box.value for box in app.success)
    assert not app.file_uploader[0].value  # an empty box for the next
    kept = app.session_state["compare.checked"]
    assert not any(isinstance(value, np.ndarray) for value in vars(kept).values())


def test_without_uploads_text_can_still_be_handed_in(open_app: Open, monkeypatch) -> None:
    monkeypatch.setenv(uploads.SWITCH, "off")
    app = open_app(PAGE, text=TEXT)
    assert not app.get("file_uploader")
    assert any("steps agree" in box.value for box in sent(app, str(right(WEIGHTS).tolist()), WEIGHTS).success)


def test_the_lines_that_write_the_file_run(open_app: Open, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for model in ("zh-en", "stories", "cloze"):
        app = open_app(PAGE, text=TEXT, model=model)
        assert not app.exception
        ids, lines = (block.value for block in app.code)
        names: dict[str, object] = {}
        exec(ids, names)
        read = names["ids"]
        assert tuple(read.shape) == (len(load(model).encode(TEXT)),)  # type: ignore[attr-defined]
        import torch

        names |= {name: torch.zeros(2) for name in compile(lines, "", "exec").co_names if name not in names}
        exec(lines, names)
        assert (tmp_path / "steps.safetensors").is_file()


@pytest.mark.sweep
def test_a_long_sentence_is_refused_in_a_sentence(open_app: Open) -> None:
    app = open_app(PAGE, text="猫狗" * 100)
    assert not app.exception
    assert not app.error
    assert any("Choose a shorter one" in box.value for box in app.info)


def test_the_page_speaks_chinese(open_app: Open) -> None:
    app = sent(open_app(PAGE, locale="zh-CN", text=TEXT), "[1, 2]", WEIGHTS)
    assert "形状应当是" in said(app)

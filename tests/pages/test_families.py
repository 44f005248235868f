"""Models of other families on the pages: every step of their arithmetic, its proof, and what is special about them."""

import re

import pytest

from tests.checkpoints import folders as made
from tests.pages.reading import said
from vizformer import explain
from vizformer.checkpoints import load
from vizformer.messages import Message
from vizformer.web.catalogue import server_folder
from vizformer.web.link.languages import catalogue

QKV, LAYER, REPORT = "pages/learn/qkv.py", "pages/learn/layer.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made.qwen3(root / "qwen3")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


def plain(text: str) -> str:
    return re.sub(r"[\\`]", "", text)


def test_every_step_of_a_head(open_app, shelf):
    checkpoint = load(shelf / "qwen3")
    steps = explain.attention_steps(checkpoint, checkpoint.trace(TEXT), "decoder.1.self", 2, 3)
    app = open_app(QKV, model="models/qwen3", text=TEXT, layer=1, head=2, query=3)
    app.toggle(key="steps.all").set_value(True).run()
    assert not app.exception
    assert not app.error
    assert len(app.success) == len(app.subheader) == len(steps)
    assert all(step.code in code.value for code, step in zip(app.code, steps, strict=True))
    assert "q_normed" in {step.key for step in steps}


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_every_step_of_a_layer(open_app, shelf, locale):
    checkpoint = load(shelf / "qwen3")
    steps = explain.layer_steps(checkpoint, checkpoint.trace(TEXT), "decoder.1")
    app = open_app(LAYER, locale=locale, model="models/qwen3", text=TEXT, layer=1)
    app.toggle(key="steps.all").set_value(True).run()
    assert not app.exception
    assert not app.error
    assert len(app.success) == len(steps)
    (step,) = [step for step in steps if step.key == "self.normed"]
    text = in_language(locale, step.text)
    assert plain(text) in plain(said(app))


def in_language(locale: str, message: Message) -> str:
    found = catalogue("zh_CN" if locale == "zh-CN" else "en")
    values = {name: in_language(locale, v) if isinstance(v, Message) else v for name, v in message.values.items()}
    return found.get(message.text, message.text).format(**values)


def test_what_is_special_is_said(open_app):
    assert "查询和键经过归一化" in said(open_app(REPORT, locale="zh-CN", model="models/qwen3"))

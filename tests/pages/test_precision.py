"""Models that compute in bfloat16 and float16: every page is right about them, and the choice is offered."""

import pytest
import torch

from tests.checkpoints import folders as made
from tests.pages.reading import opens_well, said
from tests.pages.test_every_page import places
from tests.refs import stamped
from vizformer.checkpoints.tensors import memory
from vizformer.web.catalogue import model_cache, server_folder, torch_setup

ATTENTION, QKV, REPORT = "pages/explore/attention.py", "pages/learn/qkv.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"
WORDS = {"en-US": "computes in bfloat16", "zh-CN": "以 bfloat16 计算"}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made.llama(root / "llama")
    made.bert(root / "bert")
    made.marian(root / "marian")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("model", "locale"),
    [("llama;dtype=bfloat16", "en-US"), ("bert;dtype=float16", "en-US"), ("marian;dtype=bfloat16", "zh-CN")],
)
def test_every_page(open_app, model, locale):
    link = dict(model=f"models/{model}", text="The cats", layer=1, head=1, query=1)
    app = open_app(ATTENTION, locale=locale, **link)
    for page, part in places():
        opens_well(app, page, **link, part=part)
    key = stamped(f"models/{model}")
    assert model_cache.checkpoint(key).dtype == getattr(torch, model.partition("=")[2])


@pytest.mark.parametrize("locale", WORDS)
def test_a_proof_says_in_what_the_model_computes(open_app, locale):
    link = dict(locale=locale, text=TEXT, layer=1, head=1, query=1)
    app = open_app(QKV, model="models/llama;dtype=bfloat16", **link)
    assert any(WORDS[locale] in box.value for box in app.success)
    app = open_app(QKV, model="models/llama", **link)
    assert app.success
    assert not any("float" in box.value for box in app.success)


def test_the_choice_is_part_of_the_link(open_app):
    app = open_app(REPORT, model="models/llama", text=TEXT)
    box = app.selectbox(key="computing.models/llama")
    assert box.value == "float32"
    assert box.options == ["float32 (as in the file)", "bfloat16", "float16"]
    assert "the weights take 0 B of memory" in said(app)
    app = box.set_value("bfloat16").run()
    assert app.query_params["model"] == "models/llama;dtype=bfloat16"
    assert "the weights take 0 B" not in said(app)
    app = app.selectbox(key="computing.models/llama").set_value("float32").run()
    assert app.query_params["model"] == "models/llama"


def test_what_is_true_of_the_files_is_read_once(open_app, shelf):
    open_app(REPORT, model="models/llama", text=TEXT)
    first, second = (stamped(f"models/llama{dtype}") for dtype in ("", ";dtype=bfloat16"))
    assert first != second
    assert model_cache.report(first) is model_cache.report(second)
    assert model_cache.checkpoint(first).key != model_cache.checkpoint(second).key


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_model_that_fits_only_in_half_precision_opens_with_one_click(open_app, monkeypatch, written, locale):
    folder = made.llama(written / "large", seed=3)
    made.save_tensors(folder, {name: tensor.bfloat16() for name, tensor in made.tensors(folder).items()})
    report = model_cache.report(stamped("models/large"))
    full, half = (memory.need(report, dtype).total for dtype in (torch.float32, torch.bfloat16))
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda *_: (full + half) // 2)
    app = open_app(REPORT, locale=locale, model="models/large", text=TEXT)
    assert not app.exception
    assert "large" in app.error[0].value
    app = app.button(key="computing.models/large.bfloat16").click().run()
    assert app.query_params["model"] == "models/large;dtype=bfloat16"
    assert not app.exception
    assert not app.error


@pytest.mark.parametrize("wrong", ["int8", "auto", "float99"])
def test_a_link_with_another_precision_says_so(open_app, wrong):
    app = open_app(ATTENTION, model=f"models/llama;dtype={wrong}", text=TEXT)
    assert not app.exception
    if wrong == "auto":
        assert not app.error
        return
    assert "Models compute in float32" in app.error[0].value
    app = open_app(REPORT, model=f"models/llama;dtype={wrong}", text=TEXT)
    assert not app.exception
    app = app.button(key="computing.models/llama.float32").click().run()
    assert not app.error


def test_the_server_says_where_it_computes(open_app, monkeypatch):
    monkeypatch.setenv(torch_setup.VARIABLE, "cuda:77")
    app = open_app(REPORT, model="models/bert;dtype=float16", text=TEXT)
    assert not app.exception
    assert "There is no device cuda" in app.error[0].value
    monkeypatch.setenv(torch_setup.VARIABLE, "cpu")
    app = open_app(REPORT, model="models/bert;dtype=float16", text=TEXT)
    assert "On cpu" in said(app)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["llama", "bert", "marian"])
def test_the_badge_compares_in_the_same_precision(open_app, compare, name, dtype):
    pytest.importorskip("transformers")
    app = open_app(REPORT, model=f"models/{name};dtype={dtype}", text=TEXT)
    app = compare(app)
    assert not app.exception
    (badge,) = [box.value for box in app.success if "same numbers as transformers" in box.value]
    assert f"Both in {dtype}" in badge

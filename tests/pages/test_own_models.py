"""Models from the server's folder, on the pages: listed, explained, refused in words."""

import shutil

import pytest

from tests.checkpoints import folders as made
from tests.pages.reading import said
from tests.refs import ref, stamped
from vizformer.web.catalogue import model_cache, server_folder

ATTENTION, REPORT, LAYER, BLANKS = (
    "pages/explore/attention.py",
    "pages/checkpoint/report.py",
    "pages/learn/layer.py",
    "pages/explore/blanks.py",
)
TEXT = "I have two dogs"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made.llama(root / "tiny-llama")
    made.bert(root / "headless", model="BertModel")
    made.change(made.gpt2(root / "damaged"), n_inner=28)
    made.change(shutil.copytree(root / "tiny-llama", root / "foreign"), model_type="mamba")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


def test_every_folder_is_in_the_list_and_none_shows_where_it_lies(open_app, shelf):
    app = open_app(ATTENTION, model="models/tiny-llama", text=TEXT)
    assert not app.exception
    assert not app.error
    box = app.selectbox(key="view.model")
    names = [option.partition(":")[0] for option in box.options]  # (and what it does)
    assert names[-4:] == ["damaged", "foreign", "headless", "tiny-llama"]
    assert str(box.value) == "models/tiny-llama"
    assert "What comes next?" in said(app)
    assert str(shelf) not in said(app)


def test_the_base_of_rotary_positions_is_written_out(open_app, tmp_path, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    folder = made.llama(tmp_path / "far")
    made.change(folder, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    assert "(θ = 1,000,000)" in said(open_app(REPORT, model="models/far"))


def test_a_model_without_a_head_predicts_nothing(open_app):
    app = open_app(ATTENTION, model="models/headless", text=TEXT)
    assert not app.exception
    assert not app.error
    assert "Which token belongs here?" not in said(app)
    assert "contain no output layer that predicts tokens" in said(app)
    app = open_app(LAYER, model="models/headless", text=TEXT, layer=2)
    assert not app.exception
    assert not app.error
    assert not any("softmax of the logits" in option for option in app.selectbox[-1].options)
    app = open_app(BLANKS, model="models/headless", text=TEXT)
    assert not app.exception
    assert not app.error
    assert not any("headless" in button.label for button in app.button)


@pytest.mark.parametrize("name", ["damaged", "foreign"])
def test_a_folder_that_does_not_open_is_said_and_another_can_be_chosen(open_app, name):
    app = open_app(ATTENTION, model=f"models/{name}", text=TEXT)
    assert not app.exception
    assert len(app.error) == 1
    app.selectbox(key="view.model").set_value(ref("models/tiny-llama")).run()
    assert not app.error
    assert "What comes next?" in said(app)


@pytest.mark.parametrize(("locale", "words"), [("en-US", "there is no tokenizer"), ("zh-CN", "没有分词器")])
def test_a_folder_without_a_tokenizer_reads_ids_and_says_so(open_app, shelf, tmp_path, monkeypatch, locale, words):
    folder = shutil.copytree(shelf / "tiny-llama", tmp_path / "bare")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(ATTENTION, locale=locale, model="models/bare", text="7 8 9 12")
    assert not app.exception
    assert not app.error
    app = open_app(ATTENTION, locale=locale, model="models/bare", text=TEXT)
    assert not app.exception
    assert "339" in app.error[0].value
    app = open_app(REPORT, locale=locale, model="models/bare")
    assert not app.exception
    assert not app.error
    assert words in said(app)


@pytest.mark.parametrize("name", ["models/..", "models/../x", "/etc", "models/nothing"])
def test_a_link_to_anything_else_shows_the_default(open_app, name):
    app = open_app(REPORT, model=name)
    assert not app.exception
    assert not app.error
    assert str(app.selectbox(key="view.model").value) == "zh-en"
    assert any("This page has no model" in info.value for info in app.info)


@pytest.mark.parametrize(
    ("locale", "model", "words"),
    [
        ("en-US", "zh-en", ["VizFormer's own format", "encoder and decoder", "Parameters by part"]),
        ("en-US", "models/tiny-llama", ["Hugging Face layout", "LlamaForCausalLM", "2 key/value heads", "RMSNorm"]),
        ("zh-CN", "models/headless", ["仅编码器", "各部分参数量", "可学习的位置"]),
    ],
)
def test_the_report(open_app, locale, model, words):
    app = open_app(REPORT, locale=locale, model=model)
    assert not app.exception
    assert not app.error
    for word in words:
        assert word in said(app)
    report = model_cache.report(stamped(model))
    assert app.metric[0].value == f"{report.n_parameters:,}"
    assert len(app.dataframe[0].value) == len(report.tensors)


def test_the_report_of_a_folder_that_does_not_open(open_app):
    app = open_app(REPORT, model="models/damaged")
    assert not app.exception
    assert "This model does not open" in said(app)
    assert "wrong shape" in set(app.dataframe[0].value["Fate"])
    assert app.dataframe[0].value["Fate"][0] in ("missing", "wrong shape")
    app = open_app(REPORT, model="models/foreign")
    assert "model" in app.error[0].value
    assert "mamba" in app.error[0].value
    assert not app.dataframe
    assert str(app.selectbox(key="view.model").value) == "models/foreign"


def test_a_folder_that_changes_is_read_again(open_app, shelf):
    made.gpt2(shelf / "changing")
    app = open_app(REPORT, model="models/changing")
    before = app.metric[0].value
    shutil.rmtree(shelf / "changing")
    made.gpt2(shelf / "changing", n_layer=2)
    app.run()
    assert app.metric[0].value != before
    shutil.rmtree(shelf / "changing")

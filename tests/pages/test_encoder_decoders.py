"""Marian, BART and T5 on the pages: every step of their arithmetic, and lessons that say what these do otherwise."""

import pytest

from tests.checkpoints import folders as made
from tests.checkpoints import test_pair_of_vocabularies as pairs
from tests.pages.reading import said
from vizformer import explain
from vizformer.checkpoints import load
from vizformer.web.catalogue import server_folder

QKV, LAYER, REPORT, MAP = (
    "pages/learn/qkv.py",
    "pages/learn/layer.py",
    "pages/checkpoint/report.py",
    "pages/learn/map.py",
)
TEXT, TARGET = "the cat sat on the mat", "die katze"
MODELS = ["marian", "bart", "t5"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    pairs.marian(root / "marian")
    made.bart(root / "bart")
    made.t5(root / "t5")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("site", ["encoder.1.self", "decoder.1.self", "decoder.1.cross"])
def test_every_step_of_a_head(open_app, shelf, name, site):
    checkpoint = load(shelf / name)
    steps = explain.attention_steps(checkpoint, checkpoint.trace(TEXT, target=TARGET), site, 2, 1)
    stack, _, kind = site.split(".")
    link = dict(text=TEXT, target=TARGET, layer=1, head=2, query=1, site=kind if kind == "cross" else stack)
    app = open_app(QKV, model=f"models/{name}", **link)
    app.toggle(key="steps.all").set_value(True).run()
    assert not app.exception
    assert not app.error
    assert len(app.success) == len(app.subheader) == len(steps)
    assert all(step.code in code.value for code, step in zip(app.code, steps, strict=True))


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_t5_does_not_divide_its_scores(open_app, locale):
    link = dict(model="models/t5", text=TEXT, target=TARGET, locale=locale)
    english = locale == "en-US"
    app = open_app(QKV, part="scale", **link)
    assert not app.exception
    assert not app.error
    assert ("This model does not divide" if english else "这个模型不做除法") in said(app)
    app = open_app(QKV, part="three", **link)
    assert not app.exception
    assert r"S &= c\,(X W_Q)(X W_K)^\top" in said(app)
    assert "c = 1" in said(app)
    app = open_app(QKV, part="scale", **{**link, "model": "models/bart"})
    assert "This model does not divide" not in said(app)
    assert "这个模型不做除法" not in said(app)


def test_there_is_no_division_to_switch_off(open_app):
    labels = {}
    for name in ("t5", "bart"):
        app = open_app(QKV, model=f"models/{name}", text=TEXT, target=TARGET, part="arithmetic")
        assert not app.exception
        assert not app.error
        labels[name] = {toggle.label for toggle in app.toggle}
    assert "Divide by √d_head" in labels["bart"]
    assert "Divide by √d_head" not in labels["t5"]


@pytest.mark.parametrize("name", MODELS)
def test_the_map_and_the_report(open_app, shelf, name):
    app = open_app(MAP, model=f"models/{name}", text=TEXT, target=TARGET)
    assert not app.exception
    assert not app.error
    app = open_app(REPORT, model=f"models/{name}")
    assert not app.exception
    assert not app.error
    checkpoint = load(shelf / name)
    assert checkpoint.report.family in said(app)
    assert f"{checkpoint.report.n_parameters:,}" in {metric.value for metric in app.metric}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_target_is_generated_and_begins_as_the_model_begins(open_app, shelf, name):
    app = open_app(LAYER, model=f"models/{name}", text=TEXT, layer=1)
    assert not app.exception
    assert not app.error
    trace = load(shelf / name).trace(TEXT)
    start = {"marian": "<pad>", "bart": "</s>", "t5": "<unk>"}[name]
    assert trace.tokens["decoder"][0].piece == start

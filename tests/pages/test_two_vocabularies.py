"""Translators with a vocabulary per language on the pages: each side's ids, rows and limits are its own."""

import pytest

from tests import tiny
from tests.checkpoints.test_state_dict import saved
from tests.pages.reading import said
from tests.parity.test_separate_vocabularies import separate
from tests.parity.test_two_vocabularies import SOURCES, TARGETS, Translator
from tests.refs import stamped
from vizformer.checkpoints import load
from vizformer.web.catalogue import model_cache, server_folder

TOKENS, MAP, HEADS, STEPS = (
    "pages/learn/tokens.py",
    "pages/learn/map.py",
    "pages/explore/attention.py",
    "pages/learn/qkv.py",
)
LAYER, GENERATION, MASKS, REPORT = (
    "pages/learn/layer.py",
    "pages/explore/generation.py",
    "pages/learn/masks.py",
    "pages/checkpoint/report.py",
)
OPEN = "models/open.pt;n_heads=4;norm_order=post;activation=relu;scaled_embedding=True"
BARE = "models/bare.pt;n_heads=4;norm_order=post;activation=relu;scaled_embedding=true;bos_id=1;eos_id=2"
SOURCE, TARGET = f"3 {SOURCES - 1} 7 29 1 8", f"5 {TARGETS - 1} 4"
MARIAN = "models/marian"
PAGES = [
    (TOKENS, BARE, "lookup"),
    (TOKENS, BARE, "neighbours"),
    (TOKENS, BARE, "context"),
    (TOKENS, MARIAN, "pieces"),
    ("pages/learn/positions.py", BARE, "shuffle"),
    (MAP, BARE, None),
    (HEADS, MARIAN, None),
    (STEPS, BARE, None),
    (LAYER, BARE, None),
    (GENERATION, MARIAN, None),
    (MASKS, BARE, "kinds"),
    (MASKS, MARIAN, "leak"),
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    separate(root / "marian")
    saved(tiny.randomise(Translator()).state_dict(), root / "bare.pt")
    saved(tiny.randomise(Translator((TARGETS, TARGETS), names=("one_emb", "two_emb"))).state_dict(), root / "open.pt")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


@pytest.mark.sample(2)
@pytest.mark.parametrize(("page", "model", "part"), PAGES)
def test_every_page(open_app, page, model, part):
    text, target = (SOURCE, TARGET) if model == BARE else ("the cat sat on the mat", "die katze")
    app = open_app(page, model=model, text=text, target=target, **({"part": part} if part else {}))
    assert not app.exception
    assert not app.error, app.error[0].value


def test_a_second_sentence_to_pad_is_one_that_the_model_reads(open_app):
    app = open_app(MASKS, model=BARE, text=SOURCE, target=TARGET, part="kinds", dials="masks.kind:padding")
    assert not app.exception
    assert not app.error, app.error[0].value
    assert next(box for box in app.text_input if box.key == "view.batch").value == f"{SOURCE} {SOURCE}"
    assert "12 positions each" in said(app)


def test_the_table_is_that_which_reads_the_sentence(open_app):
    app = open_app(TOKENS, model=BARE, text=SOURCE, target=TARGET, part="lookup")
    shown = said(app)
    assert f"{SOURCES} × 16" in shown
    assert "the largest difference is 0" in shown
    row = model_cache.checkpoint(stamped(BARE)).model.source_embedding.weight
    at = app.selectbox(key="setting.tokens.at").value
    id = int(SOURCE.split()[at])
    assert f"{float(row[id, 0]):.4f}" in shown


@pytest.mark.parametrize(
    ("locale", "source", "target"),
    [
        ("en-US", f"type token ids from 0 to {SOURCES - 1}", f"type token ids from 0 to {TARGETS - 1}"),
        ("zh-CN", f"0 到 {SOURCES - 1}", f"0 到 {TARGETS - 1}"),
    ],
)
def test_typed_ids_have_a_limit_on_each_side(open_app, locale, source, target):
    app = open_app(HEADS, locale=locale, model=BARE, text=f"{SOURCES} 3", target=TARGET)
    assert source in app.error[0].value
    app = open_app(HEADS, locale=locale, model=BARE, text=SOURCE, target=f"{SOURCES - 1} 3")
    assert target in app.error[0].value


@pytest.mark.parametrize(
    ("locale", "label", "vocabulary"),
    [
        ("en-US", "Which table of embeddings is the source's", "tokens in the source"),
        ("zh-CN", "哪一个嵌入表是源序列（编码器）的", "源序列"),
    ],
)
@pytest.mark.sample(1)
def test_the_form_asks_whose_the_tables_are(open_app, locale, label, vocabulary):
    app = open_app(REPORT, locale=locale, model=OPEN)
    assert not app.exception
    box = app.selectbox(key=f"assume.{OPEN}.source_embedding")
    assert label in box.label
    assert sorted(box.options) == ["one_emb.weight", "two_emb.weight"]
    answered = f"{OPEN};source_embedding=two_emb.weight"
    if locale == "en-US":  # AppTest writes answers in English only
        box.set_value("two_emb.weight")
        app.selectbox(key=f"assume.{OPEN}.logit_scale").set_value("nothing")
        app.selectbox(key=f"assume.{OPEN}.causal").set_value(True)
        app.selectbox(key=f"assume.{OPEN}.scaled_rows").set_value("tokens")
        next(one for one in app.button if one.label == "Open under these assumptions").click().run()
        link = app.query_params["model"]
        wanted = [*answered.split(";"), "logit_scale=nothing", "causal=True", "scaled_rows=tokens"]
        assert sorted((link if isinstance(link, str) else link[0]).split(";")) == sorted(wanted)
    else:
        app = open_app(REPORT, locale=locale, model=answered)
    assert not app.exception
    assert not app.error, app.error[0].value
    assert vocabulary in said(app)
    answers = dict(n_heads=4, norm_order="post", activation="relu", scaled_embedding=True)
    expected = load(server_folder.root() / "open.pt", source_embedding="two_emb.weight", **answers)
    assert model_cache.checkpoint(stamped(answered)).key == expected.key

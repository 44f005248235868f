"""Every page, and every part of every lesson, with models that lack something: a head, a tokenizer, room, layers."""

import html
import re

import pytest
from torch import nn

from tests import tiny
from tests.checkpoints import folders as made
from tests.checkpoints.test_state_dict import D, V, nano_gpt, saved
from tests.pages.reading import opens_well, said
from tests.refs import stamped
from vizformer.checkpoints import save
from vizformer.web.catalogue import model_cache, server_folder
from vizformer.web.frame import sitemap
from vizformer.web.lessons.tokens.embedding_rows import names
from vizformer.web.widgets import model_suggestions, slides

BLANKS, GENERATION, ATTENTION, TOKENS, MAP, POSITIONS = (
    "pages/explore/blanks.py",
    "pages/explore/generation.py",
    "pages/explore/attention.py",
    "pages/learn/tokens.py",
    "pages/learn/map.py",
    "pages/learn/positions.py",
)
IDS = {"bare.pt": "3 14 0 3", "both.pt": "3 14 0 3"}  # came without a tokenizer
POST = ";n_heads=4;norm_order=post;activation=relu;scaled_embedding=false;positions=sinusoidal"
ANSWERS = {"bare.pt": ";n_heads=4;activation=gelu", "both.pt": POST}  # which does not say how a target begins
MODELS = [
    "headless",
    "headless-t5",
    "short",
    "no-norms",
    "no-residual",
    "bare.pt",
    "both.pt",
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    made.bert(root / "headless", model="BertModel")
    made.t5(root / "headless-t5", model="T5Model")
    made.bert(root / "filler")
    made.bert(root / "short-filler", max_position_embeddings=6)
    made.llama(root / "window", kind="Mistral", sliding_window=3)
    made.gpt2(root / "short", n_positions=8, n_layer=1, n_head=1)
    save(tiny.checkpoint("encoder-decoder", norm_order="none"), root / "no-norms")
    save(tiny.checkpoint("decoder-only", norm_order="post", residual="none"), root / "no-residual")
    saved(nano_gpt(), root / "bare.pt")
    both = nn.ModuleDict(
        {
            "embedding": nn.Embedding(V, D),
            "out": nn.Linear(D, V),
            "transformer": nn.Transformer(D, 4, 1, 1, 24, batch_first=True, dropout=0.0),
        }
    )
    saved(tiny.randomise(both).state_dict(), root / "both.pt")
    return root


@pytest.fixture(autouse=True)
def shelf(written, monkeypatch):
    monkeypatch.setenv(server_folder.VARIABLE, str(written))
    return written


def places():
    """Every page with every part of it, as the navigation and the lessons' words list them."""
    for url, entry in sitemap.PAGES.items():
        yield from ((entry.file, part) for part in slides.lesson_prose(url, "en") or [""])


def link(model, **more):
    return {"model": f"models/{model}{ANSWERS.get(model, '')}", "text": IDS.get(model, "The cats"), **more}


@pytest.mark.sample(3)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("model", MODELS)
def test_every_page(open_app, model, locale):
    pages = list(places())
    assert len(pages) > 30
    app = open_app(ATTENTION, locale=locale, **link(model))
    for page, part in pages[locale == "zh-CN" :: 2]:  # every second one: the texts of both languages have tests
        opens_well(app, page, **link(model, part=part, site="cross", layer=1, head=1, query=1))


LACKING = {
    "headless": ("has no decoder: it reads a text", "no output layer that predicts tokens"),
    "headless-t5": ("no output layer that predicts tokens", "predicts the next token"),
    "both.pt": ("files name no start token", "predicts the next token"),
    "bare.pt": (None, "predicts the next token"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", LACKING)
def test_what_a_model_lacks_is_said_and_others_are_offered(open_app, model):
    for page, lacking in zip((GENERATION, BLANKS), LACKING[model], strict=True):
        app = open_app(page, **link(model))
        assert not app.error
        uses = [button for button in app.button if ".use." in (button.key or "")]
        if lacking is None:
            assert not uses
            continue
        assert any(lacking in info.value for info in app.info)
        assert 0 < len(uses) <= model_suggestions.MOST
        assert not any("headless" in button.label for button in uses)
        uses[0].click().run()
        assert not app.error
        assert not any(lacking in info.value for info in app.info)


@pytest.mark.parametrize("model", ["headless-t5", "both.pt"])
def test_a_decoder_that_cannot_begin_reads_the_sentence(open_app, model):
    app = open_app(ATTENTION, **link(model))
    assert app.text_input(key="view.target").placeholder == "Target: the sentence itself"
    assert said(app).count(link(model)["text"]) == 1
    app = open_app(ATTENTION, **link(model, target="0 1" if model == "both.pt" else "dogs"))
    assert ("0 1" if model == "both.pt" else "dogs") in said(app)


def test_a_second_sentence_is_one_that_the_model_can_read(open_app):
    app = open_app(TOKENS, **link("bare.pt", part="context"))
    assert app.text_input(key="view.second").value == "3 0 14 3"
    assert not any((button.key or "").startswith("tokens.take.") for button in app.button)
    app = open_app(TOKENS, **link("headless", part="context"))
    assert any((button.key or "").startswith("tokens.take.") for button in app.button)


def test_examples_are_offered_to_models_that_can_read_them(open_app):
    for page, model, key, offered in (
        (MAP, "bare.pt", "setting.map.long", True),  # which `stories` reads
        (BLANKS, "filler", "blanks.example.我有一只猫。", True),
        (BLANKS, "short-filler", "blanks.example.The cat sat on the chair.", False),
        (POSITIONS, "bare.pt", "positions.example.dog bites man", False),
        (POSITIONS, "filler", "positions.example.dog bites man", True),
    ):
        app = open_app(page, **link(model, part="shuffle" if page == POSITIONS else "gru"))
        assert not app.error
        assert any(one.key == key for one in (*app.button, *app.toggle)) == offered, model


def test_ids_as_typed_are_called_no_tokenizer(open_app):
    assert "Ids of bare.pt, as typed" in said(open_app(TOKENS, **link("bare.pt")))
    assert "The tokenizer of filler" in said(open_app(TOKENS, **link("filler")))


def test_nothing_to_compare_with_is_said(open_app):
    """One token over and over: there are no two different ones."""
    app = open_app(TOKENS, **link("bare.pt", part="context", text="3 3"))
    app.text_input(key="view.second").set_value("3 3 3").run()
    assert not app.exception
    assert not app.error
    assert "no different tokens to compare it with" in said(app)
    assert "nan" not in said(app)
    assert "How similar are its vectors" not in said(app)  # the question whose answer that would be


def test_the_map_of_a_model_without_a_head_ends_with_vectors(open_app):
    for model, last in (("headless", "Add & Norm (LayerNorm)"), ("filler", "Softmax")):
        app = open_app(MAP, **link(model))
        [table] = [one.proto.body for one in app.get("html") if "vf-table" in one.proto.body]
        assert html.unescape(re.findall("<tr[^>]*><td[^>]*>(.*?)</td>", table)[-1]) == last
        assert ("The model ends with vectors" in said(app)) == (model == "headless")


@pytest.mark.parametrize(("locale", "words"), [("en-US", "has no influence"), ("zh-CN", "够不到")])
def test_a_window_of_three_tokens_does_not_reach_the_first(open_app, locale, words):
    app = open_app(MAP, locale=locale, **link("window", part="gru", text="I have two dogs and a cat"))
    assert not app.exception
    assert not app.error
    assert words in said(app)


def test_tokens_that_read_the_same_are_told_apart(open_app, shelf):
    app = open_app(TOKENS, **link("short", part="neighbours"))
    assert not app.error
    key = stamped("models/short")
    ids = tuple(range(model_cache.options(key).vocab_size))
    texts = names(key, ids)
    assert len(set(texts)) == len(texts)
    plain = [token.text for token in model_cache.checkpoint(key).tokenizer.tokens(list(ids))]
    twice = next(text for text in plain if plain.count(text) > 1)
    first, second = [id for id, text in enumerate(plain) if text == twice][:2]
    assert names(key, (first,)) == [twice]
    apart = [*names(key, (first,), beside=(second,)), *names(key, (second,), beside=(first,))]
    assert apart == names(key, (first, second))
    assert len(set(apart)) == 2


@pytest.mark.parametrize(("locale", "words"), [("en-US", "knows no word"), ("zh-CN", "一个词都不认识")])
def test_a_text_of_unknown_words_has_none_to_hide(open_app, locale, words):
    app = open_app(BLANKS, locale=locale, model="models/filler", text="😀")
    assert not app.exception
    assert words in said(app)


@pytest.mark.sweep
def test_every_page_takes_what_a_reader_types(open_app):
    text = "Fill in the ____ =HYPERLINK(1) \u2017__ $x$ `y` </div>"
    app = open_app(ATTENTION, text=text)
    for page, part in places():
        opens_well(app, page, text=text, part=part)

"""The doors of the bar: their tiles, the pages beside a page, the search, and the opener."""

import pytest

from tests.test_words import leaves
from vizformer.web.frame import bar, progress, sitemap
from vizformer.web.link.languages import LANGUAGES, catalogue
from vizformer.web.widgets import tiles
from vizformer.web.words import lesson_words
from vizformer.web.words.terms import read_terms


def block(app, key: str):
    """What stands in a container."""
    return next(one for one in app.get("flex_container") if one.proto.id.endswith(key))


def links(app, key: str) -> list[str]:
    return [link.proto.page for link in block(app, key).get("page_link")]


@pytest.mark.parametrize("door", sitemap.DOORS)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_door_has_a_tile_with_a_picture_for_every_page_behind_it(open_app, door, locale):
    app = open_app(door.file, locale=locale)
    assert not app.exception
    assert links(app, "tiles") == [page.url for page in sitemap.DOORS[door]]
    assert {page.url for page in sitemap.DOORS[door]} <= set(tiles.pictures())


def test_every_page_has_a_door_or_is_the_start_or_help():
    behind = [page for pages in sitemap.DOORS.values() for page in pages]
    listed = [*sitemap.PAGES.values()]
    assert sorted(map(id, listed)) == sorted(map(id, [sitemap.START, *sitemap.HELP, *sitemap.DOORS, *behind]))
    for page in behind:
        others = sitemap.beside(page)
        assert others
        assert all(sitemap.door_of(other) is sitemap.door_of(page) for other in others)


def test_the_views_of_a_door_share_what_is_looked_at(open_app):
    app = open_app("pages/explore/attention.py", text="今天天气很好。", layer=2, head=3)
    assert links(app, "page-views") == [page.url for page in sitemap.DOORS[sitemap.EXPLORE]]
    app = app.switch_page(sitemap.LENS.file).run()
    assert not app.exception
    view = app.session_state["vizformer.view"].view
    assert (view.text, view.layer, view.head) == ("今天天气很好。", 2, 3)


def test_a_lesson_has_the_one_before_and_the_one_after_beside_it(open_app):
    assert links(open_app("pages/learn/masks.py"), "page-views") == ["path", "heads", "positions"]
    assert links(open_app("pages/learn/map.py"), "page-views") == ["path", "tokens"]


def test_the_tiles_of_the_course_say_what_was_done(open_app):
    app = open_app("pages/learn/path.py")
    app.session_state[progress._DONE] = frozenset({"map/share", "map/path"})
    app.run()
    labels = [link.proto.label for link in block(app, "tiles").get("page_link")]
    assert labels[0] == f"1 · The map: 2 of {len(progress.QUESTIONS['map'])} questions"
    assert labels[1] == "2 · Tokens and embeddings"


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_search_lists_every_page_part_and_term_in_every_language(code):
    goals = bar.index(code)
    pages = {entry.url for entry, part, wanted in goals.values() if not part and not wanted}
    assert pages == set(sitemap.PAGES)
    parts = {(entry.url, part) for entry, part, __ in goals.values() if part}
    assert {url for url, __ in parts} == {*(lesson.url for lesson in sitemap.COURSE), "glossary"}
    assert ("glossary", "reading") in parts
    assert ("masks", "leak") in parts
    assert ("positions", "clock") in parts
    assert len([1 for __, __, wanted in goals.values() if wanted]) == len(read_terms(code))
    for entry in sitemap.COURSE:
        for other in LANGUAGES:
            title = catalogue(other).get(entry.title.text, entry.title.text)
            assert any(title in label for label, goal in goals.items() if goal == (entry, "", "")), title


TEXTBOOK = {
    "positional encoding": "positions/waves",
    "位置编码": "positions/waves",
    "logits": "decoding/ways",
    "softmax temperature": "decoding/ways",
    "LayerNorm": "block/norm",
    "layer normalization": "block/norm",
    "层归一化": "block/norm",
    "feed-forward": "block/ffn",
    "前馈网络": "block/ffn",
    "residual connection": "block/residual",
    "残差连接": "block/residual",
    "hidden state": "block/stream",
    "heat map": "heads/all",
    "热力图": "heads/all",
    "multi-head attention": "heads/split",
    "多头注意力": "heads/split",
    "output projection W^O": "heads/split",
    "scaled dot-product": "qkv/arithmetic",
    "缩放点积": "qkv/arithmetic",
    "self-attention": "qkv/arithmetic",
    "attention score": "qkv/arithmetic",
    "attention weight": "qkv/arithmetic",
    "masked self-attention": "masks/kinds",
    "掩码自注意力": "masks/kinds",
    "cross-attention": "cross/three",
    "交叉注意力": "cross/three",
    "encoder-decoder attention": "cross/three",
    "encoder output": "cross/memory",
    "编码器输出": "cross/memory",
    "autoregressive": "decoding/shift",
    "自回归": "decoding/shift",
    "start token": "decoding/shift",
    "shifted right": "decoding/shift",
    "teacher forcing": "decoding/free",
    "overfitting": "training/dropout",
    "过拟合": "training/dropout",
    "receptive field": "map/rnn",
}
"""Words of the paper and of textbooks, and the part that teaches each."""
SHORT = {"softmax temperature": "temperature", "output projection W^O": "W^O", "layer normalization": "normalisation"}


@pytest.mark.parametrize(("word", "place"), TEXTBOOK.items())
def test_the_search_finds_a_word_of_textbooks_at_the_part_that_teaches_it(word: str, place: str) -> None:
    lesson, __, part = place.partition("/")
    for code in LANGUAGES:
        goals = bar.index(code)
        places = {(goal[0].url, goal[1]) for label, goal in goals.items() if word.lower() in label.lower()}
        assert (lesson, part) in places, code
    texts = " ".join(text for code in LANGUAGES for __, text in leaves(lesson_words.parts(lesson, code)[part]))
    assert SHORT.get(word, word).lower() in texts.lower()  # and the part says it


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_search_finds_the_notations_of_course_texts(open_app, code: str) -> None:
    app = open_app(sitemap.MAP.file, locale={"en": "en-US", "zh_CN": "zh-CN"}[code])
    app.selectbox(key="search").set_value(found(code, sitemap.GLOSSARY, "notations")).run()
    assert not app.exception
    said = " ".join(one.value for one in app.markdown)
    for written in (r"\alpha_{ij}", r"d_\mathrm{model}", "$H$", "$Z$", "memory", "W^Q", "W_q", "(T, B, d)", "[n, d]"):
        assert written in said, written
    assert {"en": "Some texts call it a score", "zh_CN": "叫作分数"}[code] in said


def found(code: str, entry, part: str = "", wanted: str = "") -> str:
    return next(label for label, goal in bar.index(code).items() if goal == (entry, part, wanted))


def test_what_is_found_is_gone_to_with_the_sentence(open_app):
    app = open_app("pages/explore/lens.py", text="今天天气很好。")
    app.selectbox(key="search").set_value(found("en", sitemap.MASKS, "leak")).run()
    assert not app.exception
    assert app.title[0].value == "Masks"
    view = app.session_state["vizformer.view"].view
    assert (view.part, view.text) == ("leak", "今天天气很好。")
    assert app.selectbox(key="search").value is None
    app.selectbox(key="search").set_value(found("en", sitemap.GLOSSARY, wanted="causal mask")).run()
    assert app.title[0].value == "Glossary"
    assert app.text_input(key="glossary.search").value == "causal mask"
    app.selectbox(key="search").set_value(found("en", sitemap.GLOSSARY, wanted="softmax")).run()
    assert app.text_input(key="glossary.search").value == "softmax"  # also from the glossary itself
    app.selectbox(key="search").set_value(found("en", sitemap.GLOSSARY, "reading")).run()
    assert any("Attention Is All You Need" in str(block.proto.body) for block in app.get("html"))
    assert not [box for box in app.text_input if box.key == "glossary.search"]
    app.selectbox(key="search").set_value(found("en", sitemap.GLOSSARY, wanted="softmax")).run()
    assert app.text_input(key="glossary.search").value == "softmax"  # from the list back to the terms


def test_open_your_own_lands_on_the_opener_and_goes_on_to_the_heads(open_app):
    app = open_app("pages/checkpoint/open.py")
    assert not app.exception
    assert app.text_input(key="opening.hub")
    assert not app.expander
    app.selectbox(key="view.model").set_value(app.selectbox(key="view.model").options[1]).run()
    assert app.title[0].value == "Attention"


def test_a_class_begins_and_the_course_is_presented_from_the_door_to_teaching(open_app):
    app = open_app("pages/doors/teach.py")
    app.button(key="teach.class").click().run()
    assert not app.exception
    assert app.button(key="teach.class").disabled
    app.button(key="teach.present").click().run()
    assert app.title[0].value == "The map"
    assert app.session_state["vizformer.view"].view.slide != "off"

"""English typed into a model that reads Chinese: said on the page, in words, and not as an error."""

import pytest

from tests import tiny
from tests.checkpoints import folders
from tests.checkpoints.test_first_tokens import both_ways
from vizformer.checkpoints import save
from vizformer.web.catalogue import server_folder
from vizformer.web.link import beginnings

PAGE = "pages/explore/attention.py"


@pytest.fixture
def one_way(monkeypatch, tmp_path):
    """A translator that reads one language, by its card."""
    save(tiny.checkpoint(max_positions=64), tmp_path / "one-way")
    (tmp_path / "one-way" / "README.md").write_text("A Chinese → English Transformer.", encoding="utf-8")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    return "models/one-way"


@pytest.mark.parametrize(("locale", "words"), [("en-US", "This model reads Chinese"), ("zh-CN", "这个模型读中文")])
def test_english_typed_into_a_translator_of_chinese_is_noticed(open_app, one_way, locale, words):
    app = open_app(PAGE, locale=locale, model=one_way, text="I have a cat.")
    assert [notice for notice in app.info if notice.value.startswith(words)]
    assert not app.error
    assert not app.exception


@pytest.mark.parametrize(
    "link", [{}, {"text": "我爱Python。"}, {"text": "I have a cat."}, {"text": "I have a cat.", "model": "stories"}]
)
def test_what_a_model_reads_is_not_remarked_upon(open_app, link):
    assert not [notice for notice in open_app(PAGE, **link).info if "This model reads" in notice.value]


@pytest.mark.parametrize(
    ("locale", "words", "name"),
    [("en-US", "This model reads Chinese", "Cyrillic"), ("zh-CN", "这个模型读中文", "西里尔文")],
)
def test_another_script_is_named_and_there_is_a_way_out(open_app, one_way, locale, words, name):
    app = open_app(PAGE, locale=locale, model=one_way, text="У меня есть кошка.")
    (notice,) = [notice.value for notice in app.info if notice.value.startswith(words)]
    assert name in notice
    app.button(key="language.use").click().run()
    assert app.text_input(key="view.text").value == "我有一只猫。"
    assert not [notice for notice in app.info if notice.value.startswith(words)]


@pytest.mark.parametrize(
    ("page", "dials", "field", "meaning"),
    [
        ("pages/learn/cross.py", "cross.change:other", "memory", "He left ten minutes ago."),
        ("pages/learn/masks.py", "masks.kind:padding", "batch", "The weather is fine today; we are going to the park."),
    ],
)
def test_the_chinese_sentence_that_a_page_proposes_is_explained_to_others(open_app, page, dials, field, meaning):
    part = "without" if "cross" in page else "kinds"
    app = open_app(page, model="zh-en", part=part, dials=dials)
    assert not app.exception
    assert app.text_input(key=f"view.{field}").label.endswith(f"({meaning})")
    app.text_input(key=f"view.{field}").set_value("她有一只狗。").run()
    assert app.text_input(key=f"view.{field}").value == "她有一只狗。"
    assert "(" not in app.text_input(key=f"view.{field}").label
    app = open_app(page, model="zh-en", part=part, dials=dials, lang="zh_CN")
    assert meaning not in app.text_input(key=f"view.{field}").label


def test_a_model_of_the_reader_opens_on_a_sentence_that_it_reads(open_app, tmp_path, monkeypatch):
    folders.bert(tmp_path / "english", model="BertModel")
    known = tmp_path / "english" / "vocab.txt"  # without a Chinese character, and with the words of the sentence
    words = ["the", "dog", "was", "tired", ",", "so", "it", "went", "to"]
    pieces = [one for one in known.read_text(encoding="utf-8").split() if one.isascii() and one not in words]
    size = len(known.read_text(encoding="utf-8").split())
    known.write_text("\n".join([*pieces, *words, *(f"[x{n}]" for n in range(size))][:size]), encoding="utf-8")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, model="models/english", locale="zh-CN")
    assert not app.exception
    box = app.text_input(key="view.text")
    assert box.value == beginnings.CONTINUED.text
    assert app.query_params["text"] == beginnings.CONTINUED.text
    box.set_value(beginnings.CHINESE.text).run()  # who types it wants to see what becomes of it
    assert app.text_input(key="view.text").value == beginnings.CHINESE.text
    named = open_app(PAGE, model="models/english", text=beginnings.CHINESE.text)  # a link always wins
    assert named.text_input(key="view.text").value == beginnings.CHINESE.text


@pytest.mark.parametrize(("locale", "begun"), [("en-US", beginnings.CONTINUED), ("zh-CN", beginnings.CHINESE)])
def test_a_model_that_reads_both_opens_in_the_readers_language(open_app, tmp_path, monkeypatch, locale, begun):
    save(tiny.checkpoint("encoder-only"), tmp_path / "both")  # of bytes, with whole characters
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, model="models/both", locale=locale)
    assert not app.exception
    assert app.text_input(key="view.text").value == begun.text
    named = open_app(PAGE, model="models/both", locale=locale, text=beginnings.CHINESE.text)  # a link always wins
    assert named.text_input(key="view.text").value == beginnings.CHINESE.text


def test_a_translator_of_chinese_keeps_the_chinese_sentence_under_english(open_app, one_way):
    app = open_app(PAGE, model=one_way, locale="en-US")
    assert app.text_input(key="view.text").value == beginnings.CHINESE.text


@pytest.mark.parametrize("text", ["I have a cat.", "我有一只猫。"])
def test_a_translator_of_both_directions_reads_either_language(open_app, tmp_path, monkeypatch, text):
    save(both_ways(), tmp_path / "both-ways")
    (tmp_path / "both-ways" / "README.md").write_text("A Chinese → English Transformer.", encoding="utf-8")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    app = open_app(PAGE, model="models/both-ways", text=text)
    assert not app.exception
    assert not [notice for notice in app.info if "This model reads" in notice.value]
    app = open_app(PAGE, model="models/both-ways", text="кот", locale="en-US")
    (notice,) = app.info
    assert "reads Chinese and English" in notice.value
    assert "Cyrillic" in notice.value
    app.button(key="language.use").click().run()
    assert app.text_input(key="view.text").value == beginnings.ENGLISH.text
    assert not app.info

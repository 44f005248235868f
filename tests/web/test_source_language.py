"""Which language a translator reads, and what is said of text in another one."""

import pytest

from tests.refs import ref
from vizformer.text.pieces import LOOKED_AT, script
from vizformer.web.widgets.model_suggestions import MEANINGS, read_by, reads_both, stated, written_in


@pytest.mark.parametrize(
    ("card", "language"),
    [
        ("A Chinese → English Transformer in the style of ...", "zh"),
        ("Translates from English to Chinese.", "en"),
        ("### zho-eng\n\n* source group: Chinese \n* target group: English \n", "zh"),
        ("* source languages: eng\n* target languages: zho\n", "en"),
        ("A decoder-only Transformer that continues simple English and Chinese text.", None),
        ("German → French", None),
        ("", None),
    ],
)
def test_a_card_states_what_a_translator_reads(card: str, language: str | None) -> None:
    assert stated(card) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I have a cat.", "en"),
        ("我有一只猫。", "zh"),
        ("我爱Python和PyTorch。", "zh"),
        ("He said 你好 to me.", "en"),
        ("OK", "en"),
        ("3.14", None),
        ("ありがとう", None),
        ("我 I", None),
        ("", None),
    ],
)
def test_the_script_of_a_text(text: str, language: str | None) -> None:
    assert written_in(text) == language


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_no_bundled_model_reads_one_language_only(name: str) -> None:
    assert read_by(ref(name)) is None
    assert reads_both(ref(name)) == (name == "zh-en")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("У меня есть кошка.", "CYRILLIC"),
        ("لدي قطة", "ARABIC"),
        ("मेरे पास एक बिल्ली है", "DEVANAGARI"),
        ("私は猫を飼っています。", "HIRAGANA"),
        ("저는 고양이가 있어요", "HANGUL"),
        ("ฉันมีแมว", "THAI"),
        ("Έχω μια γάτα", "GREEK"),
        ("Ich hörte Bäche.", "LATIN"),
        ("ＡＢＣ", "LATIN"),
        ("𝐀𝐁 ² ½ ʰ", ""),
        ("我 кошка", ""),
    ],
)
def test_a_script_has_its_name_from_unicode(text: str, name: str) -> None:
    assert script(text) == name
    assert written_in(text) == ("en" if name == "LATIN" else None)


def test_every_sentence_with_a_meaning_is_chinese() -> None:
    assert {written_in(text) for text in MEANINGS} == {"zh"}
    assert {written_in(meaning) for meaning in MEANINGS.values()} == {"en"}


def test_of_a_long_text_the_beginning_is_looked_at():
    beginning = "猫" * LOOKED_AT
    assert script(beginning + "a dog " * 50_000) == "CJK"
    assert script("a dog " * 400 + "猫" * 100_000) == "LATIN"

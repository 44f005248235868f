"""Languages, and messages in them."""

import pytest

from vizformer.messages import N_, Message
from vizformer.web.link import languages
from vizformer.web.words import i18n
from vizformer.web.words.i18n import QUOTED, plain


@pytest.mark.parametrize(
    ("tag", "code"),
    [
        ("zh-CN", "zh_CN"),
        ("zh_CN", "zh_CN"),
        ("zh", "zh_CN"),
        ("ZH-hans-sg", "zh_CN"),
        ("en", "en"),
        ("en-GB", "en"),
        ("fr", None),
        ("", None),
        (None, None),
        ("../../etc", None),
    ],
)
def test_a_browsers_language_finds_the_nearest_of_ours(tag, code):
    assert languages.match(tag) == code


def test_without_a_reader_it_is_english():
    assert i18n.language() == "en"
    assert i18n._("Attention") == "Attention"
    assert i18n._("Head {head}", head=3) == "Head 3"
    assert i18n._("{braces} stay") == "{braces} stay"


def test_messages_in_chinese(monkeypatch):
    monkeypatch.setattr(i18n, "language", lambda: "zh_CN")
    rule = N_("numbers go from 0 to {last}", last=7)
    message = N_(
        "This page has no {name} “{value}” ({rule}). It shows {otherwise} instead.",
        name=N_("head"),
        value="20",
        rule=rule,
        otherwise="0",
    )
    assert i18n.translate(message) == "本页没有头“20”（编号从 0 到 7），改为显示 0。"
    assert str(message) == "This page has no head “20” (numbers go from 0 to 7). It shows 0 instead."


def test_what_is_not_translated_shows_in_english(monkeypatch):
    monkeypatch.setattr(i18n, "language", lambda: "zh_CN")
    assert i18n.translate(Message("not in the catalogue: {n:.1f}", {"n": 2.0})) == "not in the catalogue: 2.0"


def test_values_are_quoted_once_and_last():
    inner = N_("**{word}**", word="a*b")
    assert i18n.translate(N_("*{inner}* {other!r} {n}", inner=inner, other="c*d", n=1.5), plain) == (
        r"***a\*b*** " + plain("'c*d'") + " 1.5"
    )


@pytest.mark.parametrize("text", ["**b**", "$x$", "<b>", "[a](b)", "# h", "`c`", "~~s~~", "- item", "| a |", "&lt;"])
def test_no_markdown_survives(text):
    shown = plain(text)
    assert shown.replace("\\", "").replace("\u2060", "") == text
    for mark in "*$<>[]()#`~|&":
        assert mark not in shown.replace("\\" + mark, "")


def test_what_cannot_be_seen_is_shown():
    assert plain("a\x00b\x1bc\u202ed") == "a�b�c�d"
    assert plain("a\n\n  b\tc") == "a b c"
    assert plain("👩‍👧") == "👩‍👧"
    assert len(plain("字" * 100_000)) == QUOTED

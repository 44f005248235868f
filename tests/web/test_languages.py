"""Languages, and messages in them."""

import subprocess
import sys
from functools import cache
from gettext import c2py

import pytest
from babel.messages.pofile import read_po

from vizformer.assets import asset
from vizformer.messages import N_, Message
from vizformer.web.link import languages
from vizformer.web.words import i18n
from vizformer.web.words.errors import QUOTED, plain


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
    rule = N_("it must be from 0 to {last}", last=7)
    message = N_(
        "There is no {name} {value} here: {rule}. Showing {otherwise} instead.",
        name=N_("head"),
        value="20",
        rule=rule,
        otherwise="0",
    )
    assert i18n.translate(message) == "这里没有“头 20”：它应在 0 到 7 之间。现改为显示 0。"
    assert str(message) == "There is no head 20 here: it must be from 0 to 7. Showing 0 instead."


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


BABELS = """
msgid ""
msgstr ""
"Plural-Forms: nplurals=2; plural=(n > 1);\\n"

#: one.py
#, python-brace-format
msgid ""
"two \\"lines\\"\\n"
"and \\\\ a tab\\t"
msgstr "zwei\\n\\"Zeilen\\""

#, fuzzy, python-brace-format
msgid "unsure"
msgstr "unsicher"

msgid "not translated"
msgstr ""

msgid "{n} head"
msgid_plural "{n} heads"
msgstr[0] "{n} Kopf"
msgstr[1] "{n} Köpfe"

msgid "{n} layer"
msgid_plural "{n} layers"
msgstr[0] "{n} Schicht"
msgstr[1] ""

#~ msgid "gone"
#~ msgstr "weg"
"""


@pytest.mark.parametrize("given", [BABELS, None], ids=["odd", "ours"])
def test_a_catalogue_is_read_as_babel_reads_it(given, monkeypatch, tmp_path):
    path = asset("locale", "zh_CN", "LC_MESSAGES", "vizformer.po")
    if given is not None:
        path = tmp_path / "vizformer.po"
        path.write_text(given, encoding="utf-8")
        monkeypatch.setattr(languages, "asset", lambda *parts: path)
    functions = [languages.catalogue, languages.plurals, languages._used]
    for function in functions:
        monkeypatch.setattr(languages, function.__name__, cache(function.__wrapped__))
    with path.open("rb") as file:
        read = read_po(file, locale="zh_CN")
    babels = [entry for entry in read if entry.id and not entry.fuzzy]
    assert languages.catalogue("zh_CN") == {one.id: one.string for one in babels if not one.pluralizable and one.string}
    forms, form = languages.plurals("zh_CN")
    assert forms == {one.id[0]: one.string for one in babels if one.pluralizable and all(one.string)}
    assert [form(n) for n in range(200)] == [c2py(read.plural_expr)(n) for n in range(200)]


def test_no_page_waits_for_babel():
    code = "import sys; from vizformer.web.link import languages; languages.catalogue('zh_CN')"
    subprocess.run([sys.executable, "-c", f"{code}; sys.exit('babel' in sys.modules)"], check=True)

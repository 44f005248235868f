"""The catalogues are complete: every text a person can see exists in every language.

`make messages` puts new texts into the catalogues; translating them is the author's part of a change.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir, extract_from_file
from babel.messages.pofile import read_po

from vizformer.web.link.languages import LANGUAGES, SOURCE, catalogue, plurals

ROOT = Path(__file__).resolve().parent.parent
ERRORS = (
    re.search(r"^ERRORS := ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].replace("\\", "").split()
)
SHOWN = ("show_text", "show_note", "show_markdown", "show_info", "show_warning", "show_error")
KEYWORDS = {**dict.fromkeys(("_", "N_", "assume", *SHOWN, *ERRORS)), "ngettext": (1, 2), "refuse": (2,)}
METHODS = [("**.py", "python"), ("**/words.toml", "vizformer.word_tables:extract")]
LOOKS_WRONG = r"[一-鿿][,;:!?]|[一-鿿]\.(\s|$)|\s[，。；：！？、）]|[（]\s"  # Chinese with punctuation of English
TRANSLATIONS = [code for code in LANGUAGES if code != SOURCE]


@cache
def in_the_code() -> tuple[tuple[str, str], ...]:
    """Every text marked for translation, and where it is."""
    return tuple(_marked())


def _marked() -> Iterator[tuple[str, str]]:
    for line, text, *__ in extract_from_file("python", ROOT / "app.py", KEYWORDS):
        yield first(text), f"app.py:{line}"
    for folder in ("pages", "vizformer"):
        for file, line, text, *__ in extract_from_dir(ROOT / folder, METHODS, keywords=KEYWORDS):
            yield first(text), f"{folder}/{file}:{line}"


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def first(text: str | tuple[str, ...]) -> str:
    """The text by which an entry is found: of one with a plural the singular."""
    return text if isinstance(text, str) else text[0]


@cache
def read(code: str) -> Catalog:
    with (ROOT / "assets" / "locale" / code / "LC_MESSAGES" / "vizformer.po").open("rb") as file:
        return read_po(file, locale=code)


def of(entry: Message) -> list[tuple[str, str]]:
    """Each English text of an entry with each of its translations: more than one where it has a plural."""
    ids, strings = ([one] if isinstance(one, str) else list(one) for one in (entry.id, entry.string))
    return [(english, other) for english in ids for other in strings]


def placeholders(text: str) -> set[tuple[str, str, str]]:
    return {(name, spec or "", as_ or "") for __, name, spec, as_ in Formatter().parse(text) if name is not None}


@pytest.fixture(params=TRANSLATIONS)
def translated(request) -> Catalog:
    return read(request.param)


def entries(translated: Catalog) -> list[Message]:
    return [entry for entry in translated if entry.id]


def test_every_text_is_translated(translated):
    missing = {
        text: where for text, where in in_the_code() if not (e := translated.get(text)) or not all(o for __, o in of(e))
    }
    assert not missing, "run `make messages`, then translate:\n" + "\n".join(f"{w}: {t}" for t, w in missing.items())


def test_nothing_is_doubtful_or_left_over(translated):
    texts = {text for text, __ in in_the_code()}
    assert [entry.id for entry in entries(translated) if entry.fuzzy] == []
    assert [entry.id for entry in entries(translated) if first(entry.id) not in texts] == [], "run `make messages`"
    assert not translated.obsolete, "run `make messages`"


def test_placeholders_are_those_of_the_source(translated):
    for entry in entries(translated):
        for english, other in of(entry):
            if "python-brace-format" in entry.flags or "{" in english:
                assert placeholders(other) == placeholders(english), english


def test_chinese_looks_chinese():
    """No ASCII punctuation beside Chinese characters, no space on the inside of full-width punctuation."""
    for entry in entries(read("zh_CN")):
        bare = re.sub(r"\{[^}]*\}", "0", " ".join(other for __, other in of(entry)))
        assert not re.search(LOOKS_WRONG, bare), entry.string


def test_the_app_reads_what_the_test_reads():
    found = catalogue("zh_CN")
    assert found["Attention"] == "注意力"
    forms, form = plurals("zh_CN")
    assert len(found) + len(forms) == len(entries(read("zh_CN")))
    assert forms["{n:,} token"][form(1)] == forms["{n:,} token"][form(2)] == "{n:,} 个词元"


def test_every_language_has_a_catalogue_and_every_catalogue_a_language():
    folders = {path.parent.parent.name for path in (ROOT / "assets" / "locale").glob("*/LC_MESSAGES/vizformer.po")}
    assert folders == set(TRANSLATIONS)


def test_no_text_hides_in_an_f_string():
    # Before Python 3.12 the extractor does not look inside: such a text would never be translated.
    hidden = []
    for path in (*(ROOT / "pages").rglob("*.py"), *(ROOT / "vizformer").rglob("*.py")):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.JoinedStr):
                calls = {
                    inner.func.id
                    for inner in ast.walk(node)
                    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
                }
                if calls & KEYWORDS.keys():
                    hidden.append(f"{path}:{node.lineno}")
    assert not hidden, "\n".join(hidden)


def test_every_error_that_takes_a_text_is_known_to_the_extractor():
    """And its text stands in the code: what is put together from outside would be translated and quoted by nobody."""
    nodes = [node for path in sorted((ROOT / "vizformer").rglob("*.py")) for node in ast.walk(tree(path))]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    ours = {"VizformerError"}
    while more := {c.name for c in classes if any(getattr(base, "id", "") in ours for base in c.bases)} - ours:
        ours |= more
    made = {c.name for c in classes if any(getattr(inner, "name", "") == "__init__" for inner in c.body)}
    assert ours - (made - {"VizformerError"}) == set(ERRORS)
    for node in nodes:
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", "") in ours:
            assert not isinstance(node.args[0], ast.JoinedStr | ast.BinOp), ast.unparse(node)

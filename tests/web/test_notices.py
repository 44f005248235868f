"""What a notice says of texts from outside is shown as it stands: no link, image, HTML, code or formula is made of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
import streamlit as st
from markdown_it import MarkdownIt

from vizformer.web.lessons.decoding import free_running
from vizformer.web.words import i18n
from vizformer.web.words.i18n import Markup, quoted

ROOT = Path(__file__).resolve().parents[2]
SHOWN_BY = {
    "show_markdown": "markdown",
    "show_info": "info",
    "show_warning": "warning",
    "show_error": "error",
    "show_note": "caption",
}
HOSTILE = (
    "[a](http://elsewhere.example/x)",
    "![a](http://elsewhere.example/x.png)",
    '<img src="http://elsewhere.example/x.png">',
    "`code`",
    "$\\frac{1}{2}$",
    "**b** _i_ ~~s~~",
    ":red[a] :smile: ->",
    "http://elsewhere.example www.elsewhere.example a@elsewhere.example",
    "\n\n# heading\n\n- item\n\n1. item\n\n> quote\n\n---\n",
    "1. item",
    "    indented",
)
OURS = re.compile(
    r"(?<!\\)\$|(?<![\\\u2060]):[a-z_]+[:\[]|->|https?:(?=/)|www\.|(?<=\w)@"
)  # what Streamlit adds to Markdown


def notices() -> Iterator[tuple[str, str]]:
    """The name of the function and the text of every notice that takes a value."""
    for path in sorted([*(ROOT / "vizformer").rglob("*.py"), *(ROOT / "pages").rglob("*.py")]):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Name)
                and call.func.id in SHOWN_BY
                and call.keywords
            ):
                assert isinstance(call.args[0], ast.Constant), path
                yield call.func.id, call.args[0].value


NOTICES = tuple(dict.fromkeys(notices()))


def made_of(text: str) -> list[str]:
    """The marks that Markdown makes of a text, in their order, without plain text and breaks of lines."""
    found = MarkdownIt("commonmark").enable(["strikethrough", "table"]).parse(text)
    every = [token.type for block in found for token in [block, *(block.children or ())]]
    return [one for one in every if one not in ("text", "softbreak", "text_special")] + OURS.findall(text)


def shown(monkeypatch: pytest.MonkeyPatch, function: str, text: str, value: str) -> str:
    said: list[str] = []
    monkeypatch.setattr(st, SHOWN_BY[function], said.append)
    fields = [(name, spec) for _, name, spec, _ in Formatter().parse(text) if name]
    getattr(i18n, function)(text, **{name: 1 if spec else value for name, spec in fields})
    return said[0]


def test_there_are_such_notices() -> None:
    assert {function for function, _ in NOTICES} == set(SHOWN_BY)
    assert len(NOTICES) > 40


@pytest.mark.parametrize(("function", "text"), NOTICES, ids=[text[:40] for _, text in NOTICES])
def test_no_value_of_a_notice_is_markdown(monkeypatch: pytest.MonkeyPatch, function: str, text: str) -> None:
    expected = made_of(shown(monkeypatch, function, text, "word"))
    for value in HOSTILE:
        assert made_of(shown(monkeypatch, function, text, value)) == expected, value


@pytest.mark.parametrize("value", HOSTILE)
def test_no_value_of_a_lesson_is_markdown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    said: list[str] = []
    monkeypatch.setattr(st, "caption", said.append)
    for token in ("word", value):
        free_running.lab.note("after", step=1, wrong=token, changed=token)
    assert made_of(said[1]) == made_of(said[0])


@pytest.mark.parametrize("value", ["word", "0.52", "1,234", "L0 H1", "−0.5 (a half)", "猫和狗。", 3, 0.5, None])
def test_what_is_plain_already_stays(value: object) -> None:
    assert quoted(value) == value


def test_markup_of_ours_stays() -> None:
    assert quoted(Markup("`code`")) == "`code`"

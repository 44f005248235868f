"""The words of the laboratories are whole: every language says what English says, and every text is shown by its lesson."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from babel.messages.catalog import Catalog

from tests.test_translations import LOOKS_WRONG, TRANSLATIONS, placeholders
from tests.test_words import leaves
from vizformer.analysis.heads.measures import TENDENCIES
from vizformer.assets import asset
from vizformer.web.frame import progress
from vizformer.web.link.languages import SOURCE
from vizformer.web.widgets import lab
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import lesson_words

LESSONS = sorted(path.stem for path in asset("lessons", SOURCE).glob("*.toml"))
OF_LABORATORIES = [lesson for lesson in LESSONS if lesson in progress.QUESTIONS]  # the path has stations instead
PROSE = {"text", "try", "wrong"}  # Markdown, in which braces stand for themselves
KNOWN = {
    *PROSE,
    "title",
    "label",
    "columns",
    "asks",
    "question",
    "why",
    "choices",
    "again",
    *(f"line{n}" for n in range(1, 12)),  # of a program with a wrong line
    *TENDENCIES,  # what a head mostly does, by the name that the measures give it
}  # read by the machinery of the lessons
SHOWN_BY = {
    "text",
    "texts",
    "say",
    "note",
    "buttons",
    "box",
    "slider",
    "steps",
    "toggle",
    "columns",
    "asked",
    "asks",
    "choice",
}


def listed(lesson: str, code: str) -> dict[str, list[str]]:
    """Path -> its text, or its forms, of every text of a lesson in a language."""
    found: dict[str, list[str]] = {}
    for path, said in leaves(lesson_words.tables(lesson, code)):
        found.setdefault(path, []).append(said)
    return found


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_translation_says_what_english_says(lesson: str, code: str) -> None:
    english, other = listed(lesson, SOURCE), listed(lesson, code)
    assert list(other) == list(english)
    for path, said in english.items():
        if path.split(".")[-1] in PROSE:
            assert len(other[path]) == len(said), path
            continue
        assert len({frozenset(placeholders(text)) for text in said + other[path]}) == 1, path
        forms = [1 if len(said) == 1 else Catalog(locale=language).num_plurals for language in (SOURCE, code)]
        assert [len(said), len(other[path])] == forms, path


@pytest.mark.parametrize("lesson", LESSONS)
def test_chinese_looks_chinese(lesson: str) -> None:
    for path, said in leaves(lesson_words.tables(lesson, "zh_CN")):
        if path.split(".")[-1] not in PROSE:
            assert not re.search(LOOKS_WRONG, re.sub(r"\{[^}]*\}", "0", said)), (path, said)


def laboratories(lesson: str) -> tuple[Laboratory, ...]:
    found: tuple[Laboratory, ...] = import_module(f"vizformer.web.lessons.{lesson}").PARTS
    return found


def modules(lesson: str) -> list[ModuleType]:
    package = import_module(f"vizformer.web.lessons.{lesson}")
    names = sorted(path.stem for path in Path(package.__path__[0]).glob("[a-z]*.py"))
    return [import_module(f"{package.__name__}.{name}") for name in names]


def nodes(module: ModuleType) -> Iterator[ast.AST]:
    return ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))


def drawn_in(module: ModuleType) -> dict[str, Laboratory]:
    """The laboratories of a module, by what it calls them: `lab`, or several that are alike."""
    return {name: value for name, value in vars(module).items() if isinstance(value, Laboratory)}


def strings(module: ModuleType, of: str = "lab") -> set[str]:
    """The strings of a module for one of its laboratories: written in it, or imported, also as a Literal."""
    lines = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body
    of_others = drawn_in(module).keys() - {of}
    used = [{node.id for node in ast.walk(line) if isinstance(node, ast.Name)} for line in lines]
    of_one = [line for line, names in zip(lines, used, strict=True) if of in names or not names & of_others]
    written = [
        node.value
        for line in of_one
        for node in ast.walk(line)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    kept = [value if isinstance(value, tuple | list | dict) else get_args(value) for value in vars(module).values()]
    return {step for text in written for step in text.split(".")} | {
        one for value in kept for one in value if isinstance(one, str)
    }


def asked_for(module: ModuleType, of_one: str) -> Iterator[str]:
    """The texts that a module asks one of its laboratories for by a name that is written out."""
    for node in nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SHOWN_BY:
            of, name = node.func.value, node.args[0] if node.args else None
            if isinstance(of, ast.Name) and of.id == of_one and node.func.attr == "columns":
                yield from (f"columns.{one.value}" for one in node.args if isinstance(one, ast.Constant))
            elif isinstance(of, ast.Name) and of.id == of_one and isinstance(name, ast.Constant):
                yield f"asks.{name.value}" if node.func.attr in ("asked", "asks", "choice") else name.value


def found(words: Any, path: str) -> Any:
    for step in path.split("."):
        words = words.get(step) if isinstance(words, dict) else None
    return words


@pytest.mark.parametrize("lesson", OF_LABORATORIES)
def test_every_text_is_there_and_is_shown(lesson: str) -> None:
    words, parts = lesson_words.tables(lesson, SOURCE), {part.key for part in laboratories(lesson)}
    of_parts = {lab.key: (module, name) for module in modules(lesson) for name, lab in drawn_in(module).items()}
    shared = set().union(*(strings(module) for module in modules(lesson) if not drawn_in(module)))
    assert set(of_parts) == parts
    for key, (module, name) in of_parts.items():
        missing = [path for path in asked_for(module, name) if not (found(words[key], path) or found(words, path))]
        assert not missing, (key, missing)
        known = KNOWN | shared | strings(module, name)
        assert [path for path, __ in leaves(words[key]) if not known.issuperset(path.split("."))] == [], key
    everywhere = KNOWN.union(shared, *(strings(*where) for where in of_parts.values()))
    of_all = {name: said for name, said in words.items() if name not in parts}
    assert [path for path, __ in leaves(of_all) if not everywhere.issuperset(path.split("."))] == []


@pytest.mark.parametrize("lesson", OF_LABORATORIES)
def test_parts_and_questions_are_those_of_the_words(lesson: str) -> None:
    assert [part.key for part in laboratories(lesson)] == list(lesson_words.parts(lesson, SOURCE))
    assert tuple(lab.questions(laboratories(lesson))) == progress.QUESTIONS[lesson]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A lesson in English and, in part, in Chinese."""
    for code, written in (
        (
            "en",
            'all = "all"\n[one]\ntitle = "One"\nfew = ["{n} key", "{n} keys"]\n[one.asks.why]\nquestion.short = "{x}?"',
        ),
        ("zh_CN", '[one]\ntitle = "一"\nfew = ["{n} 个键"]'),
    ):
        (tmp_path / code).mkdir()
        (tmp_path / code / "x.toml").write_text(written, encoding="utf-8")
    monkeypatch.setattr(lesson_words, "asset", lambda *parts: tmp_path.joinpath(*parts[1:]))
    for cached in (lesson_words.tables, lesson_words._found):
        cached.cache_clear()
    yield
    for cached in (lesson_words.tables, lesson_words._found):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("code", "title", "one", "many"),
    [("en", "One", "1 key", "2 keys"), ("zh_CN", "一", "1 个键", "2 个键"), ("eo", "One", "1 key", "2 keys")],
)
def test_words_are_said_in_the_readers_language_and_otherwise_in_english(
    files, monkeypatch, code, title, one, many
) -> None:
    monkeypatch.setattr(lesson_words, "language", lambda: code)
    said = [lesson_words.say("x", "one", "title"), *(lesson_words.say("x", "one", "few", n=n) for n in (1, 2))]
    assert said == [title, one, many]
    assert lesson_words.say("x", "one", "asks.why.question", x="Who", form="short") == "Who?"  # which Chinese lacks
    assert lesson_words.say("x", "one", "all") == "all"
    assert lesson_words.asked("x") == ("why",)
    for name in ("none", "asks", "title.more"):
        with pytest.raises(KeyError):
            lesson_words.say("x", "one", name)

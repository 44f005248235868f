"""Nothing is used before it is taught: what the parts of the lessons show, against where the glossary says it is taught.

A term of a later lesson may be used where the text has said in which one it comes: "a mask (lesson 5)".
"""

import html
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import ROOT, Open
from tests.test_words import leaves
from vizformer.assets import asset
from vizformer.web.frame.numbering import number, numbered
from vizformer.web.frame.sitemap import COURSE, Entry
from vizformer.web.lessons.map.drawing import BOXES
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.words import lesson_words
from vizformer.web.words.terms import Term, read_terms

LESSONS = [entry.url for entry in COURSE]
PLACES = [(lesson, part) for lesson in LESSONS for part in lesson_words.parts(lesson, "en")]
SEEN = {  # the screens that are read: the language, the model and the sentence that a reader begins with
    "English": ("en-US", "stories", "The cat sat on the chair."),
    "English, of Chinese": ("en-US", "zh-en", "我有一只猫。"),
    "Chinese": ("zh-CN", "zh-en", "我有一只猫。"),
}
OTHER_FORMS = {  # of names; the symbols of matrices stand for what they make
    "feed-forward": "feed-forward",
    "layer-norm": "LayerNorm",
    "query": "W_Q",
    "key": "W_K",
    "value": "W_V",
    "output-projection": "W_O",
    "d-k": "d_k",
}
OTHER_WORDS = [
    "开头",
    "两头",
    "里头",
    "均值",
    "平均值",
    "差值",
    "数值",
    "取值",
]  # in which a term's character means another thing
OTHER_MEANINGS = {  # of a term's name, in one part
    ("tokens", "merges"): {"rank"},  # the place of a pair in the list of merges
    ("heads", "all"): {"padding"},  # in what would be said of a cell that is masked; none is here
}
MOST_LATER = 20  # terms that are named before they are taught, each with its lesson, in the whole course
LATER = r"\*{0,2} ?[(（](?:lesson|part|第|见) ?(\d+)(?:\.\d+)?(?: 课)?[)）]"


class Place(NamedTuple):
    """A part of a lesson by its numbers, from 0."""

    lesson: int
    part: int


def parts(lesson: str) -> list[str]:
    return list(lesson_words.parts(lesson, "en"))


def taught(term: Term) -> Place:
    """Where a term is taught first."""
    of_first = parts(term.lessons[0]).index(term.part) if term.part else 0
    return min(Place(LESSONS.index(url), 0 if i else of_first) for i, url in enumerate(term.lessons))


@cache
def patterns(code: str) -> dict[str, re.Pattern[str]]:
    """Key -> what a term looks like in a text: its names as whole words, also in the plural."""
    found = {}
    for key, term in read_terms(code).items():
        names = [name for name in re.split(r"\s*[()（）]", term.name) if name]
        names += [OTHER_FORMS[key]] if key in OTHER_FORMS else []
        forms = [re.sub(r"\\[ -]| ", "[ -]", re.escape(name)) for name in names]
        words = [
            rf"(?<![\w\\]){form}(?:s|es)?(?![A-Za-z])" if name.isascii() else form
            for name, form in zip(names, forms, strict=True)
        ]
        found[key] = re.compile("|".join(words), re.IGNORECASE | re.ASCII)
    return found


def used(text: str, code: str) -> dict[str, re.Match[str]]:
    """The terms that a text uses; those inside a longer name are not."""
    spans = [(key, one) for key, pattern in patterns(code).items() for one in pattern.finditer(text)]
    longer = [one.span() for __, one in spans] + [one.span() for one in re.finditer("|".join(OTHER_WORDS), text)]
    return {
        key: one
        for key, one in spans
        if not any(a <= one.start() and one.end() <= b and b - a > one.end() - one.start() for a, b in longer)
    }


@cache
def later(lesson: str, part: str, code: str) -> dict[str, str]:
    """The terms of which a part says in which later lesson they come, and the number of that lesson."""
    found, here = {}, Place(LESSONS.index(lesson), parts(lesson).index(part))
    for __, text in leaves(lesson_words.parts(lesson, code)[part]):
        said = numbered(text)
        for key, pattern in patterns(code).items():
            if taught(read_terms(code)[key]) <= here:
                continue
            if mark := re.search(rf"(?:{pattern.pattern}){LATER}", said, re.IGNORECASE | re.ASCII):
                found[key] = mark[1]
    return found


def known(key: str, here: Place, code: str) -> bool:
    """Whether a term was taught before or is here, or the lesson has said so far in which one it comes."""
    lesson = LESSONS[here.lesson]
    so_far = parts(lesson)[: here.part + 1]
    return taught(read_terms(code)[key]) <= here or any(key in later(lesson, part, code) for part in so_far)


def strings(sent: Any) -> Iterator[str]:
    """All texts in what a picture is made of."""
    if isinstance(sent, str):
        yield sent
    elif isinstance(sent, dict | list):
        of_dict = sent.items() if isinstance(sent, dict) else enumerate(sent)
        for key, one in of_dict:
            if key not in ("bdata", "dtype", "shape", "type", "mode"):
                yield from strings(one)


def plain(text: str) -> str:
    """A text as it is read: without tags, pictures in them, and the escapes of Markdown."""
    bare = re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.S)
    return (
        re.sub(r"\\([-!.,?=()])", r"\1", html.unescape(bare))
        .replace(r"d_\text{head}", "d_k")
        .replace(r"d_\mathrm{head}", "d_k")
    )


def shown(app: AppTest) -> Iterator[tuple[str, str]]:
    """What the part shows, text by text, with the kind of element: below the tabs and above the way on; no code."""
    elements = list(app.main)
    begin = next(i for i, one in enumerate(elements) if one.type == "html" and "data-lesson" in one.proto.body)
    end = max(i for i, one in enumerate(elements) if one.type == "divider")
    for element in elements[begin + 1 : end]:
        if element.type == "html":
            texts = [element.proto.body]
        elif element.type == "bidi_component":
            texts = list(strings(json.loads(element.proto.mixed.json or "null")))
        elif element.type == "plotly_chart":
            texts = list(strings(json.loads(element.proto.spec)))
        elif element.type == "page_link":
            texts = [element.proto.page]
        elif element.type != "code":
            options = [getattr(one, "content", one) for one in getattr(element, "options", None) or ()]
            texts = [getattr(element, "label", ""), *options, getattr(element, "value", "")]
        else:
            texts = []
        yield from ((element.type, plain(text)) for text in texts if isinstance(text, str) and text)


def answers(lesson: str, part: str, code: str) -> Iterator[str]:
    """What is said with the answers of a part's questions."""
    for asked in lesson_words.parts(lesson, code)[part].get("asks", {}).values():
        yield from (text for __, text in leaves({"why": asked.get("why", "")}))


@pytest.mark.sample(3)
@pytest.mark.parametrize("reader", SEEN)
@pytest.mark.parametrize("lesson", LESSONS)
def test_nothing_is_used_before_it_is_taught(open_app: Open, lesson: str, reader: str) -> None:
    locale, model, text = SEEN[reader]
    code = "zh_CN" if locale == "zh-CN" else "en"
    for index, part in enumerate(parts(lesson)):
        app = open_app(f"pages/learn/{lesson}.py", locale=locale, model=model, text=text, part=part)
        assert not app.exception
        here, links = Place(LESSONS.index(lesson), index), set[str]()
        screen = [*shown(app), *(("why", one) for one in answers(lesson, part, code))]
        if (lesson, part) == (
            "map",
            "drawing",
        ):  # the boxes, and the chosen one beside them, lead to where they are taught
            links = {said for kind, said in screen if kind == "page_link"}
            screen = [(kind, said) for kind, said in screen if kind not in ("bidi_component", "page_link")]
        early = [
            (key, kind, said[max(one.start() - 40, 0) : one.end() + 40])
            for kind, said in screen
            for key, one in used(said, code).items()
            if not known(key, here, code)
            and key not in OTHER_MEANINGS.get((lesson, part), ())
            and not links.intersection(read_terms(code)[key].lessons)
        ]
        assert not early, (lesson, part, early)


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("kind", BOXES)
def test_a_box_of_the_map_leads_to_where_it_is_taught(kind: str, code: str) -> None:
    for path, text in leaves(lesson_words.tables("map", code)["drawing"]["boxes"][kind]):
        leads = {entry.url for entry in BOXES[kind][1]}
        keys = {key for key in used(text, code) if not known(key, Place(0, 0), code)}
        assert all(leads.intersection(read_terms(code)[key].lessons) for key in keys), (path, keys)


def test_terms_that_come_later_are_few_and_said_to_come_where_they_do() -> None:
    said = {code: [(place, key) for place in PLACES for key in later(*place, code)] for code in LANGUAGES}
    assert sorted(said["en"]) == sorted(said["zh_CN"])
    assert 0 < len(said["en"]) <= MOST_LATER
    for code, listed in said.items():
        for (lesson, part), key in listed:
            where = later(lesson, part, code)[key]
            assert where in map(number, read_terms(code)[key].lessons), (lesson, part, key)


@pytest.mark.parametrize("entry", COURSE, ids=LESSONS)
def test_the_terms_of_a_lesson_are_taught_in_it(entry: Entry) -> None:
    listed = re.findall(r'"([a-z0-9-]+)",', (ROOT / entry.file).read_text(encoding="utf-8"))
    assert listed
    assert all(entry.url in read_terms("en")[key].lessons for key in listed), entry.url


@pytest.mark.parametrize("code", LANGUAGES)
def test_numbers_of_lessons_are_worked_out_from_their_order(code: str) -> None:
    texts = [text for lesson in LESSONS for __, text in leaves(lesson_words.tables(lesson, code))]
    written = [*texts, asset("lessons", "reading.toml").read_text(encoding="utf-8")]
    assert not [text for text in written if re.search(r"[Ll]essons? \d|[Pp]art \d|第 ?\d+ ?课", text)]
    assert number("masks") == str(LESSONS.index("masks") + 1)
    assert numbered("lesson @masks (@masks.paint).") == f"lesson {number('masks')} ({number('masks')}.2)."
    assert not [text for text in map(numbered, written) if "@" in text]


def test_a_term_is_found_in_its_forms_and_no_other_word() -> None:
    assert set(used("Queries meet keys; a self-attention", "en")) == {"key", "self-attention"}
    assert set(used("the monkey sees the hotkeys, and W_Q", "en")) == {"query"}
    assert set(used("每个头的平均值，与注意力图", "zh_CN")) == {"head", "attention-map"}

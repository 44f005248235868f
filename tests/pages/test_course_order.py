"""Numbers of lessons follow from their order, and a lesson lists terms that it teaches."""

import re

import pytest

from tests.pages.conftest import ROOT
from tests.test_words import leaves
from vizformer.assets import asset
from vizformer.web.frame.sitemap import COURSE, Entry, number, numbered
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.words import lesson_words
from vizformer.web.words.terms import read_terms

LESSONS = [entry.url for entry in COURSE]


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
    place = [*lesson_words.parts("masks", code)].index("paint") + 1
    assert numbered("lesson @masks (@masks.paint).") == f"lesson {number('masks')} ({number('masks')}.{place})."
    assert not [text for text in map(numbered, written) if "@" in text]

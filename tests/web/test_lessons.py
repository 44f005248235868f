"""What the lessons stand on: their words in both languages, settings in the link, the glossary and the reading list."""

import tomllib
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st_

from vizformer.assets import asset
from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE, GLOSSARY, PAGES, PATH, START
from vizformer.web.link import link_settings
from vizformer.web.link.languages import LANGUAGES, SOURCE
from vizformer.web.link.link_settings import UnusableError
from vizformer.web.link.view import View
from vizformer.web.pages import bibliography
from vizformer.web.widgets import lesson, slides
from vizformer.web.words import lesson_words, terms

LESSONS = [entry.url for entry in COURSE]


@pytest.mark.sweep
@given(
    st_.dictionaries(
        st_.from_regex(r"[a-z]{1,20}\.[a-z_]{1,20}", fullmatch=True),
        st_.one_of(st_.booleans(), st_.integers(-9999, 9999), st_.sampled_from(["window", "a.b"]), st_.floats(-9, 9)),
        max_size=link_settings.LONGEST,
    )
)
def test_settings_survive_the_link(settings):
    written = link_settings.write({name: link_settings.text(value) for name, value in settings.items()})
    for name, value in settings.items():
        found = link_settings.value(link_settings.read(written)[name], value)
        assert found == (pytest.approx(value, rel=1e-5) if isinstance(value, float) else value)


@pytest.mark.parametrize(
    "text", ["a", "a.b", "a.b:<c>", "a.b:1~~a.c:2", "A.b:1", "a.b:" + "9" * 41, "~".join(["a.b:1"] * 25)]
)
def test_illegal_settings(text):
    with pytest.raises(UnusableError):
        link_settings.read(text)


@pytest.mark.parametrize(
    ("written", "default", "options", "meant"),
    [
        ("3", 1, range(5), 3),
        ("9", 1, range(5), 1),
        ("x", 1, None, 1),
        ("nan", 0.5, None, 0.5),
        ("inf", 0.5, None, 0.5),
        ("1", False, None, True),
        ("b", "a", ["a", "b"], "b"),
        ("c", "a", ["a", "b"], "a"),
        (None, 4, None, 4),
    ],
)
def test_a_setting_that_cannot_be_used_counts_as_not_set(written, default, options, meant):
    assert link_settings.value(written, default, options) == meant


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_part_has_its_words_in_every_language(lesson):
    source = slides.lesson_prose(lesson, SOURCE)
    assert source
    for code in LANGUAGES:
        words = slides.lesson_prose(lesson, code)
        assert lesson_words.parts(lesson, code)
        assert list(words) == list(source)
        for part, said in words.items():
            assert said.text, part
            assert (len(said.tries), len(said.wrongs)) == (len(source[part].tries), len(source[part].wrongs)), part
    assert any(said.tries for said in source.values()), "one thing to try"
    assert any(said.wrongs for said in source.values()), "the usual misconception"


def test_every_lesson_has_four_questions_or_more():
    assert list(progress.QUESTIONS) == LESSONS
    assert all(len(set(questions)) == len(questions) >= 4 for questions in progress.QUESTIONS.values())


def test_a_lesson_takes_120_words_or_one_question_or_one_trial_a_minute(monkeypatch):
    asks = {name: {"question": "one two " * 15, "why": "one two " * 15} for name in "ab"}
    part = {"text": "one two " * 30, "try": ["one two " * 20] * 2, "wrong": ["one " * 20], "asks": asks}
    monkeypatch.setattr(lesson_words, "parts", lambda lesson, code: {"a": part, "b": part})
    assert lesson_words.of_part("map", "a", SOURCE) == pytest.approx((60 + 80 + 20 + 120) / 120 + 2 + 2)
    assert lesson_words.of_lesson("map", SOURCE) == 15  # twice 6.3


def test_every_lesson_says_what_comes_before_it():
    for number, entry in enumerate(COURSE):
        assert set(entry.after) <= set(LESSONS[:number]), entry.url
        assert bool(entry.after) == (number > 0), entry.url


def test_the_glossary_is_whole():
    with asset("lessons", "glossary.toml").open("rb") as file:
        entries = tomllib.load(file)
    assert len(entries) >= 40
    names = {code: [term.name for term in terms.read_terms(code).values()] for code in LANGUAGES}
    for key, entry in entries.items():
        assert set(entry) <= {"symbol", "shape", "lessons", "part", "also", "everyday", *LANGUAGES}, key
        assert entry["lessons"], key
        assert set(entry["lessons"]) <= set(LESSONS), key
        assert entry.get("part", "") in ("", *slides.lesson_prose(entry["lessons"][0], SOURCE)), key
        for code in LANGUAGES:
            assert entry[code]["name"], key
            assert entry[code]["text"].rstrip().endswith((".", "。")), key
    for code, listed in names.items():
        assert len(set(listed)) == len(listed), code
    taught = {lesson for entry in entries.values() for lesson in entry["lessons"]}
    assert taught == set(LESSONS)


def test_a_term_is_found_by_either_language():
    assert terms.matches("token", "tok")
    assert terms.matches("token", "词元")
    assert not terms.matches("token", "mask")


def test_the_reading_list_is_whole():
    for code in LANGUAGES:
        listed = bibliography.items(code)
        assert len(listed) >= 20
        assert {item.kind for item in listed} == {"paper", "tutorial"}
        assert len({item.title for item in listed}) == len(listed)
        assert all(item.why and item.authors and 2010 < item.year < 2030 for item in listed)
    assert all(a.why != b.why for a, b in zip(bibliography.items("en"), bibliography.items("zh_CN"), strict=True))


def test_the_course_comes_right_after_the_start():
    assert tuple(PAGES.values())[: 3 + len(COURSE)] == (START, GLOSSARY, PATH, *COURSE)


@pytest.mark.parametrize(
    ("value", "default", "options", "written"),
    [
        (3, 1, range(5), "a.b:3"),
        (3, 1, range(3), None),
        ("3 · 鸭", 1, None, None),
        (None, 1, None, None),
        (2, 0.5, None, "a.b:2"),
        (0.1 + 0.2, 0.5, (0.3, 0.5), "a.b:0.3"),
        ("window", "causal", ("causal", "window"), "a.b:window"),
        ("滑动窗口", "causal", ("causal", "window"), None),
        ("猫", "狗", ("猫", "狗"), "a.b:猫"),
        (True, False, None, "a.b:1"),
    ],
)
def test_only_a_legal_value_of_its_kind_is_taken_from_a_widget(monkeypatch, value, default, options, written):
    taken: dict[str, str] = {}
    monkeypatch.setattr(lesson.st, "session_state", {"setting.a.b": value})
    monkeypatch.setattr(lesson.state, "view", View)
    monkeypatch.setattr(lesson.state, "update", lambda **changes: taken.update(changes))
    lesson._take("a.b", "setting.a.b", default, options)
    assert taken.get("settings") == written


def test_the_drawing_of_two_encoders_has_each_name_and_a_pair_for_every_dot() -> None:
    drawn = ElementTree.fromstring(bibliography._two_encoders("a &amp; b", "caption", "encoder", "space"))
    names = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(names) == sorted(["a & b", "caption", "encoder", "encoder", "space"])
    dots, squares = (
        [one.get("fill") for one in drawn.iter(f"{{http://www.w3.org/2000/svg}}{shape}")]
        for shape in ("circle", "rect")
    )
    assert dots.count("#0072b2") == squares.count("#d55e00") == 5  # one in the box of what is read, four in the space

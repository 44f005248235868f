"""The plan to teach by: every link opens a part with its question, the minutes add up, and each language says all of it."""

import re
from itertools import pairwise

import pytest

from tests.test_concepts import ROWS
from vizformer.web.frame import sitemap
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.widgets import plan
from vizformer.web.words import lesson_words

PLACES = [row["part"] for row in plan.tables()["row"]]
OF_LECTURES = [place for row in plan.tables()["lecture"] for place in row["parts"]]


@pytest.mark.parametrize("place", [*PLACES, *OF_LECTURES])
@pytest.mark.parametrize("code", LANGUAGES)
def test_a_row_names_a_page_and_a_part_that_exist(place: str, code: str) -> None:
    page, part = place.split(".")
    assert page in sitemap.PAGES
    assert lesson_words.parts(page, code)[part]["title"]


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_row_asks_the_question_of_its_part_and_says_what_is_got_wrong(code: str) -> None:
    for row in plan.tables()["row"]:
        page, part = row["part"].split(".")
        assert re.search(r"[?？]$", row[code])
        if page != "path":  # whose stations ask by themselves
            assert row["asks"] in lesson_words.parts(page, code)[part]["asks"]
            assert plan.misconception(row["part"], code)


@pytest.mark.parametrize("minutes", plan.MINUTES)
def test_the_minutes_add_up_and_follow_the_course(minutes: int) -> None:
    rows = plan.timed(plan.MINUTES.index(minutes))
    ends = [tuple(map(int, said.split("–"))) for said, __ in rows]
    assert (ends[0][0], ends[-1][1]) == (0, minutes)
    assert all(one[1] == after[0] for one, after in pairwise(ends))
    assert all(3 <= end - begin <= 8 for begin, end in ends)


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_row_has_the_minutes_that_its_words_take_aloud(code: str) -> None:
    """At 130 English words or 220 Chinese characters a minute, and one minute for the question and for each thing to try."""
    for row in plan.tables()["row"]:
        page, part = row["part"].split(".")
        words = lesson_words.parts(page, code)[part]
        question = words.get("asks", {}).get(row.get("asks"), {})
        tries, why = words.get("try", ()), question.get("why", "")
        said = [*tries, *words.get("wrong", ()), words.get("text", ""), question.get("question", "")]
        n_words, n_characters = lesson_words.counted(
            [*said, why if isinstance(why, str) else max(why.values(), key=len)]
        )
        needed = n_words / 130 + n_characters / 220 + 1 + len(tries)
        assert all(needed <= given for given in row["minutes"] if given), (row["part"], needed)


def test_the_lectures_lead_to_every_lesson_and_every_concept() -> None:
    assert {place.split(".")[0] for place in OF_LECTURES} == {lesson.url for lesson in sitemap.COURSE}
    assert len(OF_LECTURES) == len(set(OF_LECTURES))
    assert {f"{row[1]}.{row[2]}" for row in ROWS} <= {*OF_LECTURES}


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_plan_opens_a_part_with_the_sentence_of_the_class(open_app, locale: str) -> None:
    links = {}
    for chosen in (*plan.MINUTES, 0):
        app = open_app(sitemap.TEACH.file, locale=locale, text="今天天气很好。", dials=f"teach.plan:{chosen}")
        assert not app.exception
        links[chosen] = [link.proto for link in app.get("page_link") if "part=" in link.proto.query_string]
        assert all("text=" in link.query_string for link in links[chosen])
    assert [len(found) for found in links.values()] == [9, 16, len(OF_LECTURES)]
    assert links[45][-1].page == "decoding"
    assert links[45][0].label == {"en-US": "0–4 · The whole model", "zh-CN": "0–4 · 整个模型"}[locale]

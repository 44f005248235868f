"""Every concept of the course has a part that teaches it, and its words stand there in both languages."""

import re
from pathlib import Path

import pytest

from tests.test_words import leaves
from vizformer.web.words import lesson_words

ROWS = re.findall(
    r"^\| (.+?) \| ([a-z_]+)/(?!part \|)([a-z]+) \| (.+?) \| (.+?) \|$",
    (Path(__file__).resolve().parent.parent / "docs" / "concepts.md").read_text(encoding="utf-8"),
    re.M,
)


@pytest.mark.parametrize(("concept", "lesson", "part", "english", "chinese"), ROWS, ids=[row[0] for row in ROWS])
def test_a_concept_is_named_where_it_is_taught(
    concept: str, lesson: str, part: str, english: str, chinese: str
) -> None:
    for code, words in (("en", english), ("zh_CN", chinese)):
        texts = " ".join(text for __, text in leaves(lesson_words.parts(lesson, code)[part]))
        assert words.lower() in texts.lower(), (concept, code)


def test_every_part_teaches_a_concept() -> None:
    lessons = {row[1] for row in ROWS}
    named = {(row[1], row[2]) for row in ROWS}
    unnamed = {(lesson, part) for lesson in lessons for part in lesson_words.parts(lesson, "en")} - named
    assert unnamed <= {
        *((("masks", part)) for part in ("paint", "mistakes")),
        ("training", "gradient"),
        ("cross", "without"),
        *(("mixers", part) for part in ("comparison", "sink", "latent", "space")),
    }

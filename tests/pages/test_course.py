"""Every part of every lesson, for every bundled model, in both languages: drawn, without an error; questions work."""

import pytest

from tests.pages.conftest import Open
from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import lesson_text

MODELS = {"zh-en": "我有一只猫。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
PARTS = {entry.url: list(lesson_text.lesson_prose(entry.url, "en")) for entry in COURSE}
PAGES = {entry.url: entry.file for entry in COURSE}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("lesson", PAGES)
def test_every_part_is_drawn_for_every_model(open_app: Open, lesson: str, model: str) -> None:
    locale = "zh-CN" if model == "zh-en" else "en-US"
    app = open_app(PAGES[lesson], locale=locale, model=model, text=MODELS[model])
    for part in PARTS[lesson]:
        tabs = next(control for control in app.button_group if control.key == f"lesson.part.{lesson}")
        app = tabs.set_value(part).run() if part != PARTS[lesson][0] else app
        assert not app.exception, part
        assert not app.error, (part, [error.value for error in app.error])


@pytest.mark.parametrize("lesson", PAGES)
def test_a_part_that_is_not_there_is_said_to_be(open_app: Open, lesson: str) -> None:
    app = open_app(PAGES[lesson], part="nonsense")
    assert not app.exception
    assert any("nonsense" in info.value for info in app.info)


@pytest.mark.parametrize("lesson", PAGES)
def test_questions_are_answered_before_the_answer_is_shown(open_app: Open, lesson: str) -> None:
    asked = set()
    for part in PARTS[lesson]:
        app = open_app(PAGES[lesson], part=part if part != PARTS[lesson][0] else "")
        for radio in [r for r in app.radio if r.key.startswith(f"ask.{lesson}.")]:
            name = radio.key.split(".")[2]
            asked.add(name)
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert reveal.disabled
            assert not app.success or all("Right" not in s.value for s in app.success)
            assert len(set(radio.options)) == len(radio.options) >= 2, "the choices differ"
            app = radio.set_value(0).run()
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert not reveal.disabled
            app = reveal.click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert any(text.startswith(("**Right", "**Not quite")) for text in said)
        for name in [box.key.split(".")[2] for box in app.number_input if (box.key or "").startswith(f"ask.{lesson}.")]:
            asked.add(name)
            before = len([*app.success, *app.error])
            box = next(box for box in app.number_input if (box.key or "").startswith(f"ask.{lesson}.{name}."))
            box.set_value(-1)
            app = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button")).click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert len(said) == before + 1
            assert any(text.startswith("**Not quite") for text in said)
        boxes = [box for box in app.selectbox if (box.key or "").startswith(f"ask.{lesson}.")]
        for row in [box for box in boxes if box.key.split(".")[3] == "row"]:
            name = row.key.split(".")[2]  # answered by a cell: with a click, or a row and a column
            asked.add(name)
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert reveal.disabled
            column = next(box for box in boxes if box.key.startswith(f"ask.{lesson}.{name}.column."))
            row.set_value(0)
            app = column.set_value(0).run()
            app = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button")).click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert any(text.startswith(("**Right", "**Not quite")) for text in said)
    assert asked == set(progress.QUESTIONS[lesson])

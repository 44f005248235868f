"""Every part of every lesson, for every bundled model, in both languages: drawn, without an error; questions work."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import Open
from tests.pages.reading import run
from tests.test_numbers import is_rounded
from vizformer.web.frame import progress
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import slides
from vizformer.web.widgets.lesson import Formula, pasteable

MODELS = {"zh-en": "我有一只猫。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}
LEFT_OUT = {  # (lesson, model) -> parts in which there is nothing to ask, and what the part says instead
    ("cross", "stories"): (("three", "memory", "alignment", "without"), "no cross-attention"),
    ("cross", "cloze"): (("three", "memory", "alignment", "without"), "no cross-attention"),
    ("decoding", "cloze"): (("shift", "free", "ways", "steps", "cache", "drafts"), "does not write"),
}
OF_MATRICES = ("positions", "qkv", "heads", "masks", "cross", "decoding")  # lessons that show a map to be clicked in
PARTS = {entry.url: list(slides.lesson_prose(entry.url, "en")) for entry in COURSE}
PAGES = {entry.url: entry.file for entry in COURSE}


def asked(app: AppTest, lesson: str) -> dict[str, list[str]]:
    """The names of the questions that are open on the page, by what answers them: a choice, a number, a cell."""
    found = {
        "choice": [radio.key for radio in app.radio],
        "number": [box.key for box in app.number_input],
        "row": [box.key for box in app.selectbox],
    }
    return {
        kind: [key.split(".")[2] for key in keys if key and key.startswith(f"ask.{lesson}.") and f".{kind}." in key]
        for kind, keys in found.items()
    }


@pytest.mark.sample(1)
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
        left_out, reason = LEFT_OUT.get((lesson, model), ((), ""))
        if part in left_out:
            assert any(reason in info.value for info in app.info), part
        else:
            assert any(asked(app, lesson).values()), f"no question in the part {part}"


OTHER_NUMBERS = {
    **{"qkv.scale": "draws vectors of its own", "training.gradient": "trains a layer of its own"},
    **{"cross.three": "shapes, which stand in its comments", "costs.results": "a power of ten"},
}
"""Part -> why the numbers beside its code are none that the code leaves."""


def left(names: dict[str, Any]) -> Iterator[float]:
    """The numbers that code leaves in its names, and what they are without a minus."""
    for value in names.values():
        if isinstance(value, int | float) or (isinstance(value, torch.Tensor) and not value.is_meta):
            yield from torch.as_tensor(value).double().abs().flatten().tolist()


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("lesson", PAGES)
def test_the_code_of_a_part_runs_and_gives_a_number_beside_it(
    open_app: Open, lesson: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Formula] = []
    show_code = Formula.show_code
    monkeypatch.setattr(Formula, "show_code", lambda one: (shown.append(one), show_code(one)))
    for part in PARTS[lesson]:
        shown.clear()
        app = open_app(PAGES[lesson], model=model, text=MODELS[model], part=part)
        for code in app.code:
            exec(code.value, {})  # as whoever pastes it
        for one in shown:
            given = {name: torch.as_tensor(value) for name, value in one.given.items()}
            real = {name: value for name, value in given.items() if not value.is_meta}
            names = {name: value.float() if value.is_floating_point() else value for name, value in real.items()}
            done = run(pasteable(one.code, one.given), **names)
            said = re.findall(r"\d+(?:\.\d+)?", re.sub(r"(?<=\d)(\{,\}|,|\\,)(?=\d)", "", one.live))
            found = any(is_rounded(number, value) for value in left(done) for number in said)
            assert found or not said or f"{lesson}.{part}" in OTHER_NUMBERS, (part, one.live)


@pytest.mark.sample(3)
@pytest.mark.parametrize("lesson", PAGES)
def test_a_part_that_is_not_there_is_said_to_be(open_app: Open, lesson: str) -> None:
    app = open_app(PAGES[lesson], part="nonsense")
    assert not app.exception
    assert any("nonsense" in info.value for info in app.info)


@pytest.mark.sample(1)
@pytest.mark.parametrize("lesson", PAGES)
def test_questions_are_answered_before_the_answer_is_shown(open_app: Open, lesson: str) -> None:
    known: dict[str, set[str]] = {"choice": set(), "number": set(), "row": set()}
    for part in PARTS[lesson]:
        app = open_app(PAGES[lesson], part=part if part != PARTS[lesson][0] else "")
        for kind, names in asked(app, lesson).items():
            known[kind] |= set(names)
        for answered, radio in enumerate([r for r in app.radio if r.key.startswith(f"ask.{lesson}.")]):
            name = radio.key.split(".")[2]
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert reveal.disabled
            boxes = [box.value for box in (*app.success, *app.error)]
            assert sum(text.startswith(("**Right", "**Not quite")) for text in boxes) == answered
            assert len(set(radio.options)) == len(radio.options) >= 2, "the choices differ"
            app = radio.set_value(0).run()
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert not reveal.disabled
            app = reveal.click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert any(text.startswith(("**Right", "**Not quite")) for text in said)
        for name in [box.key.split(".")[2] for box in app.number_input if (box.key or "").startswith(f"ask.{lesson}.")]:
            before = len([*app.success, *app.error])
            box = next(box for box in app.number_input if (box.key or "").startswith(f"ask.{lesson}.{name}."))
            box.set_value(-1000)  # far from every answer, whatever the tolerance
            app = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button")).click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert len(said) == before + 1
            assert any(text.startswith("**Not quite") for text in said)
        boxes = [box for box in app.selectbox if (box.key or "").startswith(f"ask.{lesson}.")]
        for row in [box for box in boxes if box.key.split(".")[3] == "row"]:
            name = row.key.split(".")[2]  # answered by a cell: with a click, or a row and a column
            reveal = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button"))
            assert reveal.disabled
            column = next(box for box in boxes if box.key.startswith(f"ask.{lesson}.{name}.column."))
            row.set_value(0)
            app = column.set_value(0).run()
            app = next(b for b in app.button if b.key.startswith(f"ask.{lesson}.{name}.button")).click().run()
            assert not app.exception
            said = [box.value for box in (*app.success, *app.error)]
            assert any(text.startswith(("**Right", "**Not quite")) for text in said)
    assert set().union(*known.values()) == set(progress.QUESTIONS[lesson])
    assert known["number"], "a lesson asks for a number"
    assert known["row"] or lesson not in OF_MATRICES, "a lesson that shows matrices asks for a cell"

"""Questions whose answer is a number: what counts as right, and when it counts as answered."""

import pytest
from streamlit.testing.v1 import AppTest

from vizformer.web.widgets.questions import near


def about_a_length() -> None:
    from vizformer.web.widgets import questions

    questions.ask_number(questions.Number("map", "path", "How long?", 15.96, "It is √255.", tolerance=0.1, about="x"))


def about_a_count() -> None:
    from vizformer.web.widgets import questions

    questions.ask_number(questions.Number("map", "cost", "How many?", 18_914_304, "Counted.", written="{:,.0f}".format))


def answered(page: "object", number: float | None) -> AppTest:
    app = AppTest.from_function(page, default_timeout=60).run()
    assert not app.exception
    assert not app.success
    assert not app.error
    if number is not None:
        app.number_input[0].set_value(number)
    app = app.button[0].click().run()
    assert not app.exception
    return app


@pytest.mark.parametrize(("number", "right"), [(15.9, True), (16.06, True), (15.85, False), (16.5, False)])
def test_a_number_within_the_tolerance_is_right(number: float, right: bool) -> None:
    app = answered(about_a_length, number)
    said = [box.value.replace("\\", "") for box in (app.success if right else app.error)]
    assert len(said) == len(app.success) + len(app.error) == 1
    assert said[0].endswith("It is √255.")
    assert right or "15.96" in said[0]
    assert "± 0.1" in app.number_input[0].label


@pytest.mark.parametrize(("number", "right"), [(18_914_304, True), (18_914_305, False)])
def test_where_there_is_no_tolerance_only_the_number_itself_is_right(number: int, right: bool) -> None:
    app = answered(about_a_count, number)
    assert ["Counted" in box.value for box in app.success] == ([True] if right else [])
    assert right or "18,914,304" in app.error[0].value.replace("\\", "")
    assert "exact" in app.number_input[0].label


def test_a_tolerance_does_not_give_the_answer_away() -> None:
    answers = [1.1 * 1.01**i for i in range(900)]
    found = {answer: near(answer, 0.02, least=0.05) for answer in answers}
    assert all(tolerance <= max(0.05, 0.02 * answer) for answer, tolerance in found.items())
    for tolerance in set(found.values()):
        alike = [answer for answer in answers if found[answer] == tolerance]
        assert max(alike) > 2 * min(alike) or max(alike) == answers[-1]


def test_an_answer_counts_once_a_number_was_entered() -> None:
    app = answered(about_a_length, None)
    assert not app.success
    assert not app.error
    assert "Enter a number first." in [caption.value for caption in app.caption]
    assert "vizformer.done" not in app.session_state
    app.number_input[0].set_value(1.0)
    app = app.button[0].click().run()
    assert app.error
    assert app.session_state["vizformer.done"] == {"map/path"}

"""Where a class is stuck: the first answers of three pupils, and what their teacher sees of them."""

import html
import re

import pytest
from streamlit.testing.v1 import AppTest

from vizformer.web.catalogue.subject import Subject
from vizformer.web.classroom.rooms import Rooms
from vizformer.web.classroom.stores import MemoryStore
from vizformer.web.frame import class_door, classroom
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.path.stations import asks
from vizformer.web.widgets import class_counts
from vizformer.web.widgets.class_question import table

RIGHT, ALL, ROW = 0, 1, 2  # the choices


def pupil() -> None:
    import streamlit as st

    from vizformer.web.frame import classroom
    from vizformer.web.widgets import questions
    from vizformer.web.widgets.misconceptions import Mistake

    if "joined" not in st.session_state:
        st.session_state["joined"] = classroom.join(st.session_state["code"])
    classroom.stand("masks", "kinds")
    mistakes = [Mistake(1, "{} is the whole map".format, "all"), Mistake(2, "{} is one row".format, "row")]
    about = st.session_state.get("about", "")
    questions.ask(
        questions.Choice("masks", "count", "How many?", ["6", "16", "4"], 0, "So.", about, again="?", mistakes=mistakes)
    )


@pytest.fixture
def rooms(monkeypatch) -> Rooms:
    found = Rooms(MemoryStore(), lambda session: True)
    for module in (classroom, class_door):
        monkeypatch.setattr(module, "ROOMS", found)
    return found


def come(code: str) -> AppTest:
    app = AppTest.from_function(pupil)
    app.session_state["code"] = code
    return app.run()


def answer(app: AppTest, choice: int, button: str) -> None:
    app.radio[0].set_value(choice).run()
    next(one for one in app.button if one.label == button).click().run()
    assert not app.exception


def test_of_each_pupil_the_first_answer_counts_in_her_own_class_alone(rooms):
    (code, secret), (other, its_secret) = rooms.open("ann"), rooms.open("bob")
    first, second, third, stranger = (come(one) for one in (code, code, code, other))
    answer(first, ALL, "Show the answer")
    first.session_state["about"] = "another sentence"  # the question is open again
    first.run()
    answer(first, RIGHT, "Show the answer")
    answer(second, RIGHT, "Show the answer")
    answer(third, ROW, "Show the answer")
    answer(stranger, ROW, "Show the answer")
    counted = {"wrong masks/count all": 1, "right masks/count": 1, "wrong masks/count row": 1}
    counts = rooms.counts(code, secret)
    assert {name: n for name, n in counts.items() if not name.startswith("there")} == counted
    assert rooms.counts(other, its_secret)["wrong masks/count row"] == 1
    rooms.close(code, secret)
    answer_again = come(other)
    answer(answer_again, ALL, "Show the answer")
    assert rooms.counts(other, its_secret)["wrong masks/count all"] == 1


def test_what_is_sent_to_the_class_first_counts_also_where_it_is_changed(rooms):
    code, secret = rooms.open("ann")
    rooms.ask(code, secret, "masks/count")
    app = come(code)
    for choice in (ALL, RIGHT):
        answer(app, choice, "Send my answer to the class")
    rooms.show(code, secret)
    app.run()
    counts = rooms.counts(code, secret)
    assert [name for name in counts if "count" in name] == ["wrong masks/count all"]
    assert counts["wrong masks/count all"] == 1
    assert counts["there masks/kinds"] == 1


COUNTS = {
    "there masks/kinds": 3,
    "there qkv/scale": 9,
    "there path/tokens": 2,
    "there attention/": 4,
    "there no/part": 1,
    "right masks/count": 2,
    "wrong masks/count all": 5,
    "wrong masks/count any-sign": 1,
    "wrong masks/count ": 6,
    "wrong path/tokens 1234": 7,
    "wrong <b>/<i> all": 99,
}


def test_the_parts_in_which_most_were_wrong_come_first_and_what_is_unknown_is_on_no_row():
    rows = list(class_counts.rows(COUNTS, lambda asked: (f"What of {asked}?", {"all": "<the whole map>"})))
    assert [(row.number, row.share) for row in rows if not row.is_strong] == [
        ("12 of 14 wrong", 12 / 14),
        ("7 of 7 wrong", 1),
    ]
    assert [row.number for row in rows if row.is_strong][:3] == ["3 here", "2 here", "9 here"]
    assert rows[0].name.endswith("Six masks")
    assert rows[1].remark == "Most often (5): <the whole map>"
    assert rows[3].remark == ""
    assert rows[-1][:2] == ("On other pages", "5 here")
    assert "<the whole map>" not in table("", rows)
    assert "&lt;the whole map&gt;" in table("", rows)


def test_a_teacher_reads_questions_and_misconceptions_of_lessons_and_stations_about_the_own_sentence():
    subject = Subject(ModelRef("bundled", "zh-en"), "我有一只猫。", "")
    asked, names = class_counts._said("masks/count", subject, "en", asks)
    assert "does the causal mask block" in asked
    assert re.fullmatch(r"\d+ is the whole map.*", names["all"])
    asked, names = class_counts._said("path/tokens", subject, "en", asks)
    assert "cut" in asked
    assert names == {one.key: f"“{one.text}”" for one in asks(subject, "en")["tokens"].options}


def test_the_page_of_a_teacher_shows_the_counts_and_the_projector_nothing_else(rooms, open_app):
    app = open_app("pages/doors/teach.py")
    assert "Where the class is" not in [one.value for one in app.subheader]
    app.button("teach.class").click().run()
    ((code, room),) = rooms._led.items()
    for noted in ("wrong masks/count all", "right masks/count"):
        rooms.note(code, noted)
    app.run()
    body = html.unescape(next(one.proto.body for one in app.get("html") if "vf-answers" in one.proto.body))
    assert "1 of 2 wrong" in body
    assert "is the whole map" in body
    assert room.place.page == ""
    assert rooms.look(code).version == 0  # the class stays where it is
    app.button("class.project").click().run()
    assert not app.exception
    assert [one.value for one in app.subheader] == ["Where the class is"]

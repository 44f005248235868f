"""The door of a class: a teacher who gets none, and a student who comes at a bad moment, hear why."""

import pytest
from streamlit.testing.v1 import AppTest

from vizformer.web.classroom import rooms
from vizformer.web.classroom.rooms import Rooms
from vizformer.web.classroom.stores import MemoryStore, StoreError
from vizformer.web.frame import class_door as class_answers
from vizformer.web.frame import classroom


class AwayStore(MemoryStore):
    """A store that cannot be reached, and remembers nothing."""

    def get(self, code):
        raise StoreError("away")

    def codes(self):
        raise StoreError("away")


def door() -> None:
    from vizformer.web.frame import class_door

    class_door._door()


def opened(monkeypatch, store) -> AppTest:
    found = Rooms(store, lambda session: True)
    for module in (classroom, class_answers):
        monkeypatch.setattr(module, "ROOMS", found)
    return AppTest.from_function(door).run()


@pytest.mark.parametrize(("most", "of_one"), [(0, 1), (1, 0)])
def test_a_teacher_who_gets_no_class_is_told_why(monkeypatch, most, of_one):
    monkeypatch.setattr(rooms, "MOST", most)
    monkeypatch.setattr(rooms, "MOST_OF_ONE", of_one)
    monkeypatch.setattr(classroom, "network", lambda address: "192.0.2.1")
    app = opened(monkeypatch, MemoryStore())
    app.button("class.start").click().run()
    assert "already has the largest allowed number" in app.warning[0].value
    assert not app.exception


def test_a_teacher_is_told_that_the_store_is_away_and_a_student_is_not_told_that_the_code_is_wrong(monkeypatch):
    app = opened(monkeypatch, AwayStore())
    app.button("class.start").click().run()
    assert "cannot be reached" in app.warning[0].value
    app.text_input("class.code").input("abcdef").run()
    assert "There is no class" not in " ".join(one.value for one in app.caption)
    assert app.session_state["classroom.follows"] == "ABCDEF"
    app.text_input("class.code").input("abc").run()
    assert "There is no class" in " ".join(one.value for one in app.caption)

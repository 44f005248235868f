"""Rooms of classes: who may move one, who may see one, when it ends; and how browsers are told."""

import asyncio

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vizformer.web.classroom import rooms as the_rooms
from vizformer.web.classroom.rooms import AWAY, LONGEST, MemoryStore, NoRoomError, Place, Rooms, tidy
from vizformer.web.classroom.waiting import PATH, Waiting


class School:
    """Rooms with a clock and teachers that the test moves."""

    def __init__(self) -> None:
        self.now, self.there = 0.0, {"ann", "bob"}
        self.store = MemoryStore()
        self.rooms = Rooms(self.store, lambda session: session in self.there, lambda: self.now)


@pytest.fixture
def school():
    return School()


def test_followers_see_where_the_teacher_is(school):
    code, secret = school.rooms.open("ann")
    assert school.rooms.look(code) == Place()
    school.rooms.move(code, secret, "qkv", {"head": "3"})
    assert school.rooms.look(code) == Place("qkv", {"head": "3"}, 1)
    school.rooms.move(code, secret, "qkv", {"head": "3"})
    assert school.rooms.look(code).version == 1  # nothing has moved
    school.rooms.move(code, secret, "map", {})
    assert school.rooms.look(code) == Place("map", {}, 2)


def test_only_the_teacher_moves_and_ends_a_room(school):
    code, secret = school.rooms.open("ann")
    other, its_secret = school.rooms.open("bob")
    for wrong in ("", code, its_secret, secret[:-1], secret + "x", "é"):
        with pytest.raises(NoRoomError):
            school.rooms.move(code, wrong, "qkv", {})
        with pytest.raises(NoRoomError):
            school.rooms.close(code, wrong)
    school.rooms.move(other, its_secret, "masks", {"layer": "1"})
    assert school.rooms.look(code) == Place()
    assert school.rooms.look(other).page == "masks"
    assert secret not in repr(school.rooms.look(code))


def test_a_room_ends_when_its_teacher_says_so_or_leaves_or_after_hours(school):
    code, secret = school.rooms.open("ann")
    school.rooms.close(code, secret)
    with pytest.raises(NoRoomError):
        school.rooms.look(code)
    code, secret = school.rooms.open("ann")
    school.there.remove("ann")
    school.rooms.look(code)
    school.now += AWAY - 1
    school.there.add("ann")  # the network came back
    school.rooms.look(code)
    school.there.remove("ann")
    school.rooms.look(code)
    school.now += AWAY + 1
    with pytest.raises(NoRoomError):
        school.rooms.look(code)
    code, secret = school.rooms.open("bob")
    school.now += LONGEST + 1
    with pytest.raises(NoRoomError):
        school.rooms.move(code, secret, "qkv", {})
    assert school.store == {}


def test_there_are_only_so_many_rooms_and_links_are_bounded(school, monkeypatch):
    monkeypatch.setattr(the_rooms, "MOST", 2)
    code, secret = school.rooms.open("ann")
    school.rooms.open("bob")
    with pytest.raises(NoRoomError):
        school.rooms.open("ann")
    school.rooms.move(code, secret, "qkv", {"text": "x" * 20_000})
    assert school.rooms.look(code) == Place()


def test_nothing_is_kept_of_those_who_look(school):
    code, secret = school.rooms.open("ann")
    before = dict(school.store)
    for __ in range(40):
        school.rooms.look(code)
    assert school.store == before
    assert secret in repr(school.store)  # it is there that the secret is, and the teacher's session


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("abcdef", "ABCDEF"), (" ab cd ef ", "ABCDEF"), ("ABCDE", ""), ("ABCDEFG", ""), ("ABCDE0", ""), ("<b>abc", "")],
)
def test_codes_are_read_as_people_type_them(typed, kept):
    assert tidy(typed) == kept


def test_a_browser_is_told_of_a_move_at_once_and_of_the_end(school):
    code, secret = school.rooms.open("ann")
    waiting = Waiting(school.rooms)
    with TestClient(Starlette(routes=[waiting.route("base")])) as client:
        url = f"/base{PATH}/{code}"
        school.rooms.move(code, secret, "qkv", {})
        assert client.get(url, params={"after": "0"}).json() == {"version": 1}
        assert client.get(url, params={"after": "٣"}).json() == {"version": 1}
        school.rooms.close(code, secret)
        assert client.get(url, params={"after": "1"}).status_code == 404
        assert client.get(f"/base{PATH}/XXXXXX").status_code == 404
        assert client.get(f"/base{PATH}/../../etc").status_code == 404
    assert waiting._events == {}
    assert waiting._count == 0


def test_one_that_waits_hears_of_the_move():
    school = School()
    code, secret = school.rooms.open("ann")
    waiting = Waiting(school.rooms)

    class Request:
        path_params, query_params = {"code": code}, {"after": "0"}

    async def wait() -> bytes:
        asked = [asyncio.create_task(waiting.answer(Request())) for __ in range(40)]
        while waiting._count < 40:
            await asyncio.sleep(0)
        await asyncio.to_thread(school.rooms.move, code, secret, "qkv", {})
        answers = await asyncio.wait_for(asyncio.gather(*asked), 5)
        return b"".join({bytes(answer.body) for answer in answers})

    assert asyncio.run(wait()) == b'{"version":1}'

"""Rooms of classes: who may move one, who may see one, when it ends; and how browsers are told."""

import asyncio
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from vizformer.web.classroom import requests as the_listeners
from vizformer.web.classroom import requests as the_pointing
from vizformer.web.classroom import rooms as the_rooms
from vizformer.web.classroom.requests import PATH, Listeners, Pointing, Waiting
from vizformer.web.classroom.rooms import (
    AWAY,
    LONGEST,
    MOST_ANSWERS,
    MOST_COUNTS,
    NoRoomError,
    Place,
    Rooms,
    TooManyRoomsError,
    tidy,
)
from vizformer.web.classroom.stores import MemoryStore, StoreError


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
    school.now += AWAY - 1
    school.rooms.beat()
    school.rooms.look(code)
    school.there.add("ann")  # the network came back
    school.rooms.beat()
    school.now += AWAY - 1
    school.rooms.look(code)
    school.there.remove("ann")
    school.rooms.beat()
    school.now += 2
    with pytest.raises(NoRoomError):
        school.rooms.look(code)
    code, secret = school.rooms.open("bob")
    while school.now < LONGEST + 4 * AWAY:
        school.now += AWAY - 1
        school.rooms.beat()
    with pytest.raises(NoRoomError):
        school.rooms.move(code, secret, "qkv", {})
    assert school.store.rooms == {}


def test_a_room_that_nobody_looks_at_ends_too(school):
    school.rooms.open("ann")
    school.there.clear()
    school.now += AWAY + 1
    school.rooms.beat()
    assert school.store.rooms == {}


def test_a_teacher_whose_page_is_loaded_again_keeps_the_room(school):
    code, secret = school.rooms.open("ann")
    school.rooms.move(code, secret, "qkv", {})
    school.there.add("ann again")
    assert not school.rooms.take(code, secret, "ann again")  # a second tab: the first one leads
    school.there.remove("ann")
    assert not school.rooms.take(code, "wrong", "ann again")
    assert school.rooms.take(code, secret, "ann again")
    school.now += AWAY - 1
    school.rooms.beat()
    school.now += AWAY - 1
    assert school.rooms.look(code).page == "qkv"
    assert not school.rooms.take("ABCDEF", secret, "ann again")


def test_a_class_answers_a_question_until_the_answer_is_shown(school):
    code, secret = school.rooms.open("ann")
    assert not school.rooms.answer(code, "masks/leak", "x", "1")  # nothing is asked
    school.rooms.move(code, secret, "masks", {})
    school.rooms.ask(code, secret, "masks/leak")
    assert school.rooms.look(code) == Place("masks", {}, 2, "masks/leak")
    for voter, said in (("x", "1"), ("y", "1"), ("z", "0"), ("x", "2")):
        assert school.rooms.answer(code, "masks/leak", voter, said)
    assert school.rooms.look(code).version == 2  # an answer has nobody's page drawn again
    assert school.rooms.answers(code, secret) == {"2": 1, "1": 1, "0": 1}
    assert not school.rooms.answer(code, "masks/sum", "x", "1")
    assert not school.rooms.answer(code, "masks/leak", "x", "1" * 41)
    with pytest.raises(NoRoomError):
        school.rooms.answers(code, "wrong")
    for change in (school.rooms.ask, lambda *own: school.rooms.show(*own[:2])):
        with pytest.raises(NoRoomError):
            change(code, "wrong", "masks/leak")
    school.rooms.show(code, secret)
    assert school.rooms.look(code) == Place("masks", {}, 3, "masks/leak", shown=True)
    assert not school.rooms.answer(code, "masks/leak", "y", "0")
    assert school.rooms.answers(code, secret).total() == 3
    school.rooms.ask(code, secret, "masks/leak")
    assert school.rooms.answers(code, secret) == {}
    school.rooms.move(code, secret, "masks", {"head": "1"})
    assert school.rooms.look(code).question == "masks/leak"
    school.rooms.move(code, secret, "map", {})
    assert school.rooms.look(code).question == ""
    school.rooms.close(code, secret)
    assert school.store.said == {}


def test_answers_to_a_question_are_bounded(school, monkeypatch):
    monkeypatch.setattr(the_rooms, "MOST_ANSWERS", 2)
    code, secret = school.rooms.open("ann")
    school.rooms.ask(code, secret, "masks/leak")
    assert [school.rooms.answer(code, "masks/leak", voter, "0") for voter in "xyzx"] == [True, True, False, True]


def test_a_store_that_lost_its_rooms_gets_them_back(school):
    code, secret = school.rooms.open("ann")
    school.rooms.move(code, secret, "qkv", {})
    school.store.rooms.clear()
    school.rooms.beat()
    assert school.rooms.look(code).page == "qkv"
    school.store.rooms.clear()
    school.rooms.move(code, secret, "map", {})  # before it was noted anywhere
    assert school.rooms.look(code).page == "map"
    school.store.rooms.clear()
    school.there.remove("ann")
    with pytest.raises(NoRoomError):
        school.rooms.look(code)
    school.there.add("ann")
    school.rooms.close(code, secret)
    school.rooms.beat()
    assert school.store.rooms == {}


def test_there_are_only_so_many_rooms_and_links_are_bounded(school, monkeypatch):
    monkeypatch.setattr(the_rooms, "MOST", 2)
    code, secret = school.rooms.open("ann")
    school.rooms.open("bob")
    with pytest.raises(TooManyRoomsError):
        school.rooms.open("eve")
    school.rooms.move(code, secret, "qkv", {"text": "x" * 20_000})
    assert school.rooms.look(code) == Place()


def test_a_teacher_leads_one_class_and_an_address_so_many_that_a_school_has_enough(school):
    first, __ = school.rooms.open("ann", "192.0.2.1")
    second, __ = school.rooms.open("ann", "192.0.2.1")
    assert set(school.store.rooms) == {second}
    with pytest.raises(NoRoomError):
        school.rooms.look(first)
    assert the_rooms.MOST_OF_ONE >= 40  # a class of which each student tries to be the teacher
    for number in range(the_rooms.MOST_OF_ONE - 1):
        school.rooms.open(f"teacher {number}", "192.0.2.1")
    with pytest.raises(TooManyRoomsError):
        school.rooms.open("one more", "192.0.2.1")
    school.rooms.open("bob", "192.0.2.2")
    school.rooms.open("ann", "192.0.2.1")  # in the place of her own
    for number in range(the_rooms.MOST_OF_ONE + 1):  # who comes from an unknown place is not all others who do
        school.rooms.open(f"unknown {number}")
    school.now += AWAY + 1
    school.rooms.beat()
    school.rooms.open("one more", "192.0.2.1")


def test_a_teacher_sees_where_the_class_is_and_what_it_got_wrong_at_first(school):
    rooms = school.rooms
    school.there |= {"x", "y", "z"}
    code, secret = rooms.open("ann")
    other, its_secret = rooms.open("bob")
    for session, place in (("x", "masks/kinds"), ("y", "masks/kinds"), ("z", "qkv/scores"), ("gone", "qkv/scores")):
        rooms.follow(code, session, place)
    for noted in ("wrong masks/count all", "wrong masks/count all", "right masks/count"):
        rooms.note(code, noted)
    counted = {"there masks/kinds": 2, "there qkv/scores": 1, "wrong masks/count all": 2, "right masks/count": 1}
    assert rooms.counts(code, secret) == counted
    assert rooms.counts(other, its_secret) == {}
    with pytest.raises(NoRoomError):
        rooms.counts(code, its_secret)
    rooms.follow(code, "z", "masks/kinds")
    assert rooms.counts(code, secret)["there masks/kinds"] == 3
    rooms.close(code, secret)
    assert rooms._noted == {}
    with pytest.raises(NoRoomError):
        rooms.note(code, "right masks/count")
    rooms.note(other, "right masks/count")
    school.there.clear()
    school.now += AWAY + 1
    rooms.beat()
    assert rooms._noted == {}


def test_counts_of_a_class_are_bounded_whatever_is_reported(school):
    code, secret = school.rooms.open("ann")
    hostile = (
        "",
        "right",
        "there masks/kinds",
        "right masks/count\n",
        "wrong masks/count a b",
        "right <b>/x",
        "right a/b.c",
    )
    for noted in (*hostile, "right masks/" + "x" * 41, "wrong masks/count " + "x" * 10**6, "right 掩码/掩码"):
        school.rooms.note(code, noted)
    assert school.rooms.counts(code, secret) == {}
    for place in ("masks/kinds x", "x" * 10**6, "掩码/", ""):
        school.there.add("x")
        school.rooms.follow(code, "x", place)
        assert school.rooms.counts(code, secret) == {"there /": 1}
    for number in range(10_000):
        school.rooms.note(code, "wrong masks/count all")
        school.rooms.note(code, f"wrong masks/count {number}")
    counts = school.rooms.counts(code, secret)
    assert counts["wrong masks/count all"] == MOST_ANSWERS
    assert len(counts) == MOST_COUNTS + 1
    assert school.rooms.followers(code) == 1


def test_a_teacher_hears_how_many_follow(school):
    code, __ = school.rooms.open("ann")
    other, __ = school.rooms.open("bob")
    school.there |= {"x", "y", "z"}
    for session, followed in (("x", other), ("x", code), ("y", code), ("z", other)):
        school.rooms.follow(followed, session)
    with TestClient(Starlette(routes=Waiting(school.rooms).routes())) as client:
        assert client.get(f"{PATH}/{code}/followers").json() == {"count": 2}
        school.rooms.follow("", "x")
        school.rooms.follow("", "nobody")
        assert client.get(f"{PATH}/{code}/followers").json() == {"count": 1}
        school.there.remove("y")  # the browser was closed
        assert client.get(f"{PATH}/{code}/followers").json() == {"count": 0}
        school.rooms.beat()
        assert school.rooms._following == {"z": (other, "/")}
        assert client.get(f"{PATH}/XXXXXX/followers").json() == {"count": None}


def test_nothing_is_kept_of_those_who_look(school):
    code, secret = school.rooms.open("ann")
    before = dict(school.store.rooms)
    for __ in range(40):
        school.rooms.look(code)
    assert school.store.rooms == before
    assert school.store.said == {}
    assert secret in repr(school.store.rooms)  # it is there that the secret is, and the teacher's session


@pytest.mark.parametrize(
    ("typed", "kept"),
    [("abcdef", "ABCDEF"), (" ab cd ef ", "ABCDEF"), ("ABCDE", ""), ("ABCDEFG", ""), ("ABCDE0", ""), ("<b>abc", "")],
)
def test_codes_are_read_as_people_type_them(typed, kept):
    assert tidy(typed) == kept


def test_a_browser_is_told_of_a_move_at_once_and_of_the_end(school):
    code, secret = school.rooms.open("ann")
    waiting = Waiting(school.rooms)
    with TestClient(Starlette(routes=waiting.routes("base"))) as client:
        url = f"/base{PATH}/{code}"
        school.rooms.move(code, secret, "qkv", {})
        assert client.get(url, params={"after": "0"}).json() == {"version": 1}
        assert client.get(url, params={"after": "٣"}).json() == {"version": 1}
        school.rooms.close(code, secret)
        assert client.get(url, params={"after": "1"}).status_code == 404
        assert client.get(f"/base{PATH}/XXXXXX").status_code == 404
        assert client.get(f"/base{PATH}/../../etc").status_code == 404
    assert waiting.count == 0
    assert waiting._waiters == {}


def test_a_store_that_cannot_be_reached_is_asked_again_later():
    class Away(MemoryStore):
        def get(self, code):
            raise StoreError("away")

    waiting = Waiting(Rooms(Away(), lambda session: True))
    with TestClient(Starlette(routes=waiting.routes())) as client:
        assert client.get(f"{PATH}/ABCDEF").status_code == 503
    assert waiting._waiters == {}


def test_the_pointer_of_a_teacher_reaches_those_who_watch_and_nobody_else_points():
    school = School()
    code, secret = school.rooms.open("ann")
    pointing = Pointing(school.rooms)
    url = f"{PATH}/{code}/pointer"
    within = {"tag": "p", "path": [0, 12], "x": 0.5, "y": 1}
    at = {"box": "st-key-heads", "x": 0.31, "y": 0.70004, "within": within}

    async def watch() -> list[str]:
        stream = pointing._places(code)
        told = [await anext(stream)]
        pointing._loop = asyncio.get_running_loop()
        with TestClient(Starlette(routes=pointing.routes())) as client:
            sent = await asyncio.to_thread(client.post, url, json={"secret": secret, "at": at})
            assert sent.status_code == 204
        told.append(await asyncio.wait_for(anext(stream), 5))
        assert pointing.count == 1
        await stream.aclose()
        late = pointing._places(code)
        told.append(await anext(late))
        await late.aclose()
        return told

    told = asyncio.run(watch())
    assert told[0] == "data: null\n\n"
    kept = '{"box": "st-key-heads", "x": 0.31, "y": 0.7, "within": {"tag": "p", "path": [0, 12], "x": 0.5, "y": 1.0}}'
    assert told[1] == told[2] == f"data: {kept}\n\n"
    assert pointing._streams == {}
    refused = (
        (404, {"secret": "wrong", "at": at}),
        (204, {"secret": "é", "at": None}),  # a class may end before its pointer is taken away
        (400, {"secret": secret}),
        (400, {"secret": secret, "at": {**at, "box": "x' onclick"}}),
        (400, {"secret": secret, "at": {**at, "box": ""}}),
        (400, {"secret": secret, "at": {**at, "x": "nan"}}),
        *(
            (400, {"secret": secret, "at": {**at, "within": {**within, **wrong}}})
            for wrong in (
                {"path": [-1]},
                {"path": [10_000]},
                {"path": [0] * 61},
                {"path": 1},
                {"path": ["a"]},
                {"path": [None]},
                {"tag": "p>a"},
                {"tag": ""},
                {"x": 3},
                {"y": None},
            )
        ),
        (400, {"secret": secret, "at": {**at, "within": [1]}}),
        (400, {"secret": secret, "at": {**at, "y": 1e9}}),
        (400, [1]),
        (413, {"secret": secret, "at": {**at, "box": "x" * 2000}}),
    )
    with TestClient(Starlette(routes=pointing.routes())) as client:
        for status, body in refused:
            assert client.post(url, json=body).status_code == status, body
        assert client.post(url, content=b"[" * 900).status_code == 400
        for x in ("1" * 400, "-" + "1" * 400, "1" * 400 + ".5", "1e400"):
            body = f'{{"secret": "{secret}", "at": {{"box": "", "x": {x}, "y": 0}}}}'
            assert client.post(url, content=body).status_code == 400, x
        body = rb'{"secret": "\ud800", "at": {"box": "stMainBlockContainer", "x": 0, "y": 0}}'
        assert client.post(url, content=body).status_code == 404
        assert client.post(f"{PATH}/XXXXXX/pointer", json={"secret": secret, "at": at}).status_code == 404
        assert client.get(f"{PATH}/XXXXXX/pointer").status_code == 204


def test_who_comes_late_sees_where_the_teacher_points_however_many_classes_ended_before(monkeypatch):
    monkeypatch.setattr(the_pointing, "MOST", 2)
    pointing = Pointing(School().rooms)
    for code in ("FIRST2", "SECOND", "FIRST2", "THIRD2"):
        pointing._pass_on(code, f'"{code}"')

    async def newest(code: str) -> str:
        stream = pointing._places(code)
        try:
            return await anext(stream)
        finally:
            await stream.aclose()

    told = [asyncio.run(newest(code)) for code in ("FIRST2", "SECOND", "THIRD2")]
    assert told == ['data: "FIRST2"\n\n', "data: null\n\n", 'data: "THIRD2"\n\n']


def test_one_that_waits_hears_of_the_move():
    school = School()
    code, secret = school.rooms.open("ann")
    waiting = Waiting(school.rooms)

    class Request:
        path_params, query_params, client = {"code": code}, {"after": "0"}, None

    async def wait() -> bytes:
        asked = [asyncio.create_task(waiting.answer(Request())) for __ in range(40)]
        while waiting.count < 40:
            await asyncio.sleep(0)
        await asyncio.to_thread(school.rooms.move, code, secret, "qkv", {})
        answers = await asyncio.wait_for(asyncio.gather(*asked), 5)
        return b"".join({bytes(answer.body) for answer in answers})

    assert asyncio.run(wait()) == b'{"version":1}'


def test_one_network_cannot_listen_in_place_of_all_others(monkeypatch):
    monkeypatch.setattr(the_listeners, "MOST_WAITING", 4)
    monkeypatch.setattr(the_listeners, "MOST_OF_ONE", 2)
    one, other, proxy = (SimpleNamespace(client=SimpleNamespace(host=host)) for host in ("10.0.0.1", "10.0.0.2", "::1"))
    listeners = Listeners()
    with ExitStack() as stack:
        for _ in range(2):
            assert not listeners.full(one)
            stack.enter_context(listeners.listening(one))
        assert listeners.full(one)
        assert not listeners.full(other)
        for _ in range(2):  # of whom it is not known who they are, nobody is one
            assert not listeners.full(proxy)
            stack.enter_context(listeners.listening(proxy))
        assert listeners.full(other)
    assert listeners.count == 0
    assert not listeners.full(one)


def test_a_network_that_listens_too_often_is_refused_and_its_class_goes_on(school, monkeypatch):
    monkeypatch.setattr(the_listeners, "MOST_OF_ONE", 0)
    code, secret = school.rooms.open("ann")
    routes = [*Waiting(school.rooms).routes(), *Pointing(school.rooms).routes()]
    with TestClient(Starlette(routes=routes), client=("10.0.0.1", 1)) as client:
        assert client.get(f"{PATH}/{code}").status_code == 503
        assert client.get(f"{PATH}/{code}/pointer").status_code == 503
    with TestClient(Starlette(routes=routes)) as client:
        school.rooms.move(code, secret, "qkv", {})
        assert client.get(f"{PATH}/{code}").json() == {"version": 1}

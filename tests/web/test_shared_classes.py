"""Classes that two servers share through Redis, also where it is killed and comes back empty."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable

import pytest

from tests.redis_server import start_or_skip
from vizformer.web.classroom import rooms
from vizformer.web.classroom.redis_store import ROOM, RedisStore
from vizformer.web.classroom.requests import Waiting
from vizformer.web.classroom.rooms import AWAY, NoRoomError, Place, Rooms
from vizformer.web.classroom.stores import EVERYTHING, StoreError

PATIENCE = 20.0  # seconds


class Heard:
    """What a server hears through its store, and a way to wait for it."""

    def __init__(self, store: RedisStore) -> None:
        self.codes: list[str] = []
        self._more = threading.Condition()
        store.listen(self._hear)

    def _hear(self, code: str) -> None:
        with self._more:
            self.codes.append(code)
            self._more.notify_all()

    def wait_for(self, code: str, times: int = 1) -> None:
        self.wait_until(lambda: self.codes.count(code) >= times)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds, which is asked again whenever something is heard."""
        with self._more:
            assert self._more.wait_for(holds, PATIENCE), self.codes


def test_without_the_package_the_way_out_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(ImportError, match=r"pip install 'vizformer\[redis\]'"):
        RedisStore("redis://127.0.0.1:9/0", rooms.write, rooms.read, keeps=AWAY)


@pytest.fixture
def redis(tmp_path):
    server = start_or_skip(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def two_servers(redis):
    """Two servers with one Redis; the teacher's session is on the first one."""
    stores = [RedisStore(redis.url, rooms.write, rooms.read, keeps=2 * AWAY) for __ in range(2)]
    heard = [Heard(store) for store in stores]  # from the first connection on
    here, there = Rooms(stores[0], lambda session: session == "ann"), Rooms(stores[1], lambda session: session == "eve")
    for one in heard:
        one.wait_for(EVERYTHING)
    yield (here, heard[0]), (there, heard[1])
    for store in stores:
        store.close()


def test_a_move_on_one_server_is_heard_and_seen_on_the_other(two_servers):
    (here, __), (there, heard) = two_servers
    code, secret = here.open("ann")
    here.move(code, secret, "qkv", {"head": "3", "text": "我的妹妹"})
    heard.wait_for(code)
    assert there.look(code) == Place("qkv", {"head": "3", "text": "我的妹妹"}, 1)
    here.ask(code, secret, "qkv/ratio")
    assert there.answer(code, "qkv/ratio", "x", "2")
    assert there.answer(code, "qkv/ratio", "x", "1")
    assert here.answers(code, secret) == {"1": 1}
    there.beat()  # the teacher is not there: nothing is noted, and nothing taken away
    assert here.look(code).question == "qkv/ratio"
    with pytest.raises(NoRoomError):
        there.move(code, "wrong", "map", {})
    here.close(code, secret)
    heard.wait_for(code, times=3)
    with pytest.raises(NoRoomError):
        there.look(code)


def test_followers_on_both_servers_are_counted(two_servers):
    (here, __), (there, __) = two_servers
    code, __ = here.open("ann")
    here.follow(code, "ann")  # (whoever is there)
    there.follow(code, "eve")
    there.beat()
    assert here.followers(code) == 2
    there.follow("", "eve")
    assert there.followers(code) == 1


def test_first_answers_on_both_servers_are_counted_together_also_after_redis_was_lost(redis, two_servers):
    (here, __), (there, heard) = two_servers
    code, secret = here.open("ann")
    for rooms_of_one in (here, there, there):
        rooms_of_one.note(code, "wrong masks/count all")
    there.follow(code, "eve", "masks/kinds")
    counted = {"wrong masks/count all": 3, "there masks/kinds": 1}
    there.beat()
    assert here.counts(code, secret) == counted
    redis.kill()
    redis.start()
    heard.wait_for(EVERYTHING, times=2)
    heard.wait_until(lambda: there.look(code) == Place())

    beats, end = threading.Event(), time.monotonic() + PATIENCE
    while here.counts(code, secret) != counted:  # a connection that was lost is tried again after a second
        assert time.monotonic() < end
        there.beat()
        beats.wait(0.1)


def test_first_answers_on_another_server_are_gone_with_the_class(two_servers):
    (here, __), (there, __) = two_servers
    code, secret = here.open("ann")
    there.note(code, "wrong masks/count all")
    there.beat()
    assert here.counts(code, secret) == {"wrong masks/count all": 1}
    here.close(code, secret)
    there.beat()
    assert not there._noted


def test_a_pointer_on_one_server_is_seen_on_the_other(two_servers):
    (here, __), (there, __) = two_servers
    seen, told = [], threading.Event()
    there.listen_to_pointers(lambda code, place: (seen.append((code, place)), told.set()))
    code, secret = here.open("ann")
    here.point(code, secret, '{"box": "a b"}')
    assert told.wait(PATIENCE)
    assert seen == [(code, '{"box": "a b"}')]


def test_a_teacher_who_comes_back_to_the_other_server_leads_on_from_there(two_servers):
    (here, __), (there, __) = two_servers
    code, secret = here.open("ann")
    assert there.take(code, secret, "eve")
    here.beat()  # it leads the room no more, and leaves it alone
    there.move(code, secret, "masks", {})
    assert here.look(code).page == "masks"
    there.beat()
    assert there.look(code).page == "masks"


def test_an_old_tab_on_the_first_server_does_not_end_what_is_led_from_the_other_one(two_servers):
    (here, __), (there, __) = two_servers
    code, secret = here.open("ann")
    assert there.take(code, secret, "eve")  # the second tab of the teacher
    here.move(code, secret, "masks", {})  # the first one
    here._clock = there._clock = lambda: time.time() + 2 * AWAY
    there.beat()
    here.beat()
    assert there.look(code).page == "masks"
    there.close(code, secret)
    here.beat()
    with pytest.raises(NoRoomError):
        there.look(code)


def test_a_redis_that_is_killed_and_comes_back_empty_gets_its_rooms_again(redis, two_servers):
    (here, __), (there, heard_there) = two_servers
    code, secret = here.open("ann")
    here.move(code, secret, "qkv", {"head": "3"})
    there.look(code)
    redis.kill()
    assert there.look(code).page == "qkv"  # as far as it knows
    here.move(code, secret, "map", {})
    assert here.look(code).page == "map"
    with pytest.raises(StoreError):  # a class that only this server would know
        here.open("eve")
    with pytest.raises(StoreError):  # not: there is no such class
        there.look("ABCDEF")
    redis.start()
    heard_there.wait_until(lambda: there.look(code).page == "map")  # the first server has put its rooms there, and told
    here.move(code, secret, "masks", {})
    assert there.look(code).page == "masks"


@pytest.mark.sweep
def test_followers_hear_of_moves_while_redis_hangs(redis, two_servers):
    (here, heard), (there, heard_there) = two_servers
    code, secret = here.open("ann")
    here.move(code, secret, "masks", {})
    assert there.look(code).page == "masks"
    waiting = Waiting(here)

    class Request:
        path_params, query_params, client = {"code": code}, {"after": "1"}, None

    async def follow() -> set[int]:
        asked = [asyncio.create_task(waiting.answer(Request())) for __ in range(40)]
        while waiting.count < 40:
            await asyncio.sleep(0)
        redis.hang()
        await asyncio.to_thread(here.move, code, secret, "qkv", {})
        answers = await asyncio.gather(*asked)
        return {answer.status_code for answer in answers}

    began = time.monotonic()
    assert asyncio.run(follow()) == {200}
    assert here.look(code).page == "qkv"
    assert there.look(code).page == "masks"
    assert time.monotonic() - began < 10  # two time-outs of a second, of which forty follow none
    here.ask(code, secret, "qkv/ratio")
    assert here.answer(code, "qkv/ratio", "x", "2")
    assert here.answers(code, secret) == {"2": 1}
    redis.go_on()
    heard.wait_for(EVERYTHING, times=2)
    assert here.answers(code, secret) == {"2": 1}
    heard_there.wait_until(lambda: there.look(code).question == "qkv/ratio")
    assert there.answer(code, "qkv/ratio", "y", "2")
    assert here.answers(code, secret) == {"2": 2}


@pytest.mark.sweep
def test_a_class_lives_on_when_redis_was_away_for_longer_than_a_teacher_may_be(redis):
    late = 0.0
    stores = [RedisStore(redis.url, rooms.write, rooms.read, keeps=2 * AWAY) for __ in range(2)]
    heard = [Heard(store) for store in stores]
    here, there = (
        Rooms(store, lambda session, whose=whose: session == whose, lambda: time.time() + late)
        for store, whose in zip(stores, ("ann", "eve"), strict=True)
    )
    for one in heard:
        one.wait_for(EVERYTHING)
    code, secret = here.open("ann")
    there.look(code)
    redis.hang()
    late = 3 * AWAY
    here.beat()
    assert here.look(code) == there.look(code) == Place()
    redis.go_on()  # with all that it held, as after a cut of the network
    for one in heard:
        one.wait_for(EVERYTHING, times=2)
    assert there.look(code) == Place()
    here.move(code, secret, "map", {})
    assert there.look(code).page == "map"
    for store in stores:
        store.close()


def test_a_room_that_another_version_wrote_ends_nothing_of_the_others(redis, two_servers):
    (here, __), (there, __) = two_servers
    odd, its_secret = here.open("ann")
    here._is_there = lambda session: session in ("ann", "bob")
    code, __ = here.open("bob")
    known = redis.client().get(ROOM + odd)
    redis.client().set(ROOM + odd, known.replace('"page"', '"mood": "sunny", "page"').replace("{", '{"hue": 1, ', 1))
    assert there.look(odd) == Place()
    there.take(odd, its_secret, "eve")
    for broken in ("", "[]", '{"place": 1}', '{"secret": "a"}', '{"secret": "a", "place": {}}', "\ud800"):
        redis.client().set(ROOM + odd, broken.encode("utf-8", "surrogatepass"))
        redis.client().delete(ROOM + code)
        here.beat()
        assert redis.client().get(ROOM + code)  # noted
        assert there.look(code) == Place()


def test_an_address_that_is_none_is_said_at_once():
    with pytest.raises(ValueError, match="redis://"):
        RedisStore("localhost:6379", rooms.write, rooms.read, keeps=1)

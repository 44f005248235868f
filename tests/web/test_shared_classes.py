"""Classes that two servers share through Redis, also where it is killed and comes back empty."""

import threading
import time

import pytest

from tests.redis_server import start_or_skip
from vizformer.web.classroom import rooms
from vizformer.web.classroom.redis_store import RedisStore
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
        with self._more:
            assert self._more.wait_for(lambda: self.codes.count(code) >= times, PATIENCE), self.codes


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


def test_a_redis_that_is_killed_and_comes_back_empty_gets_its_rooms_again(redis, two_servers):
    (here, heard_here), (there, __) = two_servers
    code, secret = here.open("ann")
    here.move(code, secret, "qkv", {"head": "3"})
    redis.kill()
    with pytest.raises(StoreError):
        there.look(code)
    with pytest.raises(StoreError):
        here.move(code, secret, "map", {})
    redis.start()
    heard_here.wait_for(EVERYTHING, times=2)  # connected again: the first server has put its rooms there
    end = time.monotonic() + PATIENCE
    while here._store.get(code) is None:
        assert time.monotonic() < end
    assert there.look(code).page in ("qkv", "map")
    here.move(code, secret, "masks", {})
    assert there.look(code).page == "masks"


def test_an_address_that_is_none_is_said_at_once():
    with pytest.raises(ValueError, match="redis://"):
        RedisStore("localhost:6379", rooms.write, rooms.read, keeps=1)

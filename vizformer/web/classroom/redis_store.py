"""Rooms in a Redis that several servers share: VIZFORMER_REDIS_URL=redis://host:6379/0.

A room is a text that expires when it is not written again; the answers to its question are a hash beside it.  Every change
is published to all servers.  Redis may be restarted empty: the server of the teacher then writes the room again
(`Rooms.beat`).  While Redis is away or hangs, each server goes on from its own memory and sends it nothing: the first
command that fails shows it, and the thread that receives the changes notices when it is back.
"""

import contextlib
import json
import logging
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vizformer.web.classroom.stores import EVERYTHING, MemoryStore, StoreError

if TYPE_CHECKING:
    import redis

log = logging.getLogger("vizformer")

Kept = TypeVar("Kept")
ROOM, ANSWERS, FOLLOWING = "vizformer:room:", "vizformer:answers:", "vizformer:following:"
MOVED, POINTED = "vizformer:moved", "vizformer:pointed"
TIMEOUT = 1.0  # seconds that a command may take; nothing is tried twice
AGAIN = 1.0  # seconds until a connection that was lost is tried again
COUNTED = 30.0  # seconds for which what a server has counted holds
REFILLED = 5.0  # seconds in which a store that comes back empty gets its rooms again


class RedisStore(Generic[Kept]):
    """A store in Redis; `write` and `read` make a text of a room and back, which stays `keeps` seconds when not put again.

    Raises:
        ImportError: the package redis is not installed.
        ValueError: the address is none.
    """

    def __init__(self, url: str, write: Callable[[Kept], str], read: Callable[[str], Kept], keeps: float) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError:
            raise ImportError("Classes are shared by the package redis: pip install 'vizformer[redis]'") from None

        once = Retry(NoBackoff(), 0)
        options = {
            "decode_responses": True,
            "socket_timeout": TIMEOUT,
            "socket_connect_timeout": TIMEOUT,
            "retry": once,
        }
        self._connect: Callable[[], redis.Redis] = lambda: redis.Redis.from_url(url, **options)
        self._redis = self._connect()
        self._write, self._read, self._keeps = write, read, keeps
        self._name = secrets.token_urlsafe(9)  # of this server
        self._memory: MemoryStore[Kept] = MemoryStore()  # what this server has seen last
        self._unsent: dict[str, dict[str, str]] = {}  # answers that were given here while Redis was away
        self._away, self._back = False, -math.inf  # when it came back, by the monotonic clock
        self._listens, self._stop = False, threading.Event()

    @property
    def reached_for(self) -> float:
        return 0.0 if self._away else time.monotonic() - self._back

    def get(self, code: str) -> Kept | None:
        try:
            with self._reached():
                found = self._redis.get(ROOM + code)
            room = None if found is None else self._read(str(found))
        except (StoreError, ValueError) as lost:  # (a server of another version may write what cannot be read here)
            if (known := self._memory.get(code)) is None:
                raise StoreError("the room cannot be read") from lost
            return known
        if room is not None:
            self._memory.put(code, room)
        elif self.reached_for < REFILLED:
            return self._memory.get(code)
        else:
            self._memory.drop(code)
        return room

    def put(self, code: str, room: Kept) -> None:
        self._memory.put(code, room)
        with contextlib.suppress(StoreError), self._reached():
            self._redis.set(ROOM + code, self._write(room), px=round(1000 * self._keeps))
            self._redis.pexpire(ANSWERS + code, round(1000 * self._keeps))

    def drop(self, code: str) -> None:
        self._memory.drop(code)
        self._unsent.pop(code, None)
        with contextlib.suppress(StoreError), self._reached():
            self._redis.delete(ROOM + code, ANSWERS + code, FOLLOWING + code)

    def codes(self) -> list[str]:
        with self._reached():
            found = [str(name).removeprefix(ROOM) for name in self._redis.scan_iter(ROOM + "*", count=1000)]
        if self.reached_for > REFILLED:
            for over in set(self._memory.codes()).difference(found):
                self._memory.drop(over)
        return found

    def answer(self, code: str, voter: str, said: str) -> None:
        self._memory.answer(code, voter, said)
        try:
            self._send(code, {voter: said})
        except StoreError:
            self._unsent.setdefault(code, {})[voter] = said

    def _send(self, code: str, said: Mapping[str, str]) -> None:
        with self._reached():
            self._redis.hset(ANSWERS + code, mapping=dict[Any, Any](said))
            self._redis.pexpire(ANSWERS + code, round(1000 * self._keeps))

    def answers(self, code: str) -> Mapping[str, str]:
        with contextlib.suppress(StoreError), self._reached():
            found = self._redis.hgetall(ANSWERS + code)
            self._memory.said[code] = {str(voter): str(said) for voter, said in dict(found).items()}
        return self._memory.answers(code)

    def forget_answers(self, code: str) -> None:
        self._memory.forget_answers(code)
        self._unsent.pop(code, None)
        with contextlib.suppress(StoreError), self._reached():
            self._redis.delete(ANSWERS + code)

    def count(self, code: str, here: Counter[str]) -> Counter[str]:
        now, others = time.time(), Counter[str]()
        with contextlib.suppress(StoreError, ValueError), self._reached():
            self._redis.hset(FOLLOWING + code, self._name, f"{now:.0f} {json.dumps(here)}")
            self._redis.pexpire(FOLLOWING + code, round(1000 * COUNTED))
            for server, said in dict(self._redis.hgetall(FOLLOWING + code)).items():
                noted, __, counts = str(said).partition(" ")
                if server != self._name and now - int(noted) < COUNTED:
                    others.update(json.loads(counts))
        return here + others

    def tell(self, code: str) -> None:
        try:
            with self._reached():
                self._redis.publish(MOVED, code)
        except StoreError:
            self._memory.tell(code)

    def listen(self, listener: Callable[[str], None]) -> None:
        self._memory.listen(listener)
        if not self._listens:
            self._listens = True
            threading.Thread(target=self._hear, name="classes of all servers", daemon=True).start()

    def point(self, code: str, place: str) -> None:
        try:
            with self._reached():
                self._redis.publish(POINTED, f"{code} {place}")
        except StoreError:
            self._memory.point(code, place)

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None:
        self._memory.listen_to_pointers(listener)

    def close(self) -> None:
        """Stops listening for changes."""
        self._stop.set()

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        """Around a command: the first one that fails is the last one until Redis is back."""
        import redis

        if self._away:
            raise StoreError("Redis is away")
        try:
            yield
        except redis.RedisError as lost:
            self._lose(lost)
            raise StoreError(type(lost).__name__) from lost

    def _lose(self, why: Exception) -> None:
        if not self._away:
            log.warning("the Redis of the classes cannot be reached: %s", type(why).__name__)
        self._away = True

    def _hear(self) -> None:
        """Calls the listeners for what any server tells, for as long as the store is there."""
        while not self._stop.is_set():
            try:
                with self._connect() as connection:
                    self._follow(connection)
            except Exception as lost:  # whatever it is: who hears nothing any more never comes back
                self._lose(lost)
                self._stop.wait(AGAIN)

    def _follow(self, connection: "redis.Redis") -> None:
        with connection.pubsub(ignore_subscribe_messages=True) as heard:  # type: ignore[no-untyped-call]
            heard.subscribe(MOVED, POINTED)
            heard.get_message(timeout=TIMEOUT)  # (that it is heard from now on)
            connection.ping()
            if self._away:
                self._back = time.monotonic()
                self._away = False
                log.warning("the Redis of the classes is back")
            for code in list(self._unsent):
                self._send(code, self._unsent[code])
                self._unsent.pop(code, None)
            self._memory.tell(EVERYTHING)  # what was told in between was not heard
            while not self._stop.is_set() and not self._away:
                message = heard.get_message(timeout=TIMEOUT)
                if message is None:
                    connection.ping()  # one that hangs says nothing either
                elif message["channel"] == MOVED:
                    self._memory.tell(str(message["data"]))
                else:
                    code, __, place = str(message["data"]).partition(" ")
                    self._memory.point(code, place)

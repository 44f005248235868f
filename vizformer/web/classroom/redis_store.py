"""Rooms in a Redis that several servers share: VIZFORMER_REDIS_URL=redis://host:6379/0.

A room is a text that ends by itself when nobody puts it again; the answers to its question are a hash beside it.  Whatever
moves is published to all servers.  Redis may go away and come back empty: who leads a room puts it there again
(`Rooms.beat`).
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from vizformer.web.classroom.stores import EVERYTHING, StoreError

if TYPE_CHECKING:
    import redis

log = logging.getLogger("vizformer")

Kept = TypeVar("Kept")
ROOM, ANSWERS, MOVED, POINTED = "vizformer:room:", "vizformer:answers:", "vizformer:moved", "vizformer:pointed"
TIMEOUT = 2.0  # seconds that a command may take
AGAIN = 1.0  # seconds until a connection that was lost is tried again


class RedisStore(Generic[Kept]):
    """A store in Redis.

    Args:
        url: as redis-py reads it, such as redis://:password@host:6379/0.
        write: a room as a text.
        read: a room from its text.
        keeps: seconds for which a room stays when it is not put again.

    Raises:
        ImportError: the package redis is not installed.
        ValueError: the address is none.
    """

    def __init__(self, url: str, write: Callable[[Kept], str], read: Callable[[str], Kept], keeps: float) -> None:
        import redis

        self._redis = redis.Redis.from_url(
            url, decode_responses=True, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
        )
        self._url, self._write, self._read, self._keeps = url, write, read, keeps
        self._listeners: list[Callable[[str], None]] = []
        self._pointed: list[Callable[[str, str], None]] = []
        self._stop = threading.Event()

    def get(self, code: str) -> Kept | None:
        with _reached():
            found = self._redis.get(ROOM + code)
        return self._read(str(found)) if found is not None else None

    def put(self, code: str, room: Kept) -> None:
        with _reached():
            self._redis.set(ROOM + code, self._write(room), px=round(1000 * self._keeps))
            self._redis.pexpire(ANSWERS + code, round(1000 * self._keeps))

    def drop(self, code: str) -> None:
        with _reached():
            self._redis.delete(ROOM + code, ANSWERS + code)

    def codes(self) -> list[str]:
        with _reached():
            return [str(name).removeprefix(ROOM) for name in self._redis.scan_iter(ROOM + "*", count=1000)]

    def answer(self, code: str, voter: str, said: str) -> None:
        with _reached():
            self._redis.hset(ANSWERS + code, voter, said)
            self._redis.pexpire(ANSWERS + code, round(1000 * self._keeps))

    def answers(self, code: str) -> Mapping[str, str]:
        with _reached():
            found = self._redis.hgetall(ANSWERS + code)
        return {str(voter): str(said) for voter, said in dict(found).items()}

    def forget_answers(self, code: str) -> None:
        with _reached():
            self._redis.delete(ANSWERS + code)

    def tell(self, code: str) -> None:
        with _reached():
            self._redis.publish(MOVED, code)

    def listen(self, listener: Callable[[str], None]) -> None:
        self._listeners.append(listener)
        if len(self._listeners) == 1:
            threading.Thread(target=self._hear, name="classes of all servers", daemon=True).start()

    def point(self, code: str, place: str) -> None:
        with _reached():
            self._redis.publish(POINTED, f"{code} {place}")

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None:
        self._pointed.append(listener)

    def close(self) -> None:
        """Hears nothing any more."""
        self._stop.set()

    def _hear(self) -> None:
        """Calls the listeners for what any server tells, for as long as the store is there."""
        import redis

        while not self._stop.is_set():
            try:
                self._follow(redis.Redis.from_url(self._url, decode_responses=True, socket_connect_timeout=TIMEOUT))
            except redis.RedisError as lost:
                log.warning("the Redis of the classes cannot be reached: %s", type(lost).__name__)
                self._stop.wait(AGAIN)

    def _follow(self, connection: "redis.Redis") -> None:
        with connection, connection.pubsub(ignore_subscribe_messages=True) as heard:  # type: ignore[no-untyped-call]
            heard.subscribe(MOVED, POINTED)
            self._call(EVERYTHING)  # what was told in between was not heard
            while not self._stop.is_set():
                message = heard.get_message(timeout=TIMEOUT)
                if message is not None and message["channel"] == MOVED:
                    self._call(str(message["data"]))
                elif message is not None:
                    code, __, place = str(message["data"]).partition(" ")
                    for listener in self._pointed:
                        listener(code, place)

    def _call(self, code: str) -> None:
        for listener in self._listeners:
            with contextlib.suppress(StoreError):
                listener(code)


@contextlib.contextmanager
def _reached() -> Iterator[None]:
    import redis

    try:
        yield
    except redis.RedisError as lost:
        raise StoreError(type(lost).__name__) from lost

"""The rooms of this server's classes: in its own memory, or in the Redis that it shares with others."""

import asyncio
import logging
import os

from vizformer.web.classroom import rooms
from vizformer.web.classroom.pointing import Pointing
from vizformer.web.classroom.rooms import AWAY, BEAT, Room, Rooms
from vizformer.web.classroom.stores import MemoryStore, Store
from vizformer.web.classroom.waiting import Waiting
from vizformer.web.inside_streamlit import Runtime

log = logging.getLogger("vizformer")

REDIS_URL = "VIZFORMER_REDIS_URL"


def _is_there(session: str) -> bool:
    return Runtime.exists() and Runtime.instance().is_active_session(session)


def _store() -> Store[Room]:
    """Where this server keeps its rooms: in its own memory, or in the Redis that the environment names."""
    url = os.environ.get(REDIS_URL, "")
    if not url:
        return MemoryStore()
    from vizformer.web.classroom.redis_store import RedisStore

    return RedisStore(url, rooms.write, rooms.read, keeps=2 * AWAY)


def is_shared() -> bool:
    """Whether several servers share the classes."""
    return bool(os.environ.get(REDIS_URL, ""))


ROOMS = Rooms(_store(), _is_there)
WAITING, POINTING = Waiting(ROOMS), Pointing(ROOMS)


async def attend() -> None:
    """Notes which teachers are there, until it is cancelled."""
    while True:
        await asyncio.sleep(BEAT)
        try:
            await asyncio.to_thread(ROOMS.beat)
        except Exception:  # the next one comes all the same: without it all classes end
            log.exception("the classes could not be noted")

"""Folders of visitors: uploads, removed soon after their session ended, and trainings; all of them at the end.

Streamlit does not say that a session has ended.  A closed tab is one that is not connected; its state is kept for two
minutes, in which the tab may come back, and then until some visitor makes the server look.  So the server itself looks
at times, whether anybody visits or not, and removes the folders of sessions that have been away for longer.

All lie in one folder of this process, which is locked for as long as the process lives, however it ends.  One that
nobody has locked is what a killed server left behind.
"""

import asyncio
import atexit
import logging
import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from vizformer.web.inside_streamlit import Runtime, get_script_run_ctx

if sys.platform != "win32":  # which has no such locks: what a killed server leaves there stays
    import fcntl

PERIOD = 20.0  # seconds between two looks
GRACE = 120.0 + 2 * PERIOD  # Streamlit's two minutes, counted from a moment when the session was certainly there
_PREFIX = "vizformer-visitors-"
Made = TypeVar("Made")
_LOG = logging.getLogger(__name__)


def is_connected(session: str) -> bool:
    """Whether a tab shows this session; without a server (in a test, a script) nothing ever ends."""
    return not Runtime.exists() or Runtime.instance().is_active_session(session)


def current() -> str:
    """The session whose page is drawn now; "" outside of any."""
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.session_id


class Removal(Protocol):
    """A `weakref.finalize`: to be called once, by whoever comes first."""

    @property
    def alive(self) -> bool: ...

    def __call__(self) -> object: ...


class Watch:
    def __init__(
        self, connected: Callable[[str], bool] = is_connected, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connected, self._clock = connected, clock
        self._lock = threading.Lock()
        self._seen: dict[Removal, tuple[str, float]] = {}

    def add(self, session: str, remove: Removal) -> None:
        """`remove` is called when the session is over, unless it has been called before."""
        with self._lock:
            self._seen[remove] = session, self._clock()

    def look(self) -> None:
        """Calls what is due and forgets what has been called."""
        with self._lock:
            now = self._clock()
            for remove, (session, seen) in list(self._seen.items()):
                if not remove.alive:
                    del self._seen[remove]
                elif self._connected(session):
                    self._seen[remove] = session, now
                elif now - seen > GRACE:
                    del self._seen[remove]
                    remove()


WATCH = Watch()


async def attend(watch: Watch = WATCH, sleep: Callable[[float], object] = asyncio.sleep) -> None:
    """Looks until it is cancelled; files are removed beside the event loop, which serves the visitors."""
    await asyncio.to_thread(remove_left_behind)
    while True:
        await sleep(PERIOD)  # type: ignore[misc]
        try:
            await asyncio.to_thread(watch.look)
        except Exception:  # of this one look; the next ones still have to come
            _LOG.exception("Uploads could not be looked after")


_base: Path | None = None
_endings: list[Callable[[], object]] = []
_making = threading.Lock()


def new_folder() -> Path:
    """An empty folder that only this account can enter."""
    global _base
    with _making:
        if _base is None or not _base.is_dir():
            _base = _locked_folder()
            atexit.register(remove_all, os.getpid())
        return Path(tempfile.mkdtemp(dir=_base))  # mode 0700


def _locked_folder() -> Path:
    """Gets its name when it is locked, so that no other server finds it without."""
    made = Path(tempfile.mkdtemp(prefix="vizformer-"))
    if sys.platform != "win32":
        fcntl.flock(os.open(made, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)  # closed, and so unlocked, by the end
    return made.rename(made.with_name(_PREFIX + made.name.removeprefix("vizformer-")))


def before_the_end(end: Callable[[], object]) -> None:
    """`end` is called once, before the folders are removed: it ends what works in them."""
    with _making:
        _endings.append(end)


class OfTheServer(Generic[Made]):
    """A singleton of the server: made when it is first asked for, closed before the folders are removed.

    In a cache it could be forgotten while its processes ran on.
    """

    def __init__(self, make: Callable[[], Made], close: Callable[[Made], object] = lambda made: None) -> None:
        self._make, self._close = make, close
        self._lock, self._made = threading.Lock(), list[Made]()

    def __call__(self) -> Made:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
                before_the_end(self._end)
            return self._made[0]

    def _end(self) -> None:
        with self._lock:
            closing = self._made
            self._made = []
        for one in closing:
            self._close(one)


def remove_all(process: int | None = None) -> None:
    """Removes everything of this process; where `process` is given, only in that one, not in what was forked from it.

    The server calls it when it stops: a signal that ends it afterwards leaves no time for what Python does at the end.
    """
    if process not in (None, os.getpid()):
        return
    with _making:
        endings = [_endings.pop() for _ in range(len(_endings))]
    for end in endings:
        try:
            end()
        except Exception:  # the others still have to end
            _LOG.exception("Something could not be ended")
    if _base is not None:
        shutil.rmtree(_base, ignore_errors=True)


def remove_left_behind(places: Iterable[Path] | None = None) -> None:
    """Removes this account's folders of servers that are no more."""
    if sys.platform == "win32":
        return
    for place in places if places is not None else Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or locked, or gone
            found = os.lstat(place)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(handle)


def stamp_of_files(path: Path, beside: Collection[str] = ()) -> str:
    """Changes when a file of the model is written, replaced, added or taken away.

    Args:
        path: of a model's folder, or of one file of weights.
        beside: names of files that are read with a single file of weights: other files there are other models.
    """
    digest = blake2b(digest_size=8)
    try:
        alone = path.is_file()
        here = path.parent if alone else path
        files = [path.name, *(name for name in beside if (here / name).exists())] if alone else os.listdir(path)
        for name in sorted(files):
            about = os.lstat(here / name) if not os.path.exists(here / name) else os.stat(here / name)
            digest.update(f"{name!r} {about.st_ino} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:  # files come and go just now: a stamp of its own, so that nothing is taken for settled
        digest.update(repr(error).encode())
    return digest.hexdigest()

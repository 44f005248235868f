"""Who runs next: a few runs at once, and the visitors in turn.

One interpreter lock serves all readers.  Forty runs that share it all end late, and each makes the others slower; one after
the other, every one ends as early as it can.  A run that takes long does not hold the others up: after a while it no longer
counts, as long as there are few such runs.  What is measured: tests/benchmarks/README.md, classroom.

A visitor (a browser, however many tabs it has) has one place.  Where several wait, the next turn goes to an address with
the fewest runs, and there to the visitor whose last turn ended longest ago.  Nothing is refused.  A whole school may
have one address: it can have all places for as long as nobody else wants one.  Sessions of one address that send no cookie
may be one program: they count as one visitor while a browser with a cookie waits there.
"""

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from itertools import count

from vizformer.web.inside_streamlit import Runtime, decode_xsrf_token_string, get_script_run_ctx

# The network that an internet address belongs to.


def network(address: str | None) -> str:
    """The address itself (IPv4), or its /64 prefix (IPv6), which one visitor may have; empty if local or unknown."""
    try:
        found = ip_address(address or "")
    except ValueError:  # whatever a proxy tells
        return ""
    found = getattr(found, "ipv4_mapped", None) or found
    if found.is_loopback:
        return ""
    return str(found) if found.version == 4 else str(ip_network((int(found) >> 64 << 64, 64)))


AT_ONCE = 2  # torch gives the interpreter back while it multiplies
LONG = 0.5  # seconds; most runs take a tenth of it
MOST = 8  # runs of one address that go on, long ones too: each holds what it computes
SLICE = 2.0  # seconds after which work that can pause lets others have their turn
LONGEST_NAME = 64  # characters: a visitor can make a cookie, or an address, of many thousands, and names are kept
_REMEMBERED = 5000  # visitors whose last turn is known
_COOKIE = "_streamlit_xsrf"  # Streamlit gives one to each browser
_numbers = count()
_held = threading.local()  # whose turns this thread has


@dataclass(frozen=True)
class Visitor:
    """Who asks: a browser (or a session, `anonymous`, of one that sent no cookie), and the address that it comes from."""

    name: str
    address: str = ""
    anonymous: bool = False


def visitor() -> Visitor:
    """The visitor whose script runs in this thread; outside of scripts a new one each time."""
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return Visitor(f"thread {next(_numbers)}")
    client = Runtime.instance().get_client(context.session_id) if Runtime.exists() else None
    told = getattr(client, "client_context", None)
    if told is None:
        return Visitor(context.session_id)
    token = None
    with suppress(ValueError):  # whatever a visitor sends
        token, _ = decode_xsrf_token_string(told.cookies.get(_COOKIE, ""))
    name = token.hex()[:LONGEST_NAME] if token else context.session_id
    return Visitor(name, network(told.remote_ip), anonymous=not token)


def _together(who: Visitor) -> str:
    return f"anonymous {who.address}" if who.anonymous else who.name


class _Turn:
    """A turn that is waited for, or had: `begun` has run before and waits to go on, `watching` waits for a thread."""

    def __init__(self, who: Visitor, lock: threading.Lock) -> None:
        self.who, self.number, self.called = who, next(_numbers), threading.Condition(lock)
        self.since, self.begun, self.watching = 0.0, False, False


class Turns:
    """Turns of threads: `at_once` of them, of `most` runs an address, those longer than `long` seconds not counted."""

    def __init__(
        self,
        at_once: int = AT_ONCE,
        long: float = LONG,
        most: int = MOST,
        begun: int = 0,
        roomy: Callable[[], bool] = lambda: True,
    ) -> None:
        self._at_once, self._long, self._most, self._begun, self._roomy = at_once, long, most, begun, roomy
        self._lock = threading.Lock()
        self._waiting: list[_Turn] = []
        self._running: list[_Turn] = []
        self._ended: OrderedDict[str, float] = OrderedDict()  # visitor -> when their last turn ended
        self._mine = threading.local()

    @contextmanager
    def turn(self, who: Visitor | None = None) -> Iterator[None]:
        """Waits until it is this thread's turn; a thread that has one keeps it."""
        if getattr(self._mine, "turn", None) is not None:
            yield
            return
        turn = _Turn(who or visitor(), self._lock)
        with self._lock:
            self._wait(turn)
        self._mine.turn = turn
        held: list[Turns] = _held.__dict__.setdefault("turns", [])
        held.append(self)
        try:
            yield
        finally:
            held.remove(self)
            self._mine.turn = None
            with self._lock:
                self._end(turn)

    def offer(self) -> None:
        """Lets others have their turn, where this thread has had its own for a while; it goes on in its next one."""
        turn = getattr(self._mine, "turn", None)
        if turn is None or time.monotonic() - turn.since < SLICE:
            return
        with self._lock:
            if self._waiting:
                self._end(turn)
                turn.begun = True
                self._wait(turn)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The run of this thread only waits for another thread's work: meanwhile it does not count."""
        turn = getattr(self._mine, "turn", None)
        if turn is None:
            yield
            return
        with self._lock:
            before, turn.watching = turn.watching, True
            self._wake()
        try:
            yield
        finally:
            with self._lock:
                turn.watching = before

    def idle(self, seconds: float = 0.0) -> bool:
        """Whether no run goes on but those that are `watching`, none waits, and none has ended in the last `seconds`."""
        with self._lock:
            ended = next(reversed(self._ended.values()), -math.inf)
            quiet = time.monotonic() - ended >= seconds
            return quiet and all(turn.watching for turn in self._running) and not self._waiting

    # --- under the lock -----------------------------------------------------------------------------------------------

    def _wait(self, turn: _Turn) -> None:
        self._waiting.append(turn)
        try:
            while self._next() is not turn:
                self._wake()
                turn.called.wait(self._until_some_are_long() if turn is self._first(self._waiting) else None)
        finally:
            self._waiting.remove(turn)
        turn.since = time.monotonic()
        self._running.append(turn)
        self._wake()

    def _end(self, turn: _Turn) -> None:
        self._running.remove(turn)
        for name in {turn.who.name, _together(turn.who)}:
            self._ended[name] = time.monotonic()
            self._ended.move_to_end(name)
        while len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self._wake()

    def _wake(self) -> None:
        """Wakes who is next; where nobody can begin now, who is first and so looks at the time."""
        if self._waiting:
            (self._next() or self._first(self._waiting)).called.notify()

    def _names(self) -> Callable[[Visitor], str]:
        """Names visitors for counting: all of an address without a cookie are one, while one with a cookie waits there."""
        known = {turn.who.address for turn in self._waiting if not turn.who.anonymous}
        return lambda who: _together(who) if who.address in known else who.name

    def _first(self, waiting: list[_Turn]) -> _Turn:
        name = self._names()

        def rank(turn: _Turn) -> tuple[int, float, int]:
            runs = sum(other.who.address == turn.who.address for other in self._counted())
            return runs, self._ended.get(name(turn.who), 0.0), turn.number

        return min(waiting, key=rank)

    def _next(self) -> _Turn | None:
        counted = self._counted()
        if len(counted) >= self._at_once:
            return None
        busy = [turn for turn in self._running if not turn.watching]
        name = self._names()
        names = {name(turn.who) for turn in counted}
        pausing = sum(turn.begun for turn in self._waiting)
        may_begin = not pausing or (pausing <= self._begun and self._roomy())
        ready = [
            turn
            for turn in self._waiting
            if name(turn.who) not in names and (turn.begun or may_begin) and self._may_hold_more(turn.who.address, busy)
        ]
        return self._first(ready) if ready else None

    def _may_hold_more(self, address: str, busy: list[_Turn]) -> bool:
        theirs = sum(turn.who.address == address for turn in busy)
        return not theirs or (theirs < self._most and len(busy) < 2 * self._most)

    def _counted(self) -> list[_Turn]:
        now = time.monotonic()
        return [turn for turn in self._running if not turn.watching and now - turn.since < self._long]

    def _until_some_are_long(self) -> float | None:
        """Seconds until the next run is long; None where there is none."""
        now = time.monotonic()
        left = min((self._long - (now - turn.since) for turn in self._counted()), default=math.inf)
        return left if left < math.inf else None


TURNS = Turns()


@contextmanager
def watching() -> Iterator[None]:
    """This thread only waits for what another one computes, which may need one of its places to go on."""
    with ExitStack() as stack:
        for turns in _held.__dict__.get("turns", ()):
            stack.enter_context(turns.watching())
        yield


# Files that a visitor takes away: Streamlit makes each in a thread of its own, after the run that offered it.

MOST_FILES = 4  # of one visitor that are made or wait; there are a few threads for those of all
_files_lock = threading.Lock()
_files: Counter[str] = Counter()  # visitor -> files that are made or wait


class TooManyFilesError(Exception):
    """Raised where one visitor asks for more files at once than a browser's presses do."""


def in_turn(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """`make` to be called later, by another thread: it waits for a turn of the visitor whose script runs in this one.

    What is returned raises TooManyFilesError where `MOST_FILES` of this visitor are made or wait already.
    """
    who = visitor()

    def made() -> bytes:
        name = _together(who)
        with _files_lock:
            if _files[name] >= MOST_FILES:
                raise TooManyFilesError
            _files[name] += 1
        try:
            with TURNS.turn(who):
                return make()
        finally:
            with _files_lock:
                _files[name] -= 1
                if not _files[name]:
                    del _files[name]

    return made

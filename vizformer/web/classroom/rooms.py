"""Rooms: where a teacher is and what the class is asked, for those who know the room's code.

    rooms = Rooms(MemoryStore(), is_there=...)
    code, secret = rooms.open(session)
    rooms.move(code, secret, "qkv", {"head": "3"})      # by the teacher, who alone has the secret
    rooms.look(code)                                    # by anybody who has the code: Place("qkv", {"head": "3"}, 1)
    rooms.ask(code, secret, "masks/leak")               # a question of a lesson, to the whole class
    rooms.answer(code, "masks/leak", voter, "2")        # by a student, as often as wanted: the last answer counts
    rooms.answers(code, secret)                         # {"2": 17, "0": 9}, for the teacher
    rooms.follow(code, session, "masks/kinds")          # a student is there
    rooms.note(code, "wrong masks/leak all")            # one student's first answer, and its misconception
    rooms.counts(code, secret)                          # {"there masks/kinds": 23, "wrong masks/leak all": 9}

A room holds the teacher's page and link, and of those who look nothing but their answers to the question that is open,
each under a name that means nothing elsewhere; of their first answers it holds counts alone.  It ends when the teacher says
so, when the teacher has been away for `AWAY` seconds, and after `LONGEST` seconds in any case.
"""

import hmac
import json
import logging
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TypeVar

from vizformer.web.classroom.stores import EVERYTHING, Store, StoreError

log = logging.getLogger("vizformer")

Kind = TypeVar("Kind", "Place", "Room")
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another one on a blackboard
LENGTH = 6  # 32**6 codes: a thousand million
LONGEST = 4 * 3600.0  # seconds
AWAY = 60.0  # seconds without the teacher: a reload or a lost network, not a break
BEAT = 10.0  # seconds between two notes that the teacher is there
MOST = 1000  # rooms at a time, of 40 KB at most each
MOST_OF_ONE = 100  # of them from one address, which all classes of a school may have
MOST_CHARACTERS = 12_000  # of a link; what is longer is not passed on
MOST_ANSWERS, LONGEST_ANSWER = 500, 40  # of a question; characters
MOST_COUNTS = 2000  # of a room on a server, each up to `MOST_ANSWERS`: three times as many as the course has
_PLACE = r"[a-z_]{0,40}/[\w-]{0,40}"
_NOTED = re.compile(rf"(right|wrong) {_PLACE}( [\w-]{{0,40}})?", re.ASCII)


class NoRoomError(LookupError):
    """There is no room of this code, or it is not this teacher's."""


class TooManyRoomsError(Exception):
    """Raised where the number of rooms is at its limit."""


@dataclass(frozen=True)
class Place:
    page: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    version: int = 0  # grows with every move, and with every question
    question: str = ""  # "lesson/name" of the question that the class is asked; empty: none
    shown: bool = False  # whether the teacher has shown its answer
    asked: int = field(default=0, compare=False)  # the version with which it was asked


@dataclass(frozen=True)
class Room:
    """A room as it is kept; times by the clock, in seconds."""

    secret: str
    teacher: str
    opened: float
    seen: float
    place: Place = Place()


class Rooms:
    """All rooms; `is_there` says whether a session still has its browser. Of a room that is over, or with a secret not its
    own, methods raise `NoRoomError`. Servers that share a store have the same clock.
    """

    def __init__(
        self, store: Store[Room], is_there: Callable[[str], bool], clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._is_there, self._clock = store, is_there, clock
        self._lock = threading.Lock()  # of what is in memory here: nobody ever waits for the store below it
        self._led: dict[str, Room] = {}  # the rooms whose teachers are on this server
        self._addresses: dict[str, str] = {}  # from where those were opened
        self._following: dict[
            str, tuple[str, str]
        ] = {}  # which room each session of this server follows, and where it is
        self._noted: dict[str, Counter[str]] = {}  # the first answers of the sessions of this server
        store.listen(self._heard)

    def open(self, teacher: str, address: str = "") -> tuple[str, str]:
        """A new room, in the place of the one that this teacher leads already: its code and the teacher's secret.

        Raises:
            TooManyRoomsError: on this server, or from this address.
            StoreError: the store is away.
        """
        there, now = set(self._store.codes()), self._clock()
        with self._lock:
            before = {code for code, room in self._led.items() if room.teacher == teacher}
            there = there.union(self._led) - before
            of_one = sum(self._addresses[code] == address for code in self._led.keys() - before) if address else 0
            if len(there) >= MOST or of_one >= MOST_OF_ONE:
                raise TooManyRoomsError
            code = ""
            while not code or code in there:
                code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            room = self._led[code] = Room(secrets.token_urlsafe(24), teacher, opened=now, seen=now)
            self._addresses[code] = address
        for one in before:
            self._drop(one)
        self._write(code)
        return code, room.secret

    def take(self, code: str, secret: str, teacher: str) -> bool:
        """Gives the room to another session of its teacher, whose page was loaded again; whether it has it now.

        A session that still has its browser keeps the room: a second tab does not take it away.
        """

        def taken(room: Room) -> Room:
            is_led = room.teacher != teacher and self._is_there(room.teacher)
            return room if is_led else replace(room, teacher=teacher, seen=self._clock())

        try:
            return self._change(code, secret, taken)
        except NoRoomError:
            return False

    def move(self, code: str, secret: str, page: str, parameters: Mapping[str, str]) -> None:
        """Takes the room to a place; where it is there already, nothing happens.

        Another page takes back the question that was asked on the page before.
        """
        if sum(len(name) + len(value) for name, value in parameters.items()) > MOST_CHARACTERS:
            return

        def moved(room: Room) -> Room:
            before = room.place
            if (page, parameters) == (before.page, before.parameters) and before.version > 0:
                return room
            wanted = replace(before, page=page, parameters=dict(parameters), version=before.version + 1)
            return replace(room, place=wanted if page == before.page else replace(wanted, question="", shown=False))

        if self._change(code, secret, moved):
            self._store.tell(code)

    def ask(self, code: str, secret: str, question: str) -> None:
        """Asks the class a question; the empty one takes back what was asked."""

        def asked(room: Room) -> Room:
            version = room.place.version + 1
            place = replace(room.place, question=question, shown=False, version=version, asked=version)
            return replace(room, place=place)

        self._change(code, secret, asked)
        self._store.forget_answers(code)
        self._store.tell(code)

    def show(self, code: str, secret: str) -> None:
        """Shows the class the answer to what it was asked: nobody answers any more."""
        self._change(
            code,
            secret,
            lambda room: replace(room, place=replace(room.place, shown=True, version=room.place.version + 1)),
        )
        self._store.tell(code)

    def _change(self, code: str, secret: str, change: Callable[[Room], Room]) -> bool:
        """Changes a teacher's room and writes it down; whether there was anything to change (else: the same room)."""
        found = self._own(code, secret)
        with self._lock:
            before = max(found, self._led.get(code, found), key=_age)
            room = change(before)
            if room is before:
                return False
            self._led[code] = room
            self._addresses.setdefault(code, "")
        self._write(code)
        return True

    def answer(self, code: str, question: str, voter: str, said: str) -> bool:
        """Takes a student's answer; whether the question is (still) open."""
        place = self.look(code)
        if place.question != question or place.shown or len(said) > LONGEST_ANSWER:
            return False
        known = self._answers(code, place)
        if voter not in known and len(known) >= MOST_ANSWERS:
            return False
        self._store.answer(code, f"{place.asked}:{voter}", said)
        return True

    def answers(self, code: str, secret: str) -> Counter[str]:
        """The number of times that each answer was given; for the teacher."""
        return Counter(self._answers(code, self._own(code, secret).place).values())

    def _answers(self, code: str, place: Place) -> dict[str, str]:
        """What each voter has said to what is asked now (another server may still send answers to what was before)."""
        begins = f"{place.asked}:"
        said = self._store.answers(code)
        return {voter.removeprefix(begins): one for voter, one in said.items() if voter.startswith(begins)}

    def point(self, code: str, secret: str, place: str) -> None:
        """Tells where the teacher's pointer is; nothing of it is kept."""
        self._own(code, secret)
        self._store.point(code, place)

    def close(self, code: str, secret: str) -> None:
        self._own(code, secret)
        self._drop(code)

    def look(self, code: str) -> Place:
        if (room := self._fresh(code)) is None:
            raise NoRoomError("there is no such room")
        return room.place

    def follow(self, code: str, session: str, place: str = "/") -> None:
        """Counts a session of this server as one that follows a room, at a place; of no room where the code is empty."""
        if code:
            self._following[session] = code, place if re.fullmatch(_PLACE, place, re.ASCII) else "/"
        else:
            self._following.pop(session, None)

    def followers(self, code: str) -> int:
        """The number of browsers that follow a room."""
        self.look(code)
        return sum(n for name, n in self._count(code).items() if name.startswith("there "))

    def note(self, code: str, noted: str) -> None:
        """Counts a student's first answer: "right lesson/question" or "wrong lesson/question misconception"."""
        self.look(code)
        if not _NOTED.fullmatch(noted):
            return
        with self._lock:
            counts = self._noted.setdefault(code, Counter())
            if counts[noted] < MOST_ANSWERS and (noted in counts or len(counts) < MOST_COUNTS):
                counts[noted] += 1

    def counts(self, code: str, secret: str) -> Counter[str]:
        """How many are "there lesson/part", and how many first answers of each kind there are; for the teacher."""
        self._own(code, secret)
        return self._count(code)

    def _count(self, code: str) -> Counter[str]:
        there = list(self._following.items())
        here = Counter(f"there {at}" for session, (one, at) in there if one == code and self._is_there(session))
        with self._lock:
            here.update(self._noted.get(code, {}))
        return self._store.count(code, here)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Has `listener` called with the code of every room that moves or ends, from whatever thread."""
        self._store.listen(listener)

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None:
        """Has `listener` called with the code of a room and the place of its pointer, from whatever thread."""
        self._store.listen_to_pointers(listener)

    def _heard(self, code: str) -> None:
        if code == EVERYTHING:  # the store is back: the other servers have not heard what happened here meanwhile
            self.beat()
            for one in list(self._led):
                self._store.tell(one)

    def beat(self) -> None:
        """Notes which teachers are there, and how many follow; to be called every `BEAT` seconds.

        A store that has lost a room (it was killed and started again) gets it back from here.
        """
        for code, known in list(self._led.items()):
            try:
                self._note(code, known)
            except Exception:  # of one room: the teachers of the others are there all the same
                log.exception("a class could not be noted")
        for session in [one for one in list(self._following) if not self._is_there(one)]:
            self._following.pop(session, None)
        for code in {code for code, __ in self._following.values()}.union(self._noted):
            try:
                self.followers(code)
            except NoRoomError:
                self._noted.pop(code, None)
            except StoreError:
                pass

    def _note(self, code: str, known: Room) -> None:
        found = self._store.get(code)
        if found is not None and (found.secret, found.teacher) != (known.secret, known.teacher):
            self._leave(code)  # another server leads it now
            return
        with self._lock:
            if code not in self._led:
                return  # it has ended meanwhile
            room = max(found or known, self._led[code], key=_age)
            if is_here := self._is_there(room.teacher):
                room = self._led[code] = replace(room, seen=self._clock())
        if self._is_over(room):
            self._drop(code)
        elif is_here:
            self._write(code)

    def _write(self, code: str) -> None:
        """Writes down a room that is led here; what was changed meanwhile too, so that the newest is written last."""
        written = None
        while (room := self._led.get(code)) is not None and room is not written:
            self._store.put(code, room)
            written = room

    def _leave(self, code: str) -> None:
        with self._lock:
            self._led.pop(code, None)
            self._addresses.pop(code, None)

    def _drop(self, code: str) -> None:
        """Ends a room, and tells those who follow."""
        self._leave(code)
        self._noted.pop(code, None)
        self._store.drop(code)
        self._store.tell(code)

    def _own(self, code: str, secret: str) -> Room:
        room = self._fresh(code)
        if room is None or not hmac.compare_digest(room.secret.encode(), secret.encode(errors="replace")):
            raise NoRoomError("there is no such room of this teacher")
        return room

    def _fresh(self, code: str) -> Room | None:
        """The room, unless its time is over; one that is led here is never older than what is known here."""
        room, known = self._store.get(code), self._led.get(code)
        if known is not None and self._is_there(known.teacher) and _is_behind(room, known):
            room = known  # the store was away, or was started again, just now
            self._write(code)
        if room is not None and self._is_over(room):
            if code in self._led:
                self._drop(code)
            return None
        return room

    def _is_over(self, room: Room) -> bool:
        """Whether the time of a room is over; while the store is away, nothing is known of a teacher on another server."""
        now = self._clock()
        seen = now if self._is_there(room.teacher) else max(room.seen, now - self._store.reached_for)
        return now - room.opened > LONGEST or now - seen > AWAY


def _age(room: Room) -> tuple[int, float]:
    """A sort key that grows with every change of a room."""
    return room.place.version, room.seen


def _is_behind(found: Room | None, known: Room) -> bool:
    """Whether a store has lost a room, or has an older place of it."""
    if found is None:
        return True
    return (found.secret, found.teacher) == (known.secret, known.teacher) and found.place.version < known.place.version


def write(room: Room) -> str:
    return json.dumps(asdict(room))


def read(text: str) -> Room:
    """A room from its text, else a ValueError; what another version has written besides is left out."""
    try:
        found = json.loads(text)
        return _made(Room, {**found, "place": _made(Place, found["place"])})
    except (TypeError, KeyError) as wrong:
        raise ValueError("no room") from wrong


def _made(kind: type[Kind], found: Mapping[str, object]) -> Kind:
    return kind(**{one.name: found[one.name] for one in fields(kind) if one.name in found})  # type: ignore[arg-type]


def tidy(code: str) -> str:
    """A code as somebody typed it, as it is kept; empty where it can be none."""
    found = "".join(code.upper().split())[: LENGTH + 1]
    return found if len(found) == LENGTH and set(found) <= set(LETTERS) else ""

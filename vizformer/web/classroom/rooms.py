"""Rooms: where a teacher is and what the class is asked, for those who know the room's code.

    rooms = Rooms(MemoryStore(), is_there=...)
    code, secret = rooms.open(session)
    rooms.move(code, secret, "qkv", {"head": "3"})      # by the teacher, who alone has the secret
    rooms.look(code)                                    # by anybody who has the code: Place("qkv", {"head": "3"}, 1)
    rooms.ask(code, secret, "masks/leak")               # a question of a lesson, to the whole class
    rooms.answer(code, "masks/leak", voter, "2")        # by a student, as often as wanted: the last answer counts
    rooms.answers(code, secret)                         # {"2": 17, "0": 9}, for the teacher

A room holds the teacher's page and link, and of those who look nothing but their answers to the question that is open,
each under a name that means nothing elsewhere.  It ends when the teacher says so, when the teacher has been away for `AWAY`
seconds, and after `LONGEST` seconds in any case.
"""

import hmac
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from vizformer.web.classroom.stores import EVERYTHING, Store

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another one on a blackboard
LENGTH = 6  # 32**6 codes: a thousand million
LONGEST = 4 * 3600.0  # seconds
AWAY = 60.0  # seconds without the teacher: a reload or a lost network, not a break
BEAT = 10.0  # seconds between two notes that the teacher is there
MOST = 100  # rooms at a time
MOST_CHARACTERS = 12_000  # of a link; what is longer is not passed on
MOST_ANSWERS, LONGEST_ANSWER = 500, 40  # of a question; characters


class NoRoomError(LookupError):
    """There is no room of this code, or it is not this teacher's."""


@dataclass(frozen=True)
class Place:
    """Where a teacher is.

    Attributes:
        page: as its address calls it.
        parameters: of its link.
        version: grows with every move, and with every question.
        question: "lesson/name" of the question that the class is asked; empty: none.
        shown: whether the teacher has shown its answer.
    """

    page: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    version: int = 0
    question: str = ""
    shown: bool = False


@dataclass(frozen=True)
class Room:
    """A room as it is kept.

    Attributes:
        secret: what the teacher's browser alone knows.
        teacher: the session that leads it.
        opened: by the clock, seconds.
        seen: when the teacher was there last, by the clock, seconds.
        place: where the teacher is.
    """

    secret: str
    teacher: str
    opened: float
    seen: float
    place: Place = Place()


class Rooms:
    """All rooms.

    Args:
        store: where they are kept.
        is_there: whether a session still has its browser, on this server.
        clock: seconds; of all servers the same where they share a store.
    """

    def __init__(
        self,
        store: Store[Room],
        is_there: Callable[[str], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._is_there, self._clock = store, is_there, clock
        self._lock = threading.Lock()
        self._led: dict[str, Room] = {}  # the rooms whose teachers are on this server
        store.listen(self._heard)

    def open(self, teacher: str) -> tuple[str, str]:
        """A new room: its code and the teacher's secret.

        Raises:
            NoRoomError: there are too many.
        """
        with self._lock:
            codes = self._store.codes()
            if len(codes) >= MOST and sum(self._fresh(code) is not None for code in codes) >= MOST:
                raise NoRoomError("there are too many rooms")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            while self._store.get(code) is not None:
                code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            now = self._clock()
            room = Room(secrets.token_urlsafe(24), teacher, opened=now, seen=now)
            self._put(code, room)
        return code, room.secret

    def take(self, code: str, secret: str, teacher: str) -> bool:
        """Gives the room to another session of its teacher, whose page was loaded again; whether it has it now.

        A session that still has its browser keeps the room: a second tab does not take it away.
        """
        with self._lock:
            try:
                room = self._own(code, secret)
            except NoRoomError:
                return False
            if room.teacher != teacher and self._is_there(room.teacher):
                return False
            self._put(code, replace(room, teacher=teacher, seen=self._clock()))
            return True

    def move(self, code: str, secret: str, page: str, parameters: Mapping[str, str]) -> None:
        """Takes the room to a place; where it is there already, nothing happens.

        Another page takes back the question that was asked on the page before.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            room = self._own(code, secret)
            before = room.place
            wanted = replace(before, page=page, parameters=dict(parameters), version=before.version + 1)
            if page != before.page:
                wanted = replace(wanted, question="", shown=False)
            same = (page, wanted.parameters) == (before.page, before.parameters) and before.version > 0
            if same or sum(len(name) + len(value) for name, value in parameters.items()) > MOST_CHARACTERS:
                return
            self._put(code, replace(room, place=wanted))
        self._store.tell(code)

    def ask(self, code: str, secret: str, question: str) -> None:
        """Asks the class a question; the empty one takes back what was asked.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        self._question(code, secret, question, shown=False)

    def show(self, code: str, secret: str) -> None:
        """Shows the class the answer to what it was asked: nobody answers any more.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        self._question(code, secret, None, shown=True)

    def _question(self, code: str, secret: str, question: str | None, *, shown: bool) -> None:
        """Sets what is asked (None: what is asked already), and whether its answer is shown."""
        with self._lock:
            room = self._own(code, secret)
            if question is not None:
                self._store.forget_answers(code)
            else:
                question = room.place.question
            place = replace(room.place, question=question, shown=shown, version=room.place.version + 1)
            self._put(code, replace(room, place=place))
        self._store.tell(code)

    def answer(self, code: str, question: str, voter: str, said: str) -> bool:
        """Takes a student's answer; whether the question is (still) open.

        Raises:
            NoRoomError: there is no such room, or it is over.
        """
        place = self.look(code)
        if place.question != question or place.shown or len(said) > LONGEST_ANSWER:
            return False
        with self._lock:
            known = self._store.answers(code)
            if voter not in known and len(known) >= MOST_ANSWERS:
                return False
            self._store.answer(code, voter, said)
        return True

    def answers(self, code: str, secret: str) -> Counter[str]:
        """How often each answer was given, for the teacher.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            self._own(code, secret)
            return Counter(self._store.answers(code).values())

    def point(self, code: str, secret: str, place: str) -> None:
        """Tells where the teacher's pointer is; nothing of it is kept.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            self._own(code, secret)
        self._store.point(code, place)

    def close(self, code: str, secret: str) -> None:
        """Ends a room.

        Raises:
            NoRoomError: the room is over, or the secret is not its own.
        """
        with self._lock:
            self._own(code, secret)
            self._drop(code)
        self._store.tell(code)

    def look(self, code: str) -> Place:
        """Where the teacher is.

        Raises:
            NoRoomError: there is no such room, or it is over.
        """
        with self._lock:
            room = self._fresh(code)
        if room is None:
            raise NoRoomError("there is no such room")
        return room.place

    def listen(self, listener: Callable[[str], None]) -> None:
        """Has `listener` called with the code of every room that moves or ends, from whatever thread."""
        self._store.listen(listener)

    def listen_to_pointers(self, listener: Callable[[str, str], None]) -> None:
        """Has `listener` called with the code of a room and the place of its pointer, from whatever thread."""
        self._store.listen_to_pointers(listener)

    def _heard(self, code: str) -> None:
        if code == EVERYTHING:
            self.beat()

    def beat(self) -> None:
        """Notes which teachers are there; to be called every `BEAT` seconds.

        A store that has lost a room (it was killed and started again) gets it back from here.
        """
        with self._lock:
            for code, known in list(self._led.items()):
                room, now = self._store.get(code), self._clock()
                if room is not None and (room.secret, room.teacher) != (known.secret, known.teacher):
                    del self._led[code]  # another server leads it now
                elif now - known.opened > LONGEST or now - known.seen > AWAY:
                    self._drop(code)
                elif self._is_there(known.teacher):
                    self._put(code, replace(room or known, seen=now))

    def _put(self, code: str, room: Room) -> None:
        self._led[code] = room
        self._store.put(code, room)

    def _drop(self, code: str) -> None:
        self._led.pop(code, None)
        self._store.drop(code)

    def _own(self, code: str, secret: str) -> Room:
        room = self._fresh(code)
        if room is None or not hmac.compare_digest(room.secret.encode(), secret.encode()):
            raise NoRoomError("there is no such room of this teacher")
        return room

    def _fresh(self, code: str) -> Room | None:
        """The room, unless its time is over; one that is led here is there also where the store has lost it."""
        room, now = self._store.get(code), self._clock()
        if room is None and (known := self._led.get(code)) is not None and self._is_there(known.teacher):
            room = known  # the store has lost it: it was started again just now
            self._put(code, room)
        if room is not None and (now - room.opened > LONGEST or now - room.seen > AWAY):
            self._drop(code)
            return None
        return room


def write(room: Room) -> str:
    """A room as a text."""
    return json.dumps(asdict(room))


def read(text: str) -> Room:
    """A room from its text."""
    found = json.loads(text)
    return Room(**{**found, "place": Place(**found["place"])})


def tidy(code: str) -> str:
    """A code as somebody typed it, as it is kept; empty where it can be none."""
    found = "".join(code.upper().split())[: LENGTH + 1]
    return found if len(found) == LENGTH and set(found) <= set(LETTERS) else ""

"""Which sessions read which model from elsewhere: its memory is given back soon after the last one has left.

A closed tab is a session that is not connected.  It may come back, after a reload or a short break of the network, so that a
model waits for its readers a few seconds.  Bundled models stay: they are small, and every visit begins with one.
"""

import threading
import time
from collections.abc import Callable

from vizformer.web.catalogue import session_folders
from vizformer.web.link.model_ref import ModelRef

PERIOD = 2.0  # seconds between two looks
GRACE = 5.0  # seconds that a model waits; with a look more these are less than ten
LATE = 600.0  # seconds in which the reading of weights may still come to its end, though nobody waits for it


class Readers:
    def __init__(
        self,
        connected: Callable[[str], bool] = session_folders.is_connected,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connected, self._clock = connected, clock
        self._lock = threading.Lock()
        self._sessions: dict[ModelRef, set[str]] = {}
        self._seen: dict[ModelRef, float] = {}  # when somebody was last there

    def add(self, session: str, model: ModelRef) -> None:
        """A session looks at a model; one that no session asks for, "", is nobody's."""
        if session and model.is_from_elsewhere:
            with self._lock:
                self._sessions.setdefault(model, set()).add(session)
                self._seen[model] = self._clock()

    def left(self) -> list[ModelRef]:
        """The models whose readers have all been away for `GRACE`; as often as it is asked, for as long as `LATE`."""
        with self._lock:
            now, found = self._clock(), []
            for model, sessions in list(self._sessions.items()):
                here = {session for session in sessions if self._connected(session)}
                if here:
                    self._sessions[model], self._seen[model] = here, now
                elif now - self._seen[model] > LATE:
                    del self._sessions[model], self._seen[model]
                elif now - self._seen[model] >= GRACE:
                    found.append(model)
            return found


READERS = Readers()

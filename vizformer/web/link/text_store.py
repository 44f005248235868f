"""Texts that no link can carry: they stay on this server for a while, and the link names them.

    name = KEPT.keep(text)        # 22 letters, which nobody can guess
    KEPT.text(name)               # the text, or None when it is gone

Bounded by bytes and by time: the text that was used least recently is dropped first.  A worker has its own, and a browser
stays with its worker.
"""

import base64
import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_BYTES = 8 * 2**20  # of all of them, in UTF-8
HOURS = 2  # after they were last looked at
NAME = 22  # letters of a name


class KeptTexts:
    """Texts by name.  Safe to use from many threads."""

    def __init__(self, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes, self._clock = most_bytes, clock
        self._secret = secrets.token_bytes(32)  # whoever knows a text does not know its name
        self._lock = threading.Lock()
        self._texts: OrderedDict[str, tuple[bytes, float]] = OrderedDict()  # the one looked at last is the last
        self._bytes = 0

    def keep(self, text: str) -> str:
        """The name of a text, the same one each time; it is kept from now on."""
        content = text.encode(errors="replace")
        digest = hashlib.blake2b(content, key=self._secret, digest_size=16).digest()
        name = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        with self._lock:
            self._drop(name)
            self._texts[name] = content, self._clock()
            self._bytes += len(content)
            self._forget()
        return name

    def text(self, name: str) -> str | None:
        """The text of a name, kept for longer now; None where there is none (any more)."""
        with self._lock:
            self._forget()
            if name not in self._texts:
                return None
            content = self._texts[name][0]
            self._texts[name] = content, self._clock()
            self._texts.move_to_end(name)
        return content.decode()

    def _forget(self) -> None:
        """Drops what is too old, and what there is no room for."""
        now = self._clock()
        while self._texts:
            name, (__, since) = next(iter(self._texts.items()))
            if now - since <= 3600 * HOURS and (self._bytes <= self._most_bytes or len(self._texts) == 1):
                return
            self._drop(name)

    def _drop(self, name: str) -> None:
        content, __ = self._texts.pop(name, (b"", 0.0))
        self._bytes -= len(content)


KEPT = KeptTexts()

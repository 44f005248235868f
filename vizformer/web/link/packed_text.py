"""What somebody typed, as a text for the link: short texts as they are, longer ones compressed.

    "A cat."                                       "A cat."
    four hundred characters and more               "~z" and the text compressed (raw deflate, RFC 1951), in base64url

A text that is too long even so stays on this server for a while: the link has its name and its beginning
("~k", the name, the beginning), and `holds` says whether a link holds all of it.
"""

import base64
import hashlib
import secrets
import threading
import time
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache

from vizformer.messages import N_
from vizformer.web.link.link_settings import UnusableError

AS_IT_IS = 400  # characters of a text that stands in a link as it is; Chinese takes nine of them in an address
MOST_PACKED = 5_000
"""Characters of a packed text in an address: with it and the rest, proxies that stop at 8 KB still let it through."""
MOST_BYTES = 100_000  # bytes that a packed text may grow to (in UTF-8), so that no link fills the memory

_MARK, _KEPT = "~z", "~k"

# Texts that no link can carry: they stay on this server for a while, and the link names them.
#
#     name = KEPT.keep(text)        # 22 letters, which nobody can guess
#     KEPT.text(name)               # the text, or None when it is gone
#
# Bounded by bytes and by time: the text that was used least recently is dropped first. A worker has its own, and a
# browser stays with its worker.
MOST_STORED_BYTES = 8 * 2**20  # of all of them, in UTF-8
HOURS = 2  # after they were last looked at
NAME = 22  # letters of a name


class KeptTexts:
    """Texts by name.  Safe to use from many threads."""

    def __init__(self, most_bytes: int = MOST_STORED_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
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


def write(text: str) -> str:
    """The text that `read` reads: in the link where it `holds`, else on this server.

    Of a text beyond `MOST_BYTES`, which is more than a model reads, the beginning.
    """
    if not text.startswith((_MARK, _KEPT)) and len(text) <= AS_IT_IS:
        return text
    packed = _packed(text)
    if packed is not None:
        return packed
    if len(text) > MOST_BYTES or len(text.encode(errors="replace")) > MOST_BYTES:
        return text[:AS_IT_IS].removeprefix(_MARK).removeprefix(_KEPT)
    return _KEPT + KEPT.keep(text) + text[:AS_IT_IS]


def holds(text: str) -> bool:
    return len(text) <= AS_IT_IS or _packed(text) is not None


def read(text: str) -> str:
    """What was typed; of a text that this server kept and has no more, its beginning (`is_gone`)."""
    if text.startswith(_KEPT):
        kept = KEPT.text(_name(text))
        return _beginning(text) if kept is None else kept
    if not text.startswith(_MARK):
        return text
    try:
        packed = base64.b64decode(text[len(_MARK) :].encode("ascii"), altchars=b"-_", validate=True)
        inflating = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        content = inflating.decompress(packed, MOST_BYTES)
        if not inflating.eof or inflating.unused_data:
            raise ValueError("cut off, longer than it may be, or followed by something else")
        return content.decode()
    except (ValueError, zlib.error):
        raise UnusableError(N_("it must be a text, or one that this app has packed")) from None


def is_gone(text: str) -> bool:
    """Whether a link names a text that was kept on a server, and that this one has not (any more)."""
    return text.startswith(_KEPT) and KEPT.text(_name(text)) is None


def _name(text: str) -> str:
    return text[len(_KEPT) : len(_KEPT) + NAME]


def _beginning(text: str) -> str:
    found = text[len(_KEPT) + NAME :][:AS_IT_IS]
    if not found:
        raise UnusableError(N_("it must be a text, or one that this app has packed"))
    return found


@lru_cache(maxsize=64)  # an address is written many times in a run
def _packed(text: str) -> str | None:
    """The packed text; None where it is too long for a link."""
    content = text.encode(errors="replace")
    if len(content) > MOST_BYTES:
        return None
    deflating = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = deflating.compress(content) + deflating.flush()
    found = _MARK + base64.urlsafe_b64encode(packed).decode()
    return found if len(found) <= MOST_PACKED else None

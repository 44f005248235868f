"""What somebody typed, as a text for the link: short texts as they are, longer ones compressed.

    "A cat."                                       "A cat."
    four hundred characters and more               "~z" and the text compressed (raw deflate, RFC 1951), in base64url

A text that is too long even so stays on this server for a while (`text_store`): the link has its name and its beginning
("~k", the name, the beginning), and `holds` says whether a link holds all of it.
"""

import base64
import zlib
from functools import lru_cache

from vizformer.messages import N_
from vizformer.web.link import text_store
from vizformer.web.link.codec import UnusableError
from vizformer.web.link.text_store import KEPT

AS_IT_IS = 400  # characters of a text that stands in a link as it is; Chinese takes nine of them in an address
MOST_PACKED = 5_000
"""Characters of a packed text in an address: with it and the rest, proxies that stop at 8 KB still let it through."""
MOST_BYTES = 100_000  # bytes that a packed text may grow to (in UTF-8), so that no link fills the memory

_MARK, _KEPT = "~z", "~k"


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
    return text[len(_KEPT) : len(_KEPT) + text_store.NAME]


def _beginning(text: str) -> str:
    found = text[len(_KEPT) + text_store.NAME :][:AS_IT_IS]
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

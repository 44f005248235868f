"""What somebody typed, as a text for the link: short texts as they are, longer ones compressed.

    "A cat."                                       "A cat."
    four hundred characters and more               "~z" and the text compressed (raw deflate, RFC 1951), in base64url

A text that is too long even so stands in the link with its beginning only; `holds` says whether a link holds all of it.
"""

import base64
import zlib
from functools import lru_cache

from vizformer.messages import N_
from vizformer.web.link.codec import UnusableError

AS_IT_IS = 400
"""Characters of a text that stands in a link as it is; Chinese takes nine of them in an address."""
MOST_PACKED = 5_000
"""Characters of a packed text in an address: with it and the rest, proxies that stop at 8 KB still let it through."""
MOST_BYTES = 100_000
"""Bytes that a packed text may grow to (in UTF-8), so that no link fills the memory."""

_MARK = "~z"


def write(text: str) -> str:
    """The text that `read` reads: the same one where `holds`, else its beginning."""
    if not text.startswith(_MARK) and len(text) <= AS_IT_IS:
        return text
    packed = _packed(text)
    return text[:AS_IT_IS].removeprefix(_MARK) if packed is None else packed


def holds(text: str) -> bool:
    """Whether the whole text goes into a link."""
    return len(text) <= AS_IT_IS or _packed(text) is not None


def read(text: str) -> str:
    """What was typed.

    Raises:
        UnusableError: a packed text that is damaged, or that grows beyond `MOST_BYTES`.
    """
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

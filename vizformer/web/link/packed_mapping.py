"""A mapping of tensors to roles, as the link of a model has it.

    models/nano.pt;mapping=q1YqyiwuyczPU7Iy...

A link has all of it, so that it opens what it opened on any server that has the file: JSON, compressed (raw deflate, RFC
1951), in base64url without padding.  Its meaning: `vizformer.checkpoints.tensors.role_mapping`.
"""

import base64
import json
import math
import zlib
from typing import Any

from vizformer.messages import N_
from vizformer.web.link.codec import UnusableError

MOST_PACKED = 4_000  # characters in an address: with them and the rest, proxies that stop at 8 KB still let it through
MOST_BYTES = 2**16  # bytes that a packed mapping may grow to


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("no number")
    return number


def write(mapping: dict[str, Any]) -> str:
    """The text of a mapping, made of what JSON knows; an UnusableError where it is too long for a link."""
    content = json.dumps(mapping, separators=(",", ":")).encode()
    deflating = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = deflating.compress(content) + deflating.flush()
    text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(text) > MOST_PACKED or len(content) > MOST_BYTES:
        raise UnusableError(N_("it is too long for a link: put it as a file beside the weights"))
    return text


def read(text: str) -> dict[str, Any]:
    try:
        packed = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        inflating = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
        content = inflating.decompress(packed, MOST_BYTES)
        if not inflating.eof or inflating.unused_data or content.count(b"{") + content.count(b"[") > MOST_BYTES // 16:
            raise ValueError("cut off, longer than it may be, or followed by something else")
        found = json.loads(content.decode(), parse_float=_finite, parse_constant=_finite)
    except (ValueError, zlib.error, RecursionError):
        raise UnusableError(N_("it must be a mapping of tensors that this app has packed")) from None
    if not isinstance(found, dict):
        raise UnusableError(N_("it must be a mapping of tensors that this app has packed"))
    return found

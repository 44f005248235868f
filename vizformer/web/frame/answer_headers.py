"""The headers of every answer, which tell the browser what to refuse: foreign scripts, guessed types, frames of other pages.

Components of Streamlit come as scripts at blob: addresses; scripts in the page are known by their hashes.  Styles stand in
the page.  Streamlit's reader of messages makes itself faster with WebAssembly.
"""

import os
from collections.abc import Iterable
from functools import cache

from vizformer.serving import FRAMES, is_origin
from vizformer.web.frame import inline_scripts

Headers = Iterable[tuple[bytes, bytes]]
_FRAME = b"x-frame-options"


def with_ours(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, and ours in the place of those of the same name."""
    ours = _ours(os.environ.get(FRAMES, ""))
    replaced = {*ours, _FRAME}
    return [*((name, value) for name, value in headers if name.lower() not in replaced), *ours.items()]


@cache
def _ours(frames: str) -> dict[bytes, bytes]:
    who = [origin.strip() for origin in frames.split(",") if is_origin(origin.strip())]
    policy = {
        "default-src": ["'none'"],
        "script-src": ["'self'", "blob:", "'wasm-unsafe-eval'", *inline_scripts.hashes()],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "worker-src": ["blob:"],
        "manifest-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": who or ["'none'"],
    }
    headers = {
        b"content-security-policy": "; ".join(" ".join([name, *allowed]) for name, allowed in policy.items()).encode(),
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"same-origin",
        b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    }
    return headers if who else {**headers, _FRAME: b"DENY"}  # (which knows no list)

"""What happens once per server, when the first visitor needs torch."""

import ctypes
import gc
import sys
import time
from functools import cache

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
_LARGE = 2**20  # bytes


def give_freed_memory_back() -> None:
    """Lets the C library give large freed blocks back to the system at once.

    Streamlit runs every page in a thread of its own, and glibc gives each a heap of its own, in which what was freed
    stays: after five long texts a server had 890 MB of its own, with this 620, in the same time.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return  # another C library (musl), which has no such heaps
    mallopt(_M_ARENA_MAX, 2)
    mallopt(_M_MMAP_THRESHOLD, _LARGE)
    mallopt(_M_TRIM_THRESHOLD, _LARGE)


@cache
def prepare_torch() -> None:
    """Imports torch and makes it a good neighbour of thirty sessions; the first call takes seconds, others nothing."""
    if "torch" not in sys.modules:
        # Importing torch keeps the interpreter to itself for seconds; first let the server send what is drawn already.
        time.sleep(0.1)
    import torch

    import vizformer.checkpoints  # noqa: F401  (with all that it brings, before the freezing)

    # One thread per forward: with more, sessions stall each other at every barrier (docs/decisions.md, "The web layer").
    torch.set_num_threads(1)
    # Streamlit collects garbage after every run, and each time looks at all that torch brought along: 200 ms of
    # everybody's time.  What is there now stays for good; frozen, it is not looked at again.
    gc.collect()
    gc.freeze()

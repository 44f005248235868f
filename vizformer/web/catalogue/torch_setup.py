"""What happens once per server, while it starts: torch is imported, and leaves processor and memory to all sessions."""

import ctypes
import gc
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from vizformer.web.link.model_ref import USUAL_DTYPE

VARIABLE = "VIZFORMER_DEVICE"
DTYPES = (USUAL_DTYPE, "bfloat16", "float16")
BITS = {"float32": 24, "bfloat16": 8, "float16": 11}  # of the significand, the hidden one included


@cache
def prepare_torch() -> None:
    """Imports torch, for a server of thirty sessions; the first call takes seconds, others nothing."""
    if "torch" not in sys.modules:
        # Importing torch keeps the interpreter to itself for seconds; first let the server send what is drawn already.
        time.sleep(0.1)
    _open_library()
    with nothing_is_garbage():
        import torch

        import vizformer.checkpoints  # noqa: F401  (with all that it brings, before the freezing)

    # One thread per forward: with more, sessions stall each other at every barrier (docs/decisions.md, "The web layer").
    torch.set_num_threads(1)
    # Streamlit collects garbage after every run, and each time looks at all that torch brought along: 200 ms of
    # everybody's time.  What is there now stays for good; frozen, it is not looked at again.
    gc.collect()
    gc.freeze()


@contextmanager
def nothing_is_garbage() -> Iterator[None]:
    """While modules are imported: nothing of them is garbage, and each look at them takes longer than the one before."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _open_library() -> None:
    """Has the system load torch's largest library: the pages are answered meanwhile, as not during the same in an import.

    Where it is called otherwise, or needs others first, the import does it.
    """
    found = find_spec("torch")
    for folder in (found and found.submodule_search_locations) or ():
        library = Path(folder, "lib", "libtorch_cpu.so")
        with suppress(OSError):
            ctypes.CDLL(str(library.with_name("libtorch_global_deps.so")), ctypes.RTLD_GLOBAL)
            ctypes.CDLL(None).dlopen(str(library).encode(), os.RTLD_NOW)


def device() -> str:
    """The device on which all models of this server compute."""
    return os.environ.get(VARIABLE, "").strip() or "cpu"

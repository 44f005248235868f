"""What happens once per server, while it starts: torch is imported, and leaves processor and memory to all sessions."""

import gc
import sys
import time
from functools import cache


@cache
def prepare_torch() -> None:
    """Imports torch, for a server of thirty sessions; the first call takes seconds, others nothing."""
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

"""A trial of what others made, in a process of its own with limits of memory and time: what it does there harms nobody."""

import contextlib
import signal
import subprocess
import sys
import threading

from vizformer.jobs.worker import environment

MEGABYTE = 2**20
_AT_ONCE = threading.BoundedSemaphore(2)


def tried(module: str, *arguments: str, content: bytes, seconds: float, alone: bool = False) -> bytes | None:
    """What a module of ours prints of `content`; None where it took more memory or time than it may, or crashed.

    Args:
        module: run as the main one; it calls `limit` before it looks at its input.
        seconds: after which it is ended, however busy the machine is.
        alone: it imports nothing but Python's own library and ours, and so starts twice as fast.

    Raises:
        OSError: there is no room for another process now.
    """
    variables = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
    command = [sys.executable, *(["-S"] if alone else []), "-m", module, *arguments]
    with _AT_ONCE:
        try:
            done = subprocess.run(
                command, input=content, capture_output=True, env=environment(**variables), timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return None
    return done.stdout if done.returncode == 0 else None


def limit(megabytes: int, seconds: float) -> None:
    """Ends this process where it takes more memory, or more seconds of the processor from now on."""
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):  # (there is no such thing on Windows)
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, megabytes * MEGABYTE))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)

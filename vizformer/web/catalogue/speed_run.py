"""The measurement of attention on this machine: one process at a time for all readers of a worker; its results are kept.

Nothing happens in the background of the server: whoever looks at it also notices that it is over.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vizformer.analysis.costs.attention_speed import LENGTHS, SECONDS, SETTINGS, Measured, read
from vizformer.training.runs import STOP, WATCHED
from vizformer.web.catalogue import session_folders

GRACE = 30.0  # seconds that a process may take beyond its time


@dataclass(frozen=True)
class SpeedState:
    """How the measurement stands.

    Attributes:
        found: so far, or by the last one that ended.
        running: whether a process measures.
        ending: "done", "time", "stopped", "abandoned" or "failed"; empty while it goes on, or if there was none.
    """

    found: tuple[Measured, ...]
    running: bool
    ending: str


class SpeedRun:
    """Starts, looks at and stops the process.  Safe to use from many threads.

    Args:
        lengths, seconds: what is measured and for how long; those of `attention_speed` if not given.
    """

    def __init__(self, lengths: Sequence[int] | None = None, seconds: float | None = None) -> None:
        self._lengths, self._seconds = lengths, seconds
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._end = 0.0
        self._closed = False

    def start(self) -> None:
        """Begins to measure, unless it is measured already."""
        with self._lock:
            if self._closed or (self._process is not None and self._process.poll() is None):
                return
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = session_folders.new_folder()
            seconds = SECONDS if self._seconds is None else self._seconds
            settings = {"lengths": list(self._lengths or LENGTHS), "seconds": seconds}
            (self._folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
            (self._folder / WATCHED).touch()
            self._end = time.monotonic() + seconds + GRACE
            self._process = _start(self._folder)

    def look(self) -> SpeedState:
        """How it stands.  Who stops asking counts as gone: after a minute it ends."""
        with self._lock:
            if self._folder is None:
                return SpeedState((), False, "")
            running = self._process is not None and self._process.poll() is None
            if running and time.monotonic() > self._end and self._process is not None:
                self._process.kill()
            with suppress(OSError):
                (self._folder / WATCHED).touch()
            found, ending = read(self._folder)
            return SpeedState(tuple(found), running, ending if ending or running else "failed")

    def stop(self) -> None:
        """Asks the process to end; what was measured stays."""
        with self._lock, suppress(OSError):
            if self._folder is not None:
                (self._folder / STOP).touch()

    def close(self) -> None:
        """Ends the process, for good."""
        with self._lock:
            self._closed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()
                self._process.wait()


def _start(folder: Path) -> subprocess.Popen[bytes]:
    package = Path(__file__).resolve().parents[3]  # where `vizformer` is, installed or not
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "vizformer.analysis.costs.attention_speed", str(folder), str(os.getpid())],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


_making = threading.Lock()
_run: SpeedRun | None = None


def speed_run() -> SpeedRun:
    """That of this server."""
    global _run
    with _making:
        if _run is None:
            _run = SpeedRun()
            session_folders.before_the_end(_close)
        return _run


def _close() -> None:
    global _run
    with _making:
        closing, _run = _run, None
    if closing is not None:
        closing.close()

"""The process that trains: `python -m vizformer.training.worker FOLDER` (see `vizformer.training.runs`).

One thread, low priority, no Streamlit: the pages answer as if nothing were going on.  It ends by itself when the
training is over, when `stop` appears in its folder, when nobody has touched `watched` for a minute, or when the process
that started it is gone.
"""

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

import torch

from vizformer.training.live import Snapshot, train
from vizformer.training.runs import STOP, WATCHED, Run, is_full

SECONDS = 120.0  # of computing
UNWATCHED = 60.0  # seconds after which a training that nobody looks at ends
LOOK_EVERY = 0.2
FULL = errno.ENOSPC  # the exit status where the disk is full: it may take no word of it


class Watch:
    """Whether the training should end now, looked up a few times a second."""

    def __init__(self, folder: Path, parent: int | None = None) -> None:
        self.folder, self.parent, self.last, self.reason = folder, parent or os.getppid(), 0.0, ""

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.reason and now - self.last > LOOK_EVERY:
            self.last = now
            if (self.folder / STOP).exists():
                self.reason = "stopped"
            elif self._unwatched() or os.getppid() != self.parent:
                self.reason = "abandoned"
        return bool(self.reason)

    def _unwatched(self) -> bool:
        try:
            return time.time() - (self.folder / WATCHED).stat().st_mtime > UNWATCHED
        except OSError:  # the folder has been taken away
            return True


def main(folder: Path, parent: int | None = None) -> int:
    """Trains what the folder says, for the process `parent` (the one that started us); the exit status."""
    torch.set_num_threads(1)
    if hasattr(os, "nice"):
        os.nice(10)
    run, watch = Run(folder), Watch(folder, parent)
    started = time.monotonic()

    def seconds() -> float:
        return round(time.monotonic() - started, 2)

    def keep(snapshot: Snapshot) -> None:
        run.keep(snapshot, seconds())

    def report(step: int, loss: float) -> None:
        run.write({"step": step, "loss": loss, "seconds": seconds()})

    try:
        ending: str = train(run.plan, keep=keep, report=report, stop=watch, seconds=SECONDS)
        run.finish(watch.reason or ending, seconds())
    except OSError as error:
        if is_full(error):
            return FULL
        if folder.is_dir():
            raise
        # Taken away with everything in it: there is nobody to tell.
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C at the server ends its trainings too
        sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))

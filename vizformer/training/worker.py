"""The process that trains: `python -m vizformer.training.worker FOLDER PARENT` (see `vizformer.training.runs`).

One thread, low priority, no Streamlit: the pages answer as if nothing were going on.  It ends by itself when the
training is over, and when `vizformer.jobs.worker.Watch` says so.
"""

import contextlib
import sys
import time
from pathlib import Path

import torch

from vizformer.jobs.worker import FULL, Watch, is_full, take_low_priority
from vizformer.training.live import Snapshot, train
from vizformer.training.runs import Run

SECONDS = 120.0  # computing time of a training


def main(folder: Path, parent: int | None = None) -> int:
    """Trains the plan in the folder for the process `parent`, which started this one; returns the exit status."""
    torch.set_num_threads(1)
    take_low_priority()
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
        # The folder was removed: nobody waits for the result.
    return 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C at the server ends its trainings too
        sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))

"""The measurements of attention on this machine."""

from collections.abc import Sequence
from pathlib import Path

from vizformer.analysis.costs.attention_speed import COMPARISONS, Kind, Measured, read
from vizformer.web.catalogue import session_folders
from vizformer.web.catalogue.shared_run import GRACE, RunState, SharedRun

SpeedState = RunState[Measured]


class SpeedRun(SharedRun[Measured]):
    """One job for each comparison."""

    module = "vizformer.analysis.costs.attention_speed"
    good = ()
    room = 0

    def __init__(self, root: Path, lengths: Sequence[int] | None = None, seconds: float | None = None) -> None:
        super().__init__(root)
        self._lengths, self._seconds = lengths, seconds
        self.longest = GRACE + max(seconds or one.seconds for one in COMPARISONS.values())

    def start(self, kind: Kind) -> None:
        """Begins to measure, unless it is measured already."""
        usual = COMPARISONS[kind]
        seconds = usual.seconds if self._seconds is None else self._seconds
        self.begin(kind, {"kind": kind, "lengths": list(self._lengths or usual.lengths), "seconds": seconds})

    def read(self, folder: Path) -> tuple[list[Measured], str]:
        return read(folder)


speed_run = session_folders.OfTheServer(lambda: SpeedRun(session_folders.new_folder()), SpeedRun.close)
"""That of this server."""

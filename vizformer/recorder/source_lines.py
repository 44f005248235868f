"""The line of the author's own code that made a call: file, line number and text, which is read and never run."""

import linecache
import site
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

LONGEST = 160  # characters of a line that are shown
_MOST_LINES = 6  # the most lines of one expression
_TORCH = str(Path(sys.modules["torch"].__file__ or "").parent) if "torch" in sys.modules else ""
_OWN = str(Path(__file__).parent)


@dataclass(frozen=True)
class Source:
    """A place in a program.

    Attributes:
        file: its path within the folder of packages or of the work, or its bare name.
        line: counted from 1.
        text: the words of the line; of an expression over several lines all of these, a space for each break.
        part: the expression within them that made the call; "" if Python does not know it.
    """

    file: str
    line: int
    text: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller(outermost: FrameType | None) -> Source | None:
    """The innermost line outside torch and VizFormer, within the call of the model; None if there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not outermost:
        if not _is_inside(frame.f_code.co_filename):
            return _source(frame)
        frame = frame.f_back
    return None


@cache
def _is_inside(file: str) -> bool:
    return file.startswith((_TORCH, _OWN)) or "/einops/" in file.replace("\\", "/")


def _source(frame: FrameType) -> Source:
    file = frame.f_code.co_filename
    positions = list(frame.f_code.co_positions())
    at = frame.f_lasti // 2
    first, last, start, end = positions[at] if at < len(positions) else (None, None, None, None)
    first, last = first or frame.f_lineno, last or frame.f_lineno
    lines = [linecache.getline(file, number) for number in range(first, min(last, first + _MOST_LINES - 1) + 1)]
    part = ""
    if start is not None and end is not None and last - first < _MOST_LINES and all(lines):
        cut = [line.encode() for line in lines]  # columns are bytes
        cut[-1] = cut[-1][:end]
        cut[0] = cut[0][start:]
        part = _joined(one.decode(errors="replace") for one in cut)
    return Source(_shown(file), first, _joined(lines), part)


def _joined(lines: object) -> str:
    text = " ".join(line.strip() for line in lines).strip()  # type: ignore[attr-defined]
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


@cache
def _shown(file: str) -> str:
    """A path without the folders above the packages or the working directory, which are private."""
    path = Path(file)
    for above in (*site.getsitepackages(), sysconfig.get_paths()["stdlib"], str(Path.cwd())):
        if path.is_relative_to(above):
            return path.relative_to(above).as_posix()
    return path.name

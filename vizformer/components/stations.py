"""The stations of a path: pictures that are stepped through, a prediction before each answer, one thing to turn.

    packed = pack(stations)
    station = mount(packed, at="query", key="path")      # the station that the reader has gone to, and more, or None
    to_html(packed)                                      # the same, as a file

All pictures go to the browser at once; it steps, asks and turns without the server, and keeps what was answered.  They
are packed into one text, which a page can keep: what is sent again with each run is not made again.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vizformer.components import _mount
from vizformer.components.memory import NEXT_DAY
from vizformer.components.packing import short
from vizformer.word_tables import spoken, words_of

ENGLISH: Mapping[str, str] = words_of(__file__)

_WRITTEN = (2, 3)  # decimals: in a cell, and when one points at it

_COMPONENT = _mount.Component("stations")


@dataclass(frozen=True)
class Chips:
    """A row of tokens, what stands below each, and which are set off."""

    names: Sequence[str]
    notes: Sequence[str] = ()
    lit: Sequence[int] = ()
    title: str = ""


@dataclass(frozen=True)
class Grid:
    """A matrix of numbers, drawn as colours."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: NDArray[np.floating] = field(repr=False)  # [rows, columns]; NaN where nothing may be seen (blocked)
    signed: bool = False  # orange below 0 and blue above it, else from 0 to 1
    written: bool = False  # whether each number stands in its cell
    # what is written in the cells instead of their numbers, row by row; empty for nothing else
    texts: Sequence[Sequence[str]] = ()
    lit: int | None = None
    notes: Sequence[str] = ()  # what stands behind each row; empty for nothing
    small: bool = False


@dataclass(frozen=True)
class Bars:
    """Numbers from 0 on as bars, each with what it is called and how it is written."""

    title: str
    names: Sequence[str]
    values: Sequence[float]
    texts: Sequence[str]
    most: float  # what the longest bar possible stands for
    lit: int | None = None
    upright: bool = False  # whether they stand side by side, as tokens do


@dataclass(frozen=True)
class Curve:
    """A line, with points on it (x, y, name); one is set off."""

    title: str
    x_name: str
    y_name: str
    x: Sequence[float]
    y: Sequence[float]
    points: Sequence[tuple[float, float, str]] = ()
    lit: int | None = None


Part = Chips | Grid | Bars | Curve
Frame = Sequence[Part]  # a picture: its parts, from top to bottom


@dataclass(frozen=True)
class Show:
    """A step of a station: a sentence and its picture."""

    words: str
    frame: Frame


@dataclass(frozen=True)
class Option:
    """One answer to a prediction question, and the feedback to it."""

    text: str
    because: str
    name: str = ""  # the same in every language; empty of an option that is made of the sentence

    @property
    def key(self) -> str:
        """Names the option, without saying what is in it."""
        return self.name or f"{zlib.crc32(self.text.encode()):x}"


@dataclass(frozen=True)
class Ask:
    """A step that goes on only after a prediction: the picture is that before the answer."""

    words: str
    options: Sequence[Option]
    right: int
    frame: Frame
    again: str = ""  # the question in other words, for a later station or the next day; empty: it is asked once

    def __post_init__(self) -> None:
        texts = [option.text for option in self.options]
        if not 0 <= self.right < len(texts) or len({*texts}) < len(texts) or len(texts) < 2:
            raise ValueError(f"one of {texts} is to be right, and it is said to be number {self.right}")


@dataclass(frozen=True)
class Turn:
    """A step with a dial: a picture for each of its ticks; it stands `at` one of them at first."""

    words: str
    label: str
    ticks: Sequence[str]
    frames: Sequence[Frame]
    at: int = 0

    def __post_init__(self) -> None:
        if len(self.ticks) != len(self.frames) or not 0 <= self.at < len(self.ticks):
            raise ValueError(f"{len(self.frames)} pictures and the place {self.at} do not fit {len(self.ticks)} ticks")


Step = Show | Ask | Turn


@dataclass(frozen=True)
class Deeper:
    """The page behind a station, in words, and the minutes that it takes."""

    title: str
    minutes: float


@dataclass(frozen=True)
class Exercise:
    """A function that the reader builds herself: what it does in words, its formulas and shapes, and code to begin with."""

    title: str
    text: str
    symbols: str
    code: str


@dataclass(frozen=True)
class Station:
    """One station, its `name` as in links, the minutes that its pictures take, and the page that is its second half."""

    name: str
    title: str
    steps: Sequence[Step]
    deeper: Deeper | None = None
    minutes: float = 0
    exercises: Sequence[Exercise] = ()  # what of it the reader builds herself; not counted in the minutes
    about: str = ""  # the model and the sentence that it is about, where they are not those of the path


@dataclass(frozen=True)
class Packed:
    names: tuple[str, ...]
    asks: Mapping[str, Ask]  # the questions of the stations, without their pictures
    content: str = field(repr=False)


def pack(
    stations: Sequence[Station],
    *,
    text: str = "",
    words: Mapping[str, str] | None = None,
) -> Packed:
    """Makes of a path what is sent.

    `text`: names the sentence, so that answers about another one are not taken for answers about this one.
    `words`: those that are not the usual ones.
    """
    data = {
        "stations": [
            {
                "name": station.name,
                "title": station.title,
                "about": station.about,
                "deeper": station.deeper and asdict(station.deeper),
                "minutes": station.minutes,
                "exercises": [asdict(one) for one in station.exercises],
                "steps": [_step(step) for step in station.steps],
            }
            for station in stations
        ],
        "text": text,
        "next_day": NEXT_DAY,
        "words": {**spoken(ENGLISH), **(words or {})},
    }
    asks = {one.name: replace(step, frame=()) for one in stations for step in one.steps if isinstance(step, Ask)}
    return Packed(tuple(station.name for station in stations), asks, json.dumps(data, ensure_ascii=False))


def mount(packed: Packed, *, at: str = "", key: str) -> tuple[str, bool, dict[str, int]] | None:
    """Shows the path; once, the station to which the reader has gone, whether she asked to go deeper, and her answers.

    Of each station that was answered since the page was opened, the number of the option that was chosen first.
    """
    report = _mount.news(key)
    name = next((name for name in packed.names if name == report.get("station")), None)
    answers = report.get("answers")
    chosen = {one: answers.get(one) for one in packed.asks} if isinstance(answers, Mapping) else {}
    known = {one: at for one, at in chosen.items() if type(at) is int and 0 <= at < len(packed.asks[one].options)}
    gone = None if name is None else (name, report.get("deeper") is True, known)
    data = {"content": packed.content, "at": at if gone is None else gone[0]}
    _COMPONENT.mount(data, key=key)
    return gone


def to_html(packed: Packed, *, title: str = "Path") -> _mount.Html:
    """Returns the path as one HTML file that works without a server; links into the app are left out."""
    return _COMPONENT.page({"content": packed.content, "at": ""}, title=title)


def _step(step: Step) -> dict[str, Any]:
    common = {"kind": type(step).__name__.lower(), "words": step.words}
    if isinstance(step, Turn):
        frames = [_frame(frame) for frame in step.frames]
        return {**common, "label": step.label, "ticks": list(step.ticks), "frames": frames, "at": step.at}
    if isinstance(step, Ask):
        options = [asdict(option) for option in step.options]
        return {**common, "options": options, "right": step.right, "again": step.again, "frames": [_frame(step.frame)]}
    return {**common, "frames": [_frame(step.frame)]}


def _frame(frame: Frame) -> list[dict[str, Any]]:
    return [{"kind": type(part).__name__.lower(), **{k: _plain(v) for k, v in vars(part).items()}} for part in frame]


def _plain(value: Any) -> Any:
    """Converts a value for JSON: numbers rounded to their two or three decimals, and NaN as null."""
    if isinstance(value, np.ndarray):
        return [_plain(row) for row in value.tolist()]
    if isinstance(value, float):
        return short(value, _WRITTEN) if np.isfinite(value) else None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one) for one in value]
    return value

"""The model in one line: the picture of the whole model in miniature, with the place at hand lit.

packed = pack(boxes, words=...)
gone = pressed(packed, key="strip")       # the station of the part that was pressed, "" of a lit one, or None; once
mount(packed, here="query", is_open=False, key="strip")
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from vizformer.components import _mount

_COMPONENT = _mount.Component("whole_model")


@dataclass(frozen=True)
class Box:
    """A part of the model, lit at some stations; a press leads to its own.

    `starts`: what stands before it ("× 3"); empty for nothing.
    """

    title: str
    station: str
    lit_at: Sequence[str] = ()
    starts: str = ""


@dataclass(frozen=True)
class Packed:
    """The line as it is sent: the same for every text."""

    stations: frozenset[str]
    content: str = field(repr=False)


def pack(boxes: Sequence[Box], *, words: Mapping[str, str]) -> Packed:
    """Makes of the boxes, in the order of the data, what is sent; `words`: "model" and "open", with {title}."""
    content = json.dumps({"model": [asdict(box) for box in boxes], "words": dict(words)}, ensure_ascii=False)
    return Packed(frozenset(box.station for box in boxes), content)


def pressed(packed: Packed, *, key: str) -> str | None:
    """The station of the box that was pressed, "" of a lit one; once, else None."""
    station = _mount.news(key).get("station")
    return station if isinstance(station, str) and (not station or station in packed.stations) else None


def mount(packed: Packed, *, here: str, is_open: bool, key: str) -> None:
    """Shows the line, the boxes of `here` lit; `is_open`: whether what they open stands on the page."""
    _COMPONENT.mount({"content": packed.content, "at": here, "open": is_open}, key=key)

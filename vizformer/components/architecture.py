"""The drawing of a model: boxes in columns, the data flowing downwards, any of which can be chosen.

chosen = mount([Column(title="Encoder", frame="× 3", boxes=[...])], selected=chosen, key="drawing")
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from vizformer.components import _mount
from vizformer.word_tables import words_of

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("architecture", ENGLISH)


class Box(TypedDict):
    key: str
    kind: str  # decides its colour: "attention", "feedforward", "norm", "table" or "plain"
    title: str
    shape: str
    count: str
    note: str  # more about it, shown at the lower edge of a narrow screen while the box is chosen
    framed: bool  # whether it belongs to the layer that is repeated
    inside: str  # the key of a box that it is drawn in; "" where it has a place of its own
    skip: str  # the key of the box from which a line leads here past what is between; "" where there is none
    source: str  # the key of a box of another column from which a line leads here; ""
    # the key of the box from which the data comes, where that is not the one right before; "" or left out
    fed_by: NotRequired[str]


class Column(TypedDict):
    """A stack: its name, what its repeated layer is called ("× 3"), and its boxes in the order of the data."""

    title: str
    frame: str
    boxes: Sequence[Box]


def peek(*, key: str, selected: str | None = None) -> str | None:
    """What the next `mount` with this key and `selected` will return."""
    return _mount.current(key, selected, _parse, ahead=True)[0]


def mount(columns: Sequence[Column], *, selected: str | None = None, key: str) -> str | None:
    """Shows the drawing, the stacks side by side, on a Streamlit page; the key of the selected box, if there is one."""
    data = _data(columns)
    shown, echo = _mount.current(key, selected, _parse)
    _COMPONENT.mount(data, version=echo.version, selected=_state(echo.sent), key=key)
    return shown if shown in _keys(columns) else None


def to_html(columns: Sequence[Column], *, selected: str | None = None, title: str = "Architecture") -> _mount.Html:
    return _COMPONENT.page(_data(columns), selected=_state(selected), title=title)


def _state(box: str | None) -> dict[str, str] | None:
    return None if box is None else {"box": box}


def _parse(report: Mapping[str, Any]) -> str | None:
    box = report.get("box")
    return box if isinstance(box, str) else None


def _keys(columns: Sequence[Column]) -> list[str]:
    return [box["key"] for column in columns for box in column["boxes"]]


def _data(columns: Sequence[Column]) -> dict[str, Any]:
    keys = _keys(columns)
    if len(set(keys)) != len(keys):
        raise ValueError("two boxes have the same key")
    for column in columns:
        for box in column["boxes"]:
            for name in (box["inside"], box["skip"], box["source"], box.get("fed_by", "")):
                if name and name not in keys:
                    raise ValueError(f"box {box['key']} names {name}, which is not there")
    return {"drawn": [{**column, "boxes": [dict(box) for box in column["boxes"]]} for column in columns]}

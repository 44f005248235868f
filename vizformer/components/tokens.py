"""The token strip: the tokens of a text in a row, special ones set apart, one of which can be chosen.

chosen = mount([{"text": "cat", "hover": "id 42"}], selected=chosen, label="Source", key="source")
"""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from vizformer.components import _mount
from vizformer.word_tables import words_of

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("tokens", ENGLISH)


class Token(TypedDict):
    """One chip of the strip of tokens.

    `hover`: more about it, shown below the strip: its id, the raw piece, its bytes.
    `value`: length of a small bar; 1 is a full one, or the largest of the row where that is more.
    """

    text: str
    hover: NotRequired[str]
    special: NotRequired[bool]
    value: NotRequired[float | None]


def peek(*, key: str, selected: int | None = None) -> int | None:
    """The token that the next `mount` with this key and `selected` will return, for chips that depend on it."""
    return _mount.current(key, selected, _parse, ahead=True)[0]


def mount(tokens: Sequence[Token], *, selected: int | None = None, label: str = "", key: str) -> int | None:
    """Shows the strip on a Streamlit page; the index of the selected token, if there is one."""
    shown, echo = _mount.current(key, selected, _parse)
    _COMPONENT.mount(_data(tokens, label), version=echo.version, selected=_state(echo.sent), key=key)
    return shown if shown is not None and 0 <= shown < len(tokens) else None


def to_html(
    tokens: Sequence[Token], *, selected: int | None = None, label: str = "", title: str = "Tokens"
) -> _mount.Html:
    """Returns the strip as one HTML file that works without a server and without a network."""
    return _COMPONENT.page(_data(tokens, label), selected=_state(selected), title=title)


def _state(index: int | None) -> dict[str, int] | None:
    return None if index is None else {"index": index}


def _parse(report: Mapping[str, Any]) -> int | None:
    index = report.get("index")
    return index if isinstance(index, int) and not isinstance(index, bool) else None


def _data(tokens: Sequence[Token], label: str) -> dict[str, Any]:
    chips = [
        {
            "text": token["text"],
            "hover": token.get("hover", ""),
            "special": bool(token.get("special", False)),
            "value": None if (value := token.get("value")) is None else float(value),
        }
        for token in tokens
    ]
    return {"tokens": chips, "label": label}

"""Settings of the lessons as one short text that fits into a link: `positions.k:3~masks.kind:window`.

A setting that is at its default is left out.  The page that reads a setting knows which values are legal: any other
value counts as not set.
"""

import math
import re
from collections.abc import Collection
from typing import Protocol, TypeVar

from vizformer.messages import N_, Message

Setting = TypeVar("Setting", bool, int, float, str)

LONGEST = 24  # settings in one link
_INTEGER = re.compile("[+-]?[0-9]{1,9}")
_ITEM = re.compile(r"(?P<name>[a-z]{1,20}\.[a-z_]{1,20}):(?P<value>[\w.,'+-]{0,40})")

Value = TypeVar("Value")


class UnusableError(ValueError):
    """A value in a link breaks the rule `message`."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class Codec(Protocol[Value]):
    """Writes a value into a link, and reads it again."""

    def read(self, text: str, /) -> Value:
        """The value of a text.

        Raises:
            UnusableError: the text is not one that `write` writes; its message is the rule.
        """
        ...

    def write(self, value: Value, /) -> str: ...


def read(text: str) -> dict[str, str]:
    """Name -> value of every setting in `text` (which no page needs to know)."""
    found = [_ITEM.fullmatch(item) for item in text.split("~", LONGEST)] if text else []
    if len(found) > LONGEST or not all(found):
        raise UnusableError(N_("it must be a list such as positions.k:3~masks.kind:window"))
    return {one["name"]: one["value"] for one in found if one is not None}


def write(settings: dict[str, str]) -> str:
    """The text that `read` reads; the oldest settings are dropped where there are too many."""
    return "~".join(f"{name}:{value}" for name, value in list(settings.items())[-LONGEST:])


def changed(text: str, name: str, written: str | None) -> str:
    """The settings of `text` with another value of one of them, which becomes the newest; None: without it."""
    others = {known: value for known, value in read(text).items() if known != name}
    return write(others if written is None else others | {name: written})


def can_hold(name: str, written: str) -> bool:
    """Whether a setting can stand in a link."""
    return _ITEM.fullmatch(f"{name}:{written}") is not None


def value(written: str | None, default: Setting, options: Collection[Setting] | None = None) -> Setting:
    """What a written setting means, read as the type of `default`; the default where it cannot be used."""
    found = default if written is None else _typed(written, default)
    return found if options is None or found in options else default


def _typed(written: str, default: Setting) -> Setting:
    if isinstance(default, bool):
        return written == "1"
    if isinstance(default, int):
        return int(written) if _INTEGER.fullmatch(written) else default
    try:
        number = type(default)(written)
    except ValueError:
        return default
    return number if isinstance(number, str) or math.isfinite(number) else default


def text(value: bool | int | float | str) -> str:
    return str(int(value)) if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


# The one shape in which a module writes a value into a link, and reads it again.
#
# A codec is a module (or an object) with `read` and `write`: read(write(value)) == value, and of any text, however
# long or hostile, `read` gives a value or raises `UnusableError`. The codecs: `edits` (numbers set by hand),
# `generation_settings`, `branch` (tokens taken by hand), `line_settings` (of the line view), `link_settings` (of the
# lessons), `mask_painting` (painted cells), `packed_text` (what somebody typed).
def whole(text: str, largest: int) -> int | None:
    """The number from 0 to `largest` that `text` writes; None where it is anything else.

    All numbers of links are read here.  Only the digits 0 to 9, and no more of them than `largest` has: Python itself
    refuses to read thousands, and reads signs, spaces, underscores and the digits of all scripts.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None

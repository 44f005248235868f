"""The one shape in which a module writes a value into a link, and reads it again.

A codec is a module (or an object) with `read` and `write`:  read(write(value)) == value, and of any text, however long or
hostile, `read` gives a value or raises `UnusableError`.  The codecs: `edits` (numbers set by hand), `generation_settings`,
`branch` (tokens taken by hand), `line_settings` (of the line view), `link_settings` (of the lessons),
`mask_bitmap` (painted cells), `packed_text` (what somebody typed).
"""

from typing import Protocol, TypeVar

from vizformer.messages import Message

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


def whole(text: str, largest: int) -> int | None:
    """The number from 0 to `largest` that `text` writes; None where it is anything else.

    All numbers of links are read here.  Only the digits 0 to 9, and no more of them than `largest` has: Python itself
    refuses to read thousands, and reads signs, spaces, underscores and the digits of all scripts.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None

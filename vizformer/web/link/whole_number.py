"""Whole numbers as links write them; every number that is read from a link comes through here."""


def whole(text: str, largest: int) -> int | None:
    """The number from 0 to `largest` that `text` writes; None where it is anything else.

    Only the digits 0 to 9, and no more of them than `largest` has: Python itself refuses to read thousands, and reads
    signs, spaces, underscores and the digits of all scripts.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    number = int(text)
    return number if number <= largest else None

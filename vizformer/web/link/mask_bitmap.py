"""Cells painted by hand, kept in the link: a bit per cell, in an order that does not depend on the sentence.

Cell (q, k) lies on the shell m = max(q, k) and has the number m^2 .. m^2 + 2m: a short sentence gives a short text,
and a cell keeps its number when the sentence changes.  Six bits make a character, 40 characters a setting.
"""

import re
from collections.abc import Collection
from string import ascii_letters, digits

from vizformer.messages import N_
from vizformer.web.link import link_settings, state
from vizformer.web.link.codec import UnusableError

_ALPHABET = ascii_letters + digits + "-_"
_CELLS = re.compile("[A-Za-z0-9_-]*")
_PIECE, _PIECES = 40, 5  # 5 * 40 characters hold 1200 bits: 32 x 32 cells and more
_NAMES = tuple(f"masks.cells_{letter}" for letter in ascii_letters[:_PIECES])
SIDE = 32

Cells = tuple[tuple[int, int], ...]


def write(cells: Collection[tuple[int, int]]) -> str:
    """The cells as characters; trailing empty ones are left out."""
    bits = {_number(query, key) for query, key in cells}
    values = [sum(1 << i for i in range(6) if 6 * at + i in bits) for at in range(max(bits, default=-1) // 6 + 1)]
    return "".join(_ALPHABET[value] for value in values)


def read(text: str) -> Cells:
    """Reads the cells that `write` wrote, in order; cells beyond `SIDE` are left out."""
    if len(text) > _PIECE * _PIECES or not _CELLS.fullmatch(text):
        raise UnusableError(N_("it must be the painted cells of a mask"))
    found = []
    for at, character in enumerate(text):
        value = _ALPHABET.index(character)
        found += [_cell(6 * at + i) for i in range(6) if value >> i & 1]
    return tuple(sorted(pair for pair in found if max(pair) < SIDE))


def painted(rows: int, columns: int) -> Cells:
    """The painted cells of the view that a map of this size has."""
    settings = link_settings.read(state.view().settings)
    pieces = [settings.get(name, "") for name in _NAMES]
    try:
        cells = read("".join(piece.ljust(_PIECE, _ALPHABET[0]) for piece in pieces))
    except UnusableError:  # as every setting of a lesson that a page cannot use: it counts as not set
        cells = ()
    return tuple((query, key) for query, key in cells if query < rows and key < columns)


def keep(cells: Collection[tuple[int, int]]) -> None:
    """Puts the painted cells into the view, and so into the link."""
    settings = {name: value for name, value in link_settings.read(state.view().settings).items() if name not in _NAMES}
    written = write(cells)
    for i, name in enumerate(_NAMES):
        piece = written[_PIECE * i : _PIECE * (i + 1)].rstrip(_ALPHABET[0])
        if piece:
            settings[name] = piece
    state.update(settings=link_settings.write(settings))


def _number(query: int, key: int) -> int:
    shell = max(query, key)
    return shell * shell + (key if query == shell else 2 * shell - query)


def _cell(number: int) -> tuple[int, int]:
    shell = int(number**0.5)
    rest = number - shell * shell
    return (shell, rest) if rest <= shell else (2 * shell - rest, shell)

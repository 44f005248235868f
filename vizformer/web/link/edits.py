"""Numbers set by hand, as one short text that fits into a link: `decoder.2.cross.q@1,3,0=2.5;encoder.0.self!unscaled`.

An item is `TENSOR@INDEX=VALUE` for a cell, `SITE!unscaled` for no division by sqrt(d_head), or `SITE!t=VALUE` for the
temperature of the softmax.  A later item replaces an earlier one about the same number.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vizformer.model import Edit

_NUMBER = r"-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?(?:e[+-]?[0-9]{1,2})?|inf)"
_ITEM = re.compile(
    rf"(?P<name>[A-Za-z0-9_.]{{1,80}})(?:@(?P<index>[0-9]{{1,6}}(?:,[0-9]{{1,6}}){{0,3}})=(?P<value>{_NUMBER})|!(?P<unscaled>unscaled)|!t=(?P<t>{_NUMBER}))"
)
LONGEST = 40  # items: more than anyone sets by hand


def is_legal(text: str) -> bool:
    """Whether `text` is a list of items (it may still name what a model does not have)."""
    items = split(text)
    return len(items) <= LONGEST and all(_ITEM.fullmatch(item) for item in items)


def split(text: str) -> list[str]:
    return [item for item in text.split(";") if item]


def cell(tensor: str, index: tuple[int, ...], value: float) -> str:
    """The item that sets one number."""
    return f"{tensor}@{','.join(map(str, index))}={value:.6g}"


def unscaled(site: str) -> str:
    return f"{site}!unscaled"


def temperature(site: str, value: float) -> str:
    return f"{site}!t={value:.6g}"


def add(text: str, item: str) -> str:
    """`text` with `item`, in place of an earlier item about the same number."""
    about = _subject(item)
    return ";".join([*(other for other in split(text) if _subject(other) != about), item])


def remove(text: str, item: str) -> str:
    """`text` without any item about the same number as `item`."""
    return ";".join(other for other in split(text) if _subject(other) != _subject(item))


def undo(text: str) -> str:
    """`text` without its last item."""
    return ";".join(split(text)[:-1])


def edit(text: str) -> "Edit | None":
    """The edit that a forward takes; None where nothing is set.

    Raises:
        TraceError: an illegal temperature.
        ValueError: not a legal text (`is_legal`).
    """
    from vizformer.model import Cell, Edit

    if not text:
        return None
    cells: list[Cell] = []
    plain: set[str] = set()
    temperatures: dict[str, float] = {}
    for name, kind, value in map(parts, split(text)):
        if kind == "unscaled":
            plain.add(name)
        elif kind == "t":
            temperatures[name] = value
        else:
            cells.append(Cell(name, tuple(int(i) for i in kind.split(",")), value))
    return Edit(tuple(cells), frozenset(plain), temperatures)


def parts(item: str) -> tuple[str, str, float]:
    """An item taken apart: tensor or site, its kind ("1,3,0" for a cell, "unscaled" or "t"), the value.

    Raises:
        ValueError: not an item.
    """
    found = _ITEM.fullmatch(item)
    if found is None:
        raise ValueError(f"not an edit: {item}")
    kind = found["index"] or ("unscaled" if found["unscaled"] else "t")
    return found["name"], kind, float(found["value"] or found["t"] or 0.0)


def _subject(item: str) -> str:
    """What an item is about: everything before its value."""
    return item.partition("=")[0]

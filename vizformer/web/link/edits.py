"""Numbers set by hand, as one short text that fits into a link: `decoder.2.cross.q@1,3,0=2.5;encoder.0.self!unscaled`.

An item is `TENSOR@INDEX=VALUE` for a cell, `SITE!unscaled` for no division by sqrt(d_head), or `SITE!t=VALUE` for the
temperature of the softmax.  A later item replaces an earlier one about the same number.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizformer.messages import N_
from vizformer.web.link.link_settings import UnusableError

if TYPE_CHECKING:
    from vizformer.model import Edit

_NUMBER = r"-?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?(?:e[+-]?[0-9]{1,3})?|inf)"
_ITEM = re.compile(
    rf"(?P<name>[A-Za-z0-9_.]{{1,80}})(?:@(?P<index>[0-9]{{1,6}}(?:,[0-9]{{1,6}}){{0,3}})=(?P<value>{_NUMBER})|!(?P<unscaled>unscaled)|!t=(?P<t>{_NUMBER}))"
)
LONGEST = 40  # items: more than anyone sets by hand


@dataclass(frozen=True)
class Item:
    """One number set by hand, of a tensor or of the site of an attention, as it is written in the link."""

    name: str
    kind: str  # "1,3,0" for a cell of the tensor, "unscaled" for no division by sqrt(d_head), "t" for the temperature
    written: str = ""

    @property
    def value(self) -> float:
        return float(self.written or 0.0)

    @property
    def about(self) -> tuple[str, str]:
        """The number that the item sets; of two items for one number the later one counts."""
        return self.name, self.kind

    def __str__(self) -> str:
        if self.kind in ("unscaled", "t"):
            return f"{self.name}!{self.kind}" + (f"={self.written}" if self.kind == "t" else "")
        return f"{self.name}@{self.kind}={self.written}"


def read(text: str) -> tuple[Item, ...]:
    """The items of a text, in order (they may still name what a model does not have)."""
    found = [_ITEM.fullmatch(item) for item in text.split(";", LONGEST + 1) if item]
    if len(found) > LONGEST or not all(found):
        raise UnusableError(N_("it must be a list such as encoder.0.self.q@0,1,2=0.5"))
    return tuple(
        Item(one["name"], one["index"] or one["unscaled"] or "t", one["value"] or one["t"] or "")
        for one in found
        if one is not None
    )


def write(items: Sequence[Item]) -> str:
    return ";".join(map(str, items))


def cell(tensor: str, index: tuple[int, ...], value: float) -> Item:
    return Item(tensor, ",".join(map(str, index)), f"{value:.6g}")


def unscaled(site: str) -> Item:
    return Item(site, "unscaled")


def temperature(site: str, value: float) -> Item:
    return Item(site, "t", f"{value:.6g}")


def add(text: str, item: Item) -> str:
    """`text` with `item`, in place of an earlier item about the same number."""
    return write([*(other for other in read(text) if other.about != item.about), item])


def remove(text: str, item: Item) -> str:
    """`text` without any item about the same number as `item`."""
    return write([other for other in read(text) if other.about != item.about])


def undo(text: str) -> str:
    return write(read(text)[:-1])


def edit(text: str) -> "Edit | None":
    """The edit that a forward takes; None where nothing is set."""
    from vizformer.model import Cell, Edit

    if not text:
        return None
    cells: list[Cell] = []
    plain: set[str] = set()
    temperatures: dict[str, float] = {}
    for item in read(text):
        if item.kind == "unscaled":
            plain.add(item.name)
        elif item.kind == "t":
            temperatures[item.name] = item.value
        else:
            cells.append(Cell(item.name, tuple(int(i) for i in item.kind.split(",")), item.value))
    return Edit(tuple(cells), frozenset(plain), temperatures)

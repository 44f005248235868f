"""The tree of a beam search: what was continued, what was dropped, what ended, and which way won.

mount(nodes, key="beam")
to_html(nodes)                     # the same, as a file
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from vizformer.components import _mount
from vizformer.word_tables import words_of

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("tree", ENGLISH)


class Node(TypedDict):
    step: int  # its column, from 0
    parent: int | None  # index of the node it continues, a smaller one; None in the first column
    text: str
    total: float  # log probability of all tokens up to it
    score: float  # what results are compared by
    fate: Literal["kept", "dropped", "finished"]
    best: bool  # whether the best result goes through it


def mount(nodes: Sequence[Node], *, key: str) -> None:
    """Shows the tree, its nodes in the order of the search, within a step the most probable first."""
    _COMPONENT.mount(_data(nodes), key=key)


def to_html(nodes: Sequence[Node], *, title: str = "Beam search") -> _mount.Html:
    return _COMPONENT.page(_data(nodes), title=title)


def _data(nodes: Sequence[Node]) -> dict[str, Any]:
    for index, node in enumerate(nodes):
        parent, step = node["parent"], node["step"]
        fits = step == 0 if parent is None else 0 <= parent < index and nodes[parent]["step"] == step - 1
        if not fits:
            raise ValueError(f"node {index} in column {step} cannot continue node {parent}")
    return {"nodes": [dict(node) for node in nodes]}

"""The tree of a beam search: what was continued, what was dropped, what ended, and which way won.

mount(nodes, key="beam")
to_html(nodes)                     # the same, as a file
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from vizformer.components import _mount
from vizformer.word_tables import words_of

ENGLISH: Mapping[str, str] = words_of(__file__)
"""Every text of the component; a page passes the same names in the reader's language."""

_COMPONENT = _mount.Component("tree")


class Node(TypedDict):
    """A continuation that the search looked at.

    `step`: its column, from 0.
    `parent`: index of the node it continues, a smaller one; None in the first column.
    `total`: log probability of all tokens up to it.
    `score`: what results are compared by.
    `best`: whether the best result goes through it.
    """

    step: int
    parent: int | None
    text: str
    total: float
    score: float
    fate: Literal["kept", "dropped", "finished"]
    best: bool


def mount(nodes: Sequence[Node], *, words: Mapping[str, str] = ENGLISH, key: str) -> None:
    """Shows the tree, its nodes in the order of the search, within a step the most probable first."""
    _COMPONENT.mount(key=key, data=_data(nodes, words), columns={}, version=0, selected=None)


def to_html(nodes: Sequence[Node], *, words: Mapping[str, str] = ENGLISH, title: str = "Beam search") -> _mount.Html:
    return _COMPONENT.page(data=_data(nodes, words), columns={}, selected=None, title=title)


def _data(nodes: Sequence[Node], words: Mapping[str, str]) -> dict[str, Any]:
    for index, node in enumerate(nodes):
        parent, step = node["parent"], node["step"]
        fits = step == 0 if parent is None else 0 <= parent < index and nodes[parent]["step"] == step - 1
        if not fits:
            raise ValueError(f"node {index} in column {step} cannot continue node {parent}")
    return {"nodes": [dict(node) for node in nodes], "words": {**ENGLISH, **words}}

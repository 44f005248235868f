"""Why this answer: tokens, parts of the model and the answer as a graph, and its edges as a list with two effects each.

    mount(nodes, edges, others=0.4, key="why")

A press on an edge, or on its line in the list, says what becomes of the answer without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from vizformer.components import _mount
from vizformer.word_tables import words_of

MOST = 24  # Edges: of more, none could be followed

ENGLISH: Mapping[str, str] = words_of(__file__)

_COMPONENT = _mount.Component("evidence", ENGLISH)


class Node(TypedDict):
    # its column: tokens on the left, parts by their layers in the middle, the answer on the right
    kind: Literal["token", "part", "answer"]
    # text, note: what stands in it, and below in small letters
    text: str
    note: str
    name: str  # all of it in words


class Edge(TypedDict):
    """A line between two boxes, and a line of the list."""

    # first, second: the boxes, by their places
    first: int
    second: int
    looks: bool  # whether it turns a look, and carries no share of the logit
    depth: int  # how far the name is set in: of what enters the part of the last edge that is set in less
    name: str  # in the list
    direct: float  # its share; in `shown` as it is written
    shown: str
    total: float | None  # what is lost without it; None where that was not measured
    said: str  # what becomes of the answer without it


def mount(nodes: Sequence[Node], edges: Sequence[Edge], *, others: float, key: str) -> None:
    """Shows the graph on a Streamlit page.

    Args:
        nodes: each column from top to bottom.
        edges: in the order of the list.
        others: the sum of what enters the answer and is not drawn.

    Raises:
        ValueError: more edges than can be followed, or edges that lead nowhere.
    """
    _COMPONENT.mount(_data(nodes, edges, others), key=key)


def to_html(
    nodes: Sequence[Node], edges: Sequence[Edge], *, others: float, title: str = "Why this answer"
) -> _mount.Html:
    """Returns the graph as one HTML file that works without a server and without a network."""
    return _COMPONENT.page(_data(nodes, edges, others), title=title)


def _data(nodes: Sequence[Node], edges: Sequence[Edge], others: float) -> dict[str, Any]:
    if len(edges) > MOST:
        raise ValueError(f"{len(edges)} edges are more than the {MOST} that can be followed")
    for edge in edges:
        if not (0 <= edge["first"] < len(nodes) and 0 <= edge["second"] < len(nodes)):
            raise ValueError(f"no edge leads from {edge['first']} to {edge['second']} among {len(nodes)} boxes")
    return {"nodes": list(nodes), "edges": list(edges), "others": others}

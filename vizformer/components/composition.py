"""Heads that read one another, as a graph: layers are columns, heads are nodes, and a click chooses one.

chosen = mount((n_layers, n_heads), edges, selected=chosen, key="heads")
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from vizformer.components import _mount
from vizformer.components.payload import count
from vizformer.word_tables import words_of

LARGEST = 32
"""Layers, and heads of a layer, that can be drawn."""
MOST = 80
"""Edges: of more, none could be followed."""

Head = tuple[int, int]
"""Layer and head, counted from 0."""

ENGLISH: Mapping[str, str] = words_of(__file__)
"""Every text of the component; a page passes the same names in the reader's language."""

_COMPONENT = _mount.Component("composition")


class Edge(TypedDict):
    """One head that reads another.

    `way`: what of the second one the output of the first becomes.
    `excess`: how clearly, in deviations of what chance gives.
    """

    way: Literal["Q", "K", "V"]
    first: Head
    second: Head
    excess: float


def mount(
    shape: tuple[int, int],
    edges: Sequence[Edge],
    *,
    selected: Head | None = None,
    words: Mapping[str, str] = ENGLISH,
    key: str,
) -> Head | None:
    """Shows the graph, the clearest edges first, on a Streamlit page; the chosen head, if there is one."""
    data = _data(shape, edges, words)
    shown, echo = _mount.current(key, selected, _parse)
    _COMPONENT.mount(data, version=echo.version, selected=_state(echo.sent), key=key)
    return shown if shown is not None and shown[0] < shape[0] and shown[1] < shape[1] else None


def to_html(
    shape: tuple[int, int],
    edges: Sequence[Edge],
    *,
    selected: Head | None = None,
    words: Mapping[str, str] = ENGLISH,
    title: str = "Composition",
) -> _mount.Html:
    """The same graph as the text of one HTML file that works without a server."""
    return _COMPONENT.page(_data(shape, edges, words), selected=_state(selected), title=title)


def _state(head: Head | None) -> dict[str, int] | None:
    return None if head is None else {"layer": head[0], "head": head[1]}


def _parse(report: Mapping[str, Any]) -> Head | None:
    layer, head = count(report.get("layer")), count(report.get("head"))
    return None if layer is None or head is None else (layer, head)


def _data(shape: tuple[int, int], edges: Sequence[Edge], words: Mapping[str, str]) -> dict[str, Any]:
    if max(shape) > LARGEST:
        raise ValueError(f"{shape[0]} layers of {shape[1]} heads are more than the {LARGEST} that can be drawn")
    if len(edges) > MOST:
        raise ValueError(f"{len(edges)} edges are more than the {MOST} that can be followed")
    for edge in edges:
        (earlier, first), (later, second) = edge["first"], edge["second"]
        if not (0 <= earlier < later < shape[0] and 0 <= first < shape[1] and 0 <= second < shape[1]):
            raise ValueError(f"no edge leads from {edge['first']} to {edge['second']} among {shape[0]} layers")
    return {
        "layers": shape[0],
        "heads": shape[1],
        "edges": [{**edge, "first": list(edge["first"]), "second": list(edge["second"])} for edge in edges],
        "words": {**ENGLISH, **words},
    }

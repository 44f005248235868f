"""The contract between a picture and its numbers: what a component asks of a forward, and of the heads in it.

A component does not know where the numbers lie.  It asks `Numbers` for the heads of a kind of attention and for the stream
at a site, and `Heads` for the map of a head, or for the queries, keys and mask from which the browser computes it.  Answers
are numpy arrays and texts, so that they may come from this process or from elsewhere:

    vizformer.analysis.TraceNumbers(trace)               # of a forward in this process
    vizformer.analysis.TraceNumbers(open_trace(path))    # of a forward whose numbers lie in a file
    Arrays(weights, query_tokens, key_tokens)            # of another program, which hands over maps alone

`vizformer.components.packing` makes of `Heads` what goes to the browser.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

# Small maps: what a head looks like in a few cells, however long the text is.

THUMBNAIL = 32
"""Cells per side of a small map; longer sequences are max-pooled, because a mean hides single strong cells."""


def pools(length: int) -> NDArray[np.int64]:
    """The first indices of the pools of a small map along an axis: at most THUMBNAIL pools of sizes that differ by one."""
    n = min(length, THUMBNAIL)
    return np.arange(n) * length // n


def thumbnails(weights: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Small maps: max-pooled to at most 32 x 32 and square-root scaled [..., queries, keys] -> [..., rows, columns]."""
    return shades(pool(np.asarray(weights), np.fmax))


def shades(pooled: NDArray[np.floating]) -> NDArray[np.uint8]:
    """The small maps of weights that are pooled already, 255 * sqrt(weight), 0 for NaN [..., rows, columns]."""
    return np.asarray(np.rint(255.0 * np.sqrt(np.nan_to_num(np.clip(pooled, 0.0, 1.0)))), dtype=np.uint8)


def pool(maps: NDArray[Any], reduce: np.ufunc) -> NDArray[Any]:
    """Reduces the last two axes to at most THUMBNAIL pools each, of sizes that differ by at most one.

    The rows of a pool first, whole rows at a time: for 4,096 tokens 1 ms, where `reduceat` along the rows takes 100.
    """
    rows, columns = maps.shape[-2:]
    if rows > THUMBNAIL:
        begins = pools(rows).tolist()
        ends = [*begins[1:], rows]
        parts = [reduce.reduce(maps[..., a:b, :], axis=-2) for a, b in zip(begins, ends, strict=True)]
        maps = np.stack(parts, axis=-2)
    return reduce.reduceat(maps, pools(columns), axis=-1) if columns > THUMBNAIL else maps


Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Operands:
    """What the map of one head is computed from, n x d_head numbers where the map has n x n.

    score(i, j) = q_i . k_j + by_distance[j - i + queries - 1],   weights = softmax over the keys that i sees
    """

    q: Floats  # float32 [queries, d_head], multiplied by the scale already
    k: Floats  # float32 [keys, d_head], those of the head's group where several heads share them
    # what ALiBi or T5 add for the distance from query to key [queries + keys - 1]; None where nothing is
    by_distance: Floats | None


class Heads(Protocol):
    """The heads of one kind of attention over one text; layers and heads are counted from 0.

    Attributes:
        shape: (layers, heads, queries, keys).
        query_tokens, key_tokens: the labels of the rows and of the columns.
        scored: whether there are scores, not weights alone.
        measures: names of what the heads can be sorted by, "entropy", "distance", "first", and of what they give to the
            key "last" and the keys "previous", "own", "next" to the query: what they do.
    """

    @property
    def shape(self) -> tuple[int, int, int, int]: ...
    @property
    def query_tokens(self) -> Sequence[str]: ...
    @property
    def key_tokens(self) -> Sequence[str]: ...
    @property
    def scored(self) -> bool: ...
    @property
    def measures(self) -> tuple[str, ...]: ...

    def pattern(self, layer: int, head: int, queries: range | None = None, keys: range | None = None) -> Floats:
        """The weights of a head [queries, keys], 0 to 1; those between some tokens only, where these are given."""

    def scores(self, layer: int, head: int) -> Floats:
        """The scores of a head before the mask [queries, keys]: q . k * scale, with what the model adds for positions.

        Asked only of what is `scored`.
        """

    def operands(self, layer: int, head: int) -> Operands | None:
        """The operands (q, k, ...) of a head's map; None where the map does not follow from them alone."""

    def blocked(self, layer: int | None = None) -> NDArray[np.integer] | None:
        """Why a cell is masked (`vizformer.model.Reason`), 0 where it is visible, None where all are.

        [queries, keys] of one layer; without a layer of all, [layers, queries, keys] where they differ.
        """

    def small(self, layer: int) -> tuple[NDArray[np.uint8], Mapping[str, Floats]]:
        """`thumbnails` of a layer's heads [heads, rows, columns], and their measures by name [heads]."""


class Numbers(Protocol):
    """What one forward computed.

    Attributes:
        about: what is known of the model and of its text, by name.
        kinds: of attention, in the order of the data flow: "encoder", "decoder", "cross".
        streams: the sites at which the stream was kept, in the order in which it went through them.
    """

    @property
    def about(self) -> Mapping[str, str]: ...
    @property
    def kinds(self) -> tuple[str, ...]: ...
    @property
    def streams(self) -> tuple[str, ...]: ...

    def heads(self, kind: str) -> Heads:
        """The heads of one kind."""

    def stream(self, site: str) -> Floats:
        """The residual stream at a site [tokens, d_model]."""

    def tokens(self, site: str) -> Sequence[str]:
        """The labels of the stream's rows at a site."""


@dataclass(frozen=True)
class Arrays:
    """Heads of which nothing is known but their weights."""

    scored: ClassVar[bool] = False
    measures: ClassVar[tuple[str, ...]] = ()
    weights: Floats = field(repr=False)  # [layers, heads, queries, keys], each from 0 to 1
    query_tokens: Sequence[str]
    key_tokens: Sequence[str]
    # why a cell is masked, [queries, keys] for all layers or [layers, queries, keys]; None where none is
    reasons: NDArray[np.integer] | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        layers, heads, queries, keys = self.weights.shape
        return layers, heads, queries, keys

    def pattern(self, layer: int, head: int, queries: range | None = None, keys: range | None = None) -> Floats:
        rows, columns = (slice(None) if one is None else slice(one.start, one.stop) for one in (queries, keys))
        return self.weights[layer, head, rows, columns]

    def scores(self, layer: int, head: int) -> Floats:
        raise ValueError("nobody knows the scores of these heads")

    def operands(self, layer: int, head: int) -> Operands | None:
        return None

    def blocked(self, layer: int | None = None) -> NDArray[np.integer] | None:
        one = self.reasons is None or layer is None or self.reasons.ndim == 2
        return self.reasons if one else self.reasons[layer]  # type: ignore[index]

    def small(self, layer: int) -> tuple[NDArray[np.uint8], Mapping[str, Floats]]:
        return self._small[layer], {}

    @cached_property
    def _small(self) -> NDArray[np.uint8]:
        return thumbnails(self.weights)

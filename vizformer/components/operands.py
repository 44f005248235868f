"""A head on its way to the browser as what its map is computed from: n x d_head numbers instead of n x n.

It travels with the small maps of all heads (`pack_operands`), or by itself, from an address that the browser asks
(`operand_columns`): another head is then there without a run of the page, and what came once is not sent again.
"""

import numpy as np
from numpy.typing import NDArray

from vizformer.components.contract import Operands
from vizformer.components.payload import HeadsPayload, once
from vizformer.components.small_maps import THUMBNAIL, pool


def pack_operands(
    thumbs: NDArray[np.uint8],
    head: Operands,
    reasons: NDArray[np.integer] | None = None,
    *,
    chosen: tuple[int, int],
) -> HeadsPayload:
    """Packs what one head is computed from, beside thumbnails of all; see `HeadsPayload.columns`.

    Args:
        thumbs: as for `pack_chosen`.
        head: the chosen one.
        reasons: of all layers, as for `pack_heads`.
        chosen: (layer, head).

    Raises:
        ValueError: shapes that do not fit each other, a chosen head that does not exist.
    """
    q, k, by_distance = head.q, head.k, head.by_distance
    if q.ndim != 2 or k.ndim != 2 or q.shape[1] != k.shape[1]:
        raise ValueError(f"q and k must be [tokens, d_head] with one d_head, not {q.shape} and {k.shape}")
    queries, keys = len(q), len(k)
    if by_distance is not None and by_distance.shape != (queries + keys - 1,):
        raise ValueError(f"by_distance must have {queries + keys - 1} numbers, not {by_distance.shape}")
    shape = (*thumbs.shape[:2], queries, keys)
    if thumbs.shape[2:] != (min(queries, THUMBNAIL), min(keys, THUMBNAIL)):
        raise ValueError(f"thumbs of shape {thumbs.shape[2:]} do not belong to a map of {shape[2:]}")
    if reasons is not None and reasons.shape not in (shape[2:], (shape[0], *shape[2:])):
        raise ValueError(f"reasons of shape {reasons.shape} do not fit maps of {shape[2:]} (queries, keys)")
    layers, heads = thumbs.shape[:2]
    if not (0 <= chosen[0] < layers and 0 <= chosen[1] < heads):
        raise ValueError(f"the chosen head {chosen} is not among {layers} layers x {heads} heads")
    why = once(reasons)
    columns = operand_columns(head, why[chosen[0]] if why is not None and why.ndim == 3 else why)
    columns["thumbs"] = thumbs.ravel()
    if why is not None:
        columns["thumb_reasons"] = pool(why, np.minimum).ravel()
    return HeadsPayload(
        shape=(layers, heads, queries, keys),
        chosen=(int(chosen[0]), int(chosen[1])),
        held="head",
        thumb_shape=(thumbs.shape[2], thumbs.shape[3]),
        columns=columns,
    )


def operand_columns(head: Operands, reasons: NDArray[np.integer] | None = None) -> dict[str, NDArray[np.generic]]:
    """The columns from which the browser computes one head; see `HeadsPayload.columns`.

    Args:
        reasons: why a cell of this head is masked [queries, keys].
    """
    columns: dict[str, NDArray[np.generic]] = {
        "q": np.ascontiguousarray(head.q, dtype=np.float32).ravel(),
        "k": np.ascontiguousarray(head.k, dtype=np.float32).ravel(),
    }
    if head.by_distance is not None:
        columns["by_distance"] = np.ascontiguousarray(head.by_distance, dtype=np.float32)
    if reasons is not None and np.any(reasons):
        flat = np.ascontiguousarray(reasons, dtype=np.uint8).ravel()
        starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
        columns |= {"run_starts": starts.astype(np.uint32), "run_reasons": flat[starts]}
    return columns

"""A head on its way to the browser as what its map is computed from: n x d_head numbers instead of n x n.

It travels with the small maps of all heads (`pack_operands`), or by itself, from an address that the browser asks
(`pack_address`, `operand_columns`): another head is then there without a run of the page, and what came once is not sent
again.
"""

import numpy as np
from numpy.typing import NDArray

from vizformer.components.packing import once
from vizformer.components.payload import HeadsPayload
from vizformer.components.small_maps import THUMBNAIL, pool


def pack_operands(
    thumbs: NDArray[np.uint8],
    q: NDArray[np.floating],
    k: NDArray[np.floating],
    by_distance: NDArray[np.floating] | None = None,
    reasons: NDArray[np.integer] | None = None,
    *,
    chosen: tuple[int, int],
) -> HeadsPayload:
    """Packs what one head is computed from, beside thumbnails of all; see `HeadsPayload.columns`.

    Args:
        thumbs: as for `pack_chosen`.
        q, k: of the chosen head [queries, d_head], times the scale, and [keys, d_head].
        by_distance: what is added for the distance from query to key [queries + keys - 1].
        reasons: of all layers, as for `pack_heads`.
        chosen: (layer, head).

    Raises:
        ValueError: shapes that do not fit each other, a chosen head that does not exist.
    """
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
    columns = operand_columns(q, k, by_distance, why[chosen[0]] if why is not None and why.ndim == 3 else why)
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


def operand_columns(
    q: NDArray[np.floating],
    k: NDArray[np.floating],
    by_distance: NDArray[np.floating] | None = None,
    reasons: NDArray[np.integer] | None = None,
) -> dict[str, NDArray[np.generic]]:
    """The columns from which the browser computes one head; see `HeadsPayload.columns`.

    Args:
        q, k, by_distance: as for `pack_operands`.
        reasons: why a cell of this head is masked [queries, keys].
    """
    columns: dict[str, NDArray[np.generic]] = {
        "q": np.ascontiguousarray(q, dtype=np.float32).ravel(),
        "k": np.ascontiguousarray(k, dtype=np.float32).ravel(),
    }
    if by_distance is not None:
        columns["by_distance"] = np.ascontiguousarray(by_distance, dtype=np.float32)
    if reasons is not None and np.any(reasons):
        flat = np.ascontiguousarray(reasons, dtype=np.uint8).ravel()
        starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
        columns |= {"run_starts": starts.astype(np.uint32), "run_reasons": flat[starts]}
    return columns


def pack_address(
    shape: tuple[int, int, int, int],
    address: str,
    reasons: NDArray[np.integer] | None = None,
    *,
    measures: tuple[str, ...] = (),
) -> HeadsPayload:
    """Packs no head at all, but the address at which the browser asks for each.

    Args:
        shape: (layers, heads, queries, keys).
        address: a path of this server, without a slash at its end.
        reasons: of all layers, as for `pack_heads`.
        measures: the names of what comes with the small maps.
    """
    why = once(reasons)
    return HeadsPayload(
        shape=shape,
        chosen=(0, 0),
        held="head",
        thumb_shape=(min(shape[2], THUMBNAIL), min(shape[3], THUMBNAIL)),
        columns={} if why is None else {"thumb_reasons": pool(why, np.minimum).ravel()},
        address=address,
        measures=measures,
    )

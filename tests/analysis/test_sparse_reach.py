"""Sparse masks: cells, and layers until the last token hears the first, against products of real masks."""

import numpy as np
import pytest

from vizformer.analysis.costs.layer_types import (
    SPARSE_KINDS,
    SparseCost,
    SparseKind,
    SparseSettings,
    cell_count,
    multiplications,
    recipe,
    sparse_cells,
    sparse_cost,
)


def cost(kind: SparseKind, n: int, s: SparseSettings) -> SparseCost:
    return sparse_cost(kind, sparse_cells(kind, n, s).open)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", SPARSE_KINDS)
@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_the_layers_are_those_after_which_a_product_of_masks_is_open(kind: SparseKind, n: int, causal: bool) -> None:
    for reach, n_global, n_random in ((1, 1, 1), (3, 2, 0), (0, 0, 2), (40, 1, 1)):
        s = SparseSettings(reach, n_global, n_random, seed=3, causal=causal)
        cells = sparse_cells(kind, n, s)
        seen = cells.open
        found, made = sparse_cost(kind, seen), recipe(kind, s)
        if made is not None:
            mask = made.mask(n)
            assert mask is not None
            np.testing.assert_array_equal(cells.reasons, mask.reason[0, 0].expand(n, n).numpy())
            assert (cells.kept > 0).sum() in (0, seen.sum())
        assert found.cells == int(seen.sum()) == cell_count(kind, n, s)
        power, first = seen | np.eye(n, dtype=bool), None
        for layer in range(1, n + 2):
            if first is None and power[-1, 0]:
                first = layer
            if layer <= len(found.heard):
                assert found.heard[layer - 1] == power[-1].sum()
            power = power.astype(int) @ (seen | np.eye(n, dtype=bool)).astype(int) > 0
        assert found.layers == first


def test_a_window_needs_n_over_r_layers_and_a_global_token_two() -> None:
    s = SparseSettings(reach=4, n_global=1, n_random=2)
    assert cost("window", 100, s).layers == -(-99 // 4)
    assert cost("longformer", 100, s).layers == 1  # the first token is the global one
    assert cost("full", 100, s).layers == 1
    assert cost("window", 100, SparseSettings(0, 0, 0)).layers is None


def test_the_cells_of_long_texts_grow_with_n() -> None:
    s = SparseSettings(reach=4, n_global=2, n_random=3)
    for kind in ("window", "longformer", "bigbird"):
        assert cell_count(kind, 20_000, s) == pytest.approx(2 * cell_count(kind, 10_000, s), rel=0.01)  # type: ignore[arg-type]
    assert cell_count("full", 20_000, s) == 20_000**2
    assert multiplications(100, 64, 8) == 2 * 100 * 64 * 8

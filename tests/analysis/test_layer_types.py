"""Paths against a search through the connections, costs against torch's own counting of multiplications."""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from vizformer.analysis.costs.layer_types import (
    LAYER_TYPES,
    LayerType,
    Sizes,
    connections,
    cost_curves,
    full_cost,
    longest_path,
    reach,
    table_cost,
)

SIZES = [(1, 3, 4), (2, 2, 2), (7, 3, 8), (9, 3, 3), (10, 3, 4), (27, 5, 8), (28, 3, 5)]


def shortest(edges: np.ndarray, start: tuple[int, int], end: tuple[int, int]) -> int | None:
    """Edges on a shortest way, by breadth-first search."""
    after: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for a, b, c, d in edges.tolist():
        after.setdefault((a, b), []).append((c, d))
    queue, far = deque([start]), {start: 0}
    while queue:
        at = queue.popleft()
        for to in after.get(at, ()):
            if to not in far:
                far[to] = far[at] + 1
                queue.append(to)
    return far.get(end)


@pytest.mark.parametrize("kind", LAYER_TYPES)
@pytest.mark.parametrize(("n", "k", "r"), SIZES)
def test_the_path_is_what_a_search_finds(kind: LayerType, n: int, k: int, r: int) -> None:
    found = reach(kind, n, k, r)
    edges = connections(kind, n, k, r)
    assert shortest(edges, (0, 0), (n - 1, found.layers)) == found.path
    way = longest_path(kind, n, k, r).tolist()
    assert (way[0], way[-1]) == ([0, 0], [n - 1, found.layers])
    assert len(way) == found.path + 1
    assert {(*a, *b) for a, b in pairwise(way)} <= {tuple(edge) for edge in edges.tolist()}
    assert (edges[:, 0] <= edges[:, 2]).all()  # nobody hears the future


@pytest.mark.parametrize("kind", ["contiguous", "dilated", "restricted"])
def test_one_layer_less_does_not_connect_the_ends(kind: LayerType) -> None:
    for n, k, r in SIZES:
        found = reach(kind, n, k, r)
        edges = connections(kind, n, k, r)
        if found.layers > 1:
            below = edges[edges[:, 3] < found.layers]
            assert shortest(below, (0, 0), (n - 1, found.layers - 1)) is None


def test_the_orders_of_growth_are_the_papers() -> None:
    n = 100_000
    assert reach("attention", n).path == 1
    assert reach("recurrent", n).sequential == n
    assert reach("contiguous", n, k=5).path == pytest.approx(n / 4, abs=1)
    assert reach("dilated", n, k=10).path == 5
    assert reach("restricted", n, r=101).path == pytest.approx(n / 100, abs=1)
    with pytest.raises(ValueError, match="n=0"):
        reach("attention", 0)
    with pytest.raises(ValueError, match="k=1"):
        reach("contiguous", 5, k=1)


def counted(n: int, d: int, k: int) -> dict[LayerType, int]:
    """Multiplications of real layers, by torch's counter (which counts an addition with each)."""
    x, w = torch.randn(n, d), torch.randn(d, d)
    found: dict[LayerType, int] = {}

    def attention() -> None:
        q, keys, v = x @ w, x @ w, x @ w
        torch.softmax(q @ keys.T, -1) @ v @ w

    def gru() -> None:
        inputs, h = x @ torch.randn(d, 3 * d), torch.zeros(1, d)
        for _ in range(n):
            h = (h @ torch.randn(d, 3 * d))[:, :d] + inputs[:1, :d]

    def convolution() -> None:
        F.conv1d(F.pad(x.T[None], (k - 1, 0)), torch.randn(d, d, k))

    layers: dict[LayerType, object] = {"attention": attention, "recurrent": gru, "contiguous": convolution}
    for kind, layer in layers.items():
        with FlopCounterMode(display=False) as counter:
            layer()  # type: ignore[operator]
        found[kind] = counter.get_total_flops() // 2
    return found


def test_the_full_count_is_torchs() -> None:
    for n, d, k in ((5, 8, 3), (16, 4, 2)):
        for kind, value in counted(n, d, k).items():
            assert full_cost(kind, Sizes(n, d, k)) == value, kind


def test_the_tables_and_gru_cross_at_n_equals_d() -> None:
    for cost in (table_cost, full_cost):
        for d in (4, 256):
            below, at, above = (
                cost("attention", Sizes(n, d)) - cost("recurrent", Sizes(n, d)) for n in (d - 1, d, d + 1)
            )
            assert below < 0 == at < above
    # against a plain RNN (2 n d^2) attention with its projections never wins
    assert all(full_cost("attention", Sizes(n, 256)) > 2 * n * 256**2 for n in (1, 10, 1000))


def test_a_window_that_holds_the_text_is_attention() -> None:
    for cost in (table_cost, full_cost):
        assert cost("restricted", Sizes(7, 16, r=50)) == cost("attention", Sizes(7, 16))
        assert cost("restricted", Sizes(70, 16, r=50)) < cost("attention", Sizes(70, 16))
    curve = table_cost("restricted", Sizes(np.array([2.0, 100.0]), 16, r=8))
    assert np.asarray(curve).tolist() == [2 * 2 * 16, 8 * 100 * 16]


@pytest.mark.parametrize("full", [True, False])
def test_curves_are_the_cost_at_each_of_their_points(full: bool) -> None:
    n, curves = cost_curves(64, 5, 4, full=full)
    count = full_cost if full else table_cost
    assert (n[0], n[-1]) == (1, 100_000)
    assert list(curves) == ["attention", "recurrent", "contiguous", "restricted"]
    for kind, curve in curves.items():
        assert curve[40] == pytest.approx(count(kind, Sizes(float(n[40]), 64, 5, 4)))

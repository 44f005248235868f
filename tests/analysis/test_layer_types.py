"""Paths against a search through the connections, and costs against Table 1."""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vizformer.analysis.costs.layer_types import (
    LAYER_TYPES,
    LayerType,
    connections,
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


def test_the_costs_are_those_of_table_one() -> None:
    for n, d in ((10, 512), (511, 512), (513, 512), (2000, 512)):
        assert table_cost("attention", n, d) == n * n * d
        assert table_cost("recurrent", n, d) == n * d * d
        assert table_cost("dilated", n, d, k=5) == 5 * n * d * d
        assert (table_cost("attention", n, d) < table_cost("recurrent", n, d)) == (n < d)


def test_the_convolution_costs_what_pytorch_multiplies() -> None:
    n, d, k = 20, 16, 3
    with FlopCounterMode(display=False) as counter:
        torch.nn.Conv1d(d, d, k)(torch.randn(1, d, n + k - 1))
    assert counter.get_total_flops() // 2 == table_cost("contiguous", n, d, k)


def test_a_window_that_holds_the_text_is_attention() -> None:
    assert table_cost("restricted", 7, 16, r=50) == table_cost("attention", 7, 16)
    assert table_cost("restricted", 100, 16, r=8) == 8 * 100 * 16

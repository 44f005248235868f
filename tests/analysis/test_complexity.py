"""Table 1 of the paper: its rows with numbers, beside the exact paths and the multiplications of real products."""

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from vizformer.analysis.costs.layer_types import IN_TABLE, ROWS, Sizes, complexity, reach, table_cost, table_one


@pytest.mark.parametrize(("n", "d"), [(7, 256), (300, 64), (64, 64)])
def test_the_rows_are_those_of_the_layers_of_the_map(n: int, d: int) -> None:
    names = {"attention": "attention", "recurrent": "recurrent", "convolution": "dilated", "restricted": "restricted"}
    for kind in IN_TABLE:
        found = complexity(kind, n, d, 3, 8)
        assert found.per_layer == table_cost(names[kind], Sizes(n, d, 3, 8))  # type: ignore[arg-type]
    assert [row.sequential for row in table_one(n, d)] == [n if kind == "recurrent" else 1 for kind in ROWS]


@pytest.mark.parametrize("n", [1, 2, 9, 27, 28, 1000])
def test_rounded_up_the_paths_are_those_of_layers_on_top_of_each_other(n: int) -> None:
    for kind, exact in (("attention", "attention"), ("recurrent", "recurrent"), ("convolution", "dilated")):
        assert math.ceil(complexity(kind, n, 8, 3).path - 1e-9) == reach(exact, n, 3).path  # type: ignore[arg-type]
    # n / r and n / k leave out that the window holds the query itself: (n - 1) / (r - 1)
    assert complexity("restricted", n, 8, r=8).path == n / min(8, n)
    assert complexity("contiguous", n, 8, k=3).path == max(1.0, n / 3)


def test_attention_costs_less_where_the_text_is_shorter_than_the_width() -> None:
    for n, d in ((10, 512), (511, 512), (513, 512), (2000, 512)):
        attention, recurrent = (complexity(kind, n, d).per_layer for kind in ("attention", "recurrent"))  # type: ignore[arg-type]
        assert (attention < recurrent) == (n < d)


def test_the_convolutions_cost_what_pytorch_multiplies() -> None:
    n, d, k = 20, 16, 3
    x = torch.randn(1, d, n + k - 1)
    full = torch.nn.Conv1d(d, d, k)
    apart = torch.nn.Sequential(torch.nn.Conv1d(d, d, k, groups=d), torch.nn.Conv1d(d, d, 1))
    for layer, kind in ((full, "convolution"), (apart, "separable")):
        with FlopCounterMode(display=False) as counter:
            layer(x)
        assert counter.get_total_flops() // 2 == complexity(kind, n, d, k).per_layer  # type: ignore[arg-type]


def test_separable_with_a_kernel_over_the_whole_text_costs_attention_and_a_pointwise_layer() -> None:
    n, d = 40, 64  # section 4, last sentences
    found = complexity("separable", n, d, k=n).per_layer
    assert found == complexity("attention", n, d).per_layer + n * d * d


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        complexity("attention", 0, 8)

"""The words of the lesson Masks: the formula with the numbers of one row."""

import re

import numpy as np
import pytest

from tests import tiny
from vizformer.analysis.masks import padded_run
from vizformer.explain import Masked, masked_attention
from vizformer.web.lessons.masks import six_masks


def row_of(formula: str) -> int:
    found = re.match(r"A_\{(\d+),\d+\} = ", formula)
    assert found
    return int(found[1])


def padded_head(seed: int) -> tuple[Masked, tuple[int, ...]]:
    """A head of an encoder over a short sentence in a batch with a long one, and the rows that nobody reads."""
    checkpoint = tiny.checkpoint("encoder-only", seed=seed)
    run = padded_run(checkpoint, checkpoint.trace("猫"), checkpoint.trace("我有一只猫。你好吗？"))
    return masked_attention(run.trace["encoder.0.self"], 0), run.unused("encoder")


def test_the_live_formula_never_works_out_a_row_of_padding() -> None:
    tempting = 0
    for seed in range(12):
        masked, unused = padded_head(seed)
        assert unused
        assert row_of(six_masks.live_row(masked, unused)) not in unused
        tempting += row_of(six_masks.live_row(masked)) in unused
    assert tempting  # had nobody said which rows are padding, one of them would have been the best to show


@pytest.mark.parametrize("seed", range(3))
def test_the_live_formula_is_true(seed: int) -> None:
    masked, unused = padded_head(seed)
    found = re.match(r"A_\{(\d+),(\d+)\} = .* = ([\d.]+)$", six_masks.live_row(masked, unused))
    assert found
    i, j, weight = int(found[1]), int(found[2]), float(found[3])
    assert weight == pytest.approx(masked.weights[i, j], abs=5e-5)
    assert masked.reasons[i, j] == 0


def test_where_all_rows_are_padding_no_formula_is_shown() -> None:
    masked, __ = padded_head(0)
    assert six_masks.live_row(masked, tuple(range(len(np.asarray(masked.scores))))) == ""

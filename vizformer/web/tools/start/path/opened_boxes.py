"""What is inside a box of the drawing: the steps of its arithmetic for one row, down to single products."""

from collections.abc import Sequence

import numpy as np

from vizformer.analysis.attribution.forward_scenes import SHOWN
from vizformer.components.stations import Grid, Inside
from vizformer.explain import Step
from vizformer.web.catalogue import subject_cache
from vizformer.web.tools.start.path.sentence import Sentence, words_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import translate

_SHOWN = ("q", "k", "v", "dots", "scores", "mask", "weights", "z", "head_out")
_CELLS, _ROWS = 8, 8  # numbers of a row, and rows, that are shown
_PRODUCTS = 2  # of a sum that are written out


def attention(about: Sentence, site: str, head: int, query: int) -> list[Inside]:
    """One head and one query: queries, keys, values, scores, weights, what the head finds and hands on."""
    kind = site.partition(".")[0] if not site.endswith("cross") else "cross"
    keys = labels.texts(about.subject.trace.tokens[labels.stacks(kind)[1]])
    steps = subject_cache.steps(about.subject, site, head, query)
    return [_inside(step, keys) for step in steps if step.key in _SHOWN]


def _inside(step: Step, keys: Sequence[str]) -> Inside:
    """The step's result, cell by cell, and the sum behind each cell where it is one."""
    over_keys = step.axes[-1] == "keys"
    rows = np.atleast_2d(np.asarray(step.result, dtype=float))[:_ROWS, : SHOWN if over_keys else _CELLS]
    names = list(keys[: len(rows)]) if step.axes[0] == "keys" and not over_keys else [""]
    columns = list(keys[: rows.shape[1]]) if over_keys else [str(i) for i in range(rows.shape[1])]
    rows = np.where(np.isfinite(rows), rows, np.nan)
    tips = [[_sum(step, row, column) for column in range(rows.shape[1])] for row in range(len(rows))]
    grid = Grid("", names, columns, rows[: len(names)], signed=step.key != "weights", written=True, tips=tips)
    proof = words_of("inside")("proof", difference=f"{step.proof.difference:.0e}")
    return Inside(translate(step.title), translate(step.text), grid, proof if step.proof.holds else "")


def _sum(step: Step, row: int, column: int) -> str:
    """The products behind a cell: a x b + c x d + ... = sum; empty where it is no sum of products."""
    behind = step.contraction
    if behind is None or row >= len(behind.left):
        return ""
    pairs = zip(behind.left[row, :_PRODUCTS], behind.right[:_PRODUCTS, column], strict=True)
    first = " + ".join(f"{_number(a)} × {_number(b)}" for a, b in pairs)
    total = float(behind.products(row, column).sum()) + (0.0 if behind.add is None else float(behind.add[column]))
    return words_of("inside")("sum", first=first, count=behind.left.shape[1], total=f"{total:.3f}".replace("-", "−"))


def _number(value: float) -> str:
    """A factor of a product."""
    return f"{value:.3f}".replace("-", "−") if value >= 0 else f"(−{-value:.3f})"

"""What is inside a box of the drawing: the steps of its arithmetic for one row, down to single products."""

from collections.abc import Sequence

import numpy as np

from vizformer.analysis.attribution.forward_scenes import SHOWN
from vizformer.components.stations import Grid, Inside
from vizformer.explain import Step
from vizformer.web.catalogue import subject_cache
from vizformer.web.widgets.whole_model.sentence import Sentence, words_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import translate

_SHOWN = ("q", "k", "v", "dots", "scores", "mask", "weights", "z", "head_out")
_NETWORK = (
    *("self.add", "self.mean", "self.variance", "self.norm"),
    *("feedforward.norm", "feedforward.hidden", "feedforward.gate", "feedforward.activation", "feedforward.gated"),
    *("layer_input.made", "layer_input.input", "layer_input.gate", "layer_input.gated", "layer_input.narrow"),
    *("feedforward.narrow", "feedforward.add", "feedforward.mean", "feedforward.variance"),
)
_CELLS, _ROWS = 8, 8  # numbers of a row, and rows, that are shown
_PRODUCTS = 2  # of a sum that are written out


def attention(about: Sentence, site: str, head: int, query: int) -> list[Inside]:
    """One head and one query: queries, keys, values, scores, weights, what the head finds and hands on."""
    kind = site.partition(".")[0] if not site.endswith("cross") else "cross"
    keys = labels.texts(about.subject.trace.tokens[labels.stacks(kind)[1]])
    steps = subject_cache.steps(about.subject, site, head, query)
    return [_inside(step, keys) for step in steps if step.key in _SHOWN]


def network(about: Sentence, layer: int) -> list[Inside]:
    """Add & norm, the network, and add & norm again, for the row that is followed; no expert, which has rows of its own."""
    steps, __ = subject_cache.layer(about.subject, about.stack, layer)
    shown = [step for step in steps if step.key in _NETWORK and len(step.result) == len(about.subject.tokens)]
    return [_inside(step, [], about.found.followed, about.token) for step in shown]


def _inside(step: Step, keys: Sequence[str], row: int = 0, name: str = "") -> Inside:
    """The step's result, cell by cell, and the sum behind each cell where it is one: of all keys, or of one row."""
    over_keys = step.axes[-1] == "keys"
    result = np.asarray(step.result, dtype=float)
    found = np.atleast_2d(result if not name else result[row])  # of a mean: a number for each row
    rows = found[:_ROWS, : SHOWN if over_keys else _CELLS]
    names = list(keys[: len(rows)]) if step.axes[0] == "keys" and not over_keys else [name]
    columns = list(keys[: rows.shape[1]]) if over_keys else [str(i) for i in range(rows.shape[1])]
    rows = np.where(np.isfinite(rows), rows, np.nan)
    tips = [[_sum(step, row + at, column) for column in range(rows.shape[1])] for at in range(len(rows))]
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
    return f"{value:.3f}".replace("-", "−") if value >= 0 else f"(−{-value:.3f})"

"""The laboratory Sparse attention: window, Longformer and BigBird over the typed sentence, with reach and cost."""

import numpy as np
import streamlit as st

from vizformer.analysis.costs import layer_types
from vizformer.analysis.costs.layer_types import (
    SPARSE_KINDS,
    Cells,
    SparseCost,
    SparseKind,
    SparseSettings,
    cell_count,
    multiplications,
    sparse_cost,
)
from vizformer.components import mask, table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.model.masks import Kept
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import sizes
from vizformer.web.widgets import head_downloads, lesson
from vizformer.web.widgets.chart import take_away
from vizformer.web.widgets.choices import more
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels

lab = Laboratory("costs", "sparse")
KINDS: tuple[SparseKind, ...] = ("window", "longformer", "bigbird")
ASKED = 2  # keys on each side, in the question
ROWS = 8  # of the mask that are written out in the formula


sparse_cells = cached(layer_types.sparse_cells)


@cached
def sparse_costs(n: int, settings: SparseSettings) -> tuple[SparseCost, ...]:
    return tuple(sparse_cost(kind, sparse_cells(kind, n, settings).open) for kind in SPARSE_KINDS)


@cached
def products(kind: SparseKind, n: int, settings: SparseSettings, config: ModelConfig) -> int:
    """Multiplications of all heads of a layer, of the cells that a mask leaves."""
    return multiplications(cell_count(kind, n, settings), config.d_head, config.n_heads)


@lab.draws
def draw_sparse_attention(subject: Subject) -> None:
    tokens, config = labels.texts(subject.tokens), subject.config
    n, asked = len(tokens), layers(subject)
    if asked is None:
        st.info(lab.text("single"))
    lesson.ask(asked)
    with controls():
        kind = lab.buttons("sparse", KINDS, "longformer")
        reach, n_global, n_random = (
            lab.slider(name, 0, most, 1) for name, most in (("reach", 8), ("global", 4), ("random", 4))
        )
        with more():
            causal = config.architecture == "decoder-only"
            settings = SparseSettings(
                reach, n_global, n_random, lab.slider("seed", 0, 9, 0), lab.toggle("causal", causal)
            )
    cells = sparse_cells(kind, n, settings)
    drawn = mask.MaskView(tokens, tokens, cells.reasons, kept=cells.kept if cells.kept.any() else None)
    mask.mount(drawn, key="costs.mask")
    take_away(*head_downloads.mask(drawn, lab.text(f"sparse.{kind}")), key="costs.mask")
    if n > mask.LARGEST:
        lab.note("drawn", shown=mask.LARGEST, n=n)
    long = sizes.length(lab, "far", n, 4096)
    rows = [
        Row(
            lab.text(f"sparse.{one.kind}"),
            f"{one.cells:,} ({one.cells / n**2:.0%})",
            lab.text("never") if one.layers is None else Number(one.layers, str(one.layers)),
            f"{one.heard[0]} → {one.heard[-1]}",
            sizes.large(products(one.kind, long, settings, config)),
            kind="marked" if one.kind == kind else "",
        )
        for one in sparse_costs(n, settings)
    ]
    columns = [lab.text("sparse.label"), *lab.columns("cells", "layers", "heard", "products", n=n, long=f"{long:,}")]
    st.html(table.style() + table.to_html(columns, rows))
    depth = config.n_decoder_layers or config.n_encoder_layers
    lab.note("stacks", layers=counts.layers(depth), reach=counts.tokens(depth * reach))
    _formula(kind, cells, settings)


@lab.asks("layers")
def layers(subject: Subject) -> lesson.Number | None:
    n = len(subject.tokens)
    if n < 2:
        return None
    answer = -(-(n - 1) // ASKED)
    wrong = {"window": -(-(n - 1) // (2 * ASKED + 1)), "one": 1, "tokens": n - 1}
    said = lab.asked("layers", subject.model, subject.text, wrong=wrong, n=n, r=ASKED, layers=answer)
    return lesson.Number(answer=answer, **said)


def _formula(kind: SparseKind, cells: Cells, settings: SparseSettings) -> None:
    """The cells of the chosen mask, row by row, and the most that there can be."""
    n, r = len(cells.open), settings.reach
    g = 0 if kind == "window" else settings.n_global
    most, symbol = {
        "window": (2 * r + 1, "(2r + 1)"),
        "longformer": (2 * r + 1 + 2 * g, "(2r + 1 + 2g)"),
        "bigbird": (2 * r + 1 + 2 * g + settings.n_random, "(2r + 1 + 2g + b)"),
    }[kind]
    of_rows = [str(count) for count in cells.open.sum(1)]
    shown = of_rows if n <= ROWS else [*of_rows[: ROWS - 2], r"\dots", of_rows[-1]]
    drawn = np.argwhere(cells.kept == Kept.RANDOM)
    lesson.formula(
        r"\begin{gathered} \text{cells} = \textstyle\sum_i \#\{j : i \text{ sees } j\} \le "
        + symbol
        + r"\, n \\ \text{layers of a window} = \lceil (n - 1) / r \rceil \end{gathered}",
        live=rf"{' + '.join(shown)} = {cells.open.sum()} \le {most} \cdot {n} = {most * n}",
        code=f"n, r, g = {n}, {r}, {g}\n"
        "i, j = torch.arange(n)[:, None], torch.arange(n)[None]\n"
        "seen = ((i - j).abs() <= r) | (i < g) | (j < g)  # window, global rows, global columns\n"
        + ("seen[drawn[:, 0], drawn[:, 1]] = True  # random keys: (query, key)\n" if len(drawn) else "")
        + ("seen &= j <= i  # and causal\n" if settings.causal else "")
        + "cells = int(seen.sum())\n"
        "hears = seen[-1]  # after one layer\n"
        "hears = seen[hears].any(0) | hears  # after two",
        given={"drawn": drawn},
    )

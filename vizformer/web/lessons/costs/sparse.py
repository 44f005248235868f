"""The laboratory Sparse attention: window, Longformer and BigBird over the typed sentence, with reach and cost."""

import numpy as np
import streamlit as st

from vizformer.analysis.costs.sparse_reach import Cells, SparseKind, SparseSettings
from vizformer.components import mask, table
from vizformer.components.table import Number, Row
from vizformer.model.sparse_masks import Kept
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.widgets import head_downloads, lesson
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

REACHES, GLOBALS, RANDOMS, SEEDS = range(9), range(5), range(5), range(10)
KINDS: tuple[SparseKind, ...] = ("window", "longformer", "bigbird")
ASKED = 2  # keys on each side, in the question
ROWS = 8  # of the mask that are written out in the formula


@laboratory
def sparse(subject: Subject) -> None:
    """A mask over the sentence, and the four ways side by side."""
    st.html(table.style())
    tokens = labels.texts(subject.tokens)
    n = len(tokens)
    asked = layers_question(subject)
    if asked is None:
        st.info(_("This text has one token only: there is nothing that could be far away. Type one more word."))
    lesson.ask(asked)
    names = {
        "full": _("full attention"),
        "window": _("window"),
        "longformer": "Longformer",
        "bigbird": "BigBird",
    }
    kind: SparseKind = st.segmented_control(
        _("Mask"),
        KINDS,
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("costs.sparse", "longformer", KINDS),
    )
    settings = _settings(subject)
    cells = computations.sparse_cells(kind, n, settings)
    drawn, texts = (
        mask.MaskView(tokens, tokens, cells.reasons, kept=cells.kept if cells.kept.any() else None),
        words(mask.ENGLISH),
    )
    mask.mount(drawn, words=texts, key="costs.mask")
    take_away(*head_downloads.mask(drawn, names[kind], texts), key="costs.mask")
    if n > mask.LARGEST:
        st.caption(_("The first {shown} of {n} positions are drawn; all are counted.", shown=mask.LARGEST, n=n))
    long = wording.length("costs.far", n, 4096)
    found = computations.sparse_costs(n, settings)
    rows = [
        Row(
            (
                names[one.kind],
                f"{one.cells:,} ({one.cells / n**2:.0%})",
                _("never") if one.layers is None else Number(one.layers, str(one.layers)),
                f"{one.heard[0]} → {one.heard[-1]}",
                wording.large(computations.sparse_products(one.kind, long, settings, subject.config)),
            ),
            "marked" if one.kind == kind else "",
        )
        for one in found
    ]
    columns = (
        _("mask"),
        _("cells of your {n} × {n}", n=n),
        _("layers until the last token hears the first"),
        _("tokens that the last one hears: 1 layer → many"),
        _("multiplications of a layer's heads at {n} tokens", n=f"{long:,}"),
    )
    st.html(table.to_html(columns, rows))
    layers = subject.config.n_decoder_layers or subject.config.n_encoder_layers
    st.caption(
        _(
            "Your model's stacks have {layers}, so that a window of r keys on each side would reach {reach} "
            "far. The model was trained with all keys: the masks are drawn over its sentence, nothing is "
            "computed with them here.",
            layers=counts.layers(layers),
            reach=counts.tokens(layers * settings.reach),
        )
    )
    _formula(kind, cells, settings)


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


def _settings(subject: Subject) -> SparseSettings:
    reach = st.slider(_("Window: keys on each side"), 0, 8, **lesson.setting("costs.reach", 1, REACHES))
    n_global = st.slider(_("Global tokens"), 0, 4, **lesson.setting("costs.global", 1, GLOBALS))
    n_random = st.slider(_("Random keys"), 0, 4, **lesson.setting("costs.random", 1, RANDOMS))
    one_stack = subject.config.architecture == "decoder-only"
    with st.popover(_("More")):
        seed = st.slider(_("Seed"), 0, 9, **lesson.setting("costs.seed", 0, SEEDS))
        causal = st.toggle(_("And causal"), **lesson.setting("costs.causal", one_stack))
    return SparseSettings(reach, n_global, n_random, seed, causal)


def layers_question(subject: Subject) -> lesson.Number | None:
    """After how many layers does the last token know of the first?"""
    n = len(subject.tokens)
    if n < 2:
        return None
    layers = -(-(n - 1) // ASKED)
    return lesson.Number(
        "costs",
        "layers",
        _(
            "A window in which each of your {n} tokens sees {r} keys on each side, no global tokens. After how many "
            "layers has what is known of the first token reached the last one?",
            n=n,
            r=ASKED,
        ),
        layers,
        _(
            "Each layer carries it {r} positions further: ⌈({n} − 1) / {r}⌉ = {layers}. One global token would do it "
            "in two layers at most, whatever n is: once to the global token, once from there.",
            n=n,
            r=ASKED,
            layers=layers,
        ),
        about=f"{subject.model} {subject.text}",
    )

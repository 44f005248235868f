"""A laboratory of the lesson Masks: cells blocked and opened by hand, and the model run with that mask."""

import re
from collections.abc import Collection
from string import ascii_letters, digits

import numpy as np
import streamlit as st

from vizformer import analysis
from vizformer.analysis import CellQuestion, Kind, kinds, n_layers, site_name
from vizformer.analysis.masks import Expected, layers_masked_alike, painted_run
from vizformer.analysis.masks import expectations as expected_predictions
from vizformer.components import mask, matrix
from vizformer.explain import Masked, masked_attention
from vizformer.messages import N_, ranges
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.lessons.masks.masked_head import causal_on, notes, place, record, table, tokens
from vizformer.web.link import link_settings, state
from vizformer.web.link.link_settings import UnusableError
from vizformer.web.widgets import head_downloads, lesson, map_words
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.chart import take_away
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels
from vizformer.web.words.errors import plain

lab = Laboratory("masks", "paint", wide=True)
_PAINT = "masks.paint"
LISTED = 10  # names of tokens in a sentence

painted = of_run(painted_run)

_ALPHABET = ascii_letters + digits + "-_"
_CELLS = re.compile("[A-Za-z0-9_-]*")
_PIECE, _PIECES = 40, 5  # 5 * 40 characters hold 1200 bits: 32 x 32 cells and more
_NAMES = tuple(f"masks.cells_{letter}" for letter in ascii_letters[:_PIECES])
SIDE = 32

Cells = tuple[tuple[int, int], ...]


@cached
def expectations(subject: Subject, attention: Kind, flips: Cells, layers: tuple[int, ...]) -> tuple[Expected, ...]:
    """The predictions at every position of the last stack, before and after cells were turned over in these layers."""
    return expected_predictions(subject.checkpoint, subject.trace, painted(subject, attention, flips, layers))


@cached
def asked_cell(subject: Subject, attention: Kind) -> CellQuestion | None:
    return analysis.cell_question(subject.trace, attention, LARGEST)


@lab.draws
def draw_mask_painting(subject: Subject) -> None:
    with controls():
        names = {kind: labels.kind_label(kind) for kind in kinds(subject.trace)}
        attention = lab.buttons("on", names, causal_on(subject), label_visibility="collapsed")
        why = place(subject, attention)
    view = state.view()
    layers = layers_masked_alike(subject.trace, attention, view.layer)
    queries, keys = tokens(subject, attention)
    rows, columns = min(len(queries), mask.LARGEST), min(len(keys), mask.LARGEST)
    kept = painted_cells(rows, columns)
    flips = mask.peek(key=f"{_PAINT}.{attention}", selected=kept)
    flips = tuple((q, k) for q, k in flips if q < rows and k < columns)
    if flips != kept:
        keep(flips)
    own = record(subject, attention, view.layer).reason(view.head).cpu().numpy()
    run = painted(subject, attention, flips, layers)
    masked = masked_attention(run[site_name(attention, view.layer)], view.head)
    left, right = st.columns([3, 2], gap="large")
    with left:
        rows_named, columns_named = map_words.queries(subject, attention), labels.texts(keys)
        drawn = mask.MaskView(rows_named, columns_named, masked.reasons, weights=masked.weights, own=own)
        mask.mount(drawn, paintable=True, selected=flips, key=f"{_PAINT}.{attention}")
        told = [head_downloads.head_name(attention, view.layer, view.head), lab.text("painted")]
        take_away(*head_downloads.mask(drawn, " · ".join(told)), key=f"{_PAINT}.{attention}")
        with st.container(horizontal=True):
            known = own[:rows, :columns] > 0
            masks = {"reset": known, "open": np.zeros_like(known), "causal": ~np.tri(rows, columns, dtype=bool)}
            for name, wanted in masks.items():
                cells = tuple((int(q), int(k)) for q, k in np.argwhere(known != wanted))
                if cells or name == "reset":  # else it is the model's own mask
                    done = not (cells or flips)
                    st.button(lab.text(name), on_click=keep, args=(cells,), disabled=done, key=f"masks.{name}")
        aside(why)
        _blind(masked, map_words.numbered(subject, attention))
        if len(layers) < n_layers(subject.trace, attention):
            lab.note("layers", layers=ranges(layers))
        notes(lab, subject, attention, masked, own=True)
    with right:
        _expected(subject, attention, flips, layers)
    lesson.ask(mask_painting_question(subject, attention))


@lab.asks("block")
def mask_painting_question(subject: Subject, attention: Kind | None = None) -> lesson.CellChoice | None:
    attention = attention or causal_on(subject)
    if (found := asked_cell(subject, attention)) is None:  # a single token
        return None
    queries, keys = (row[:LARGEST] for row in tokens(subject, attention))
    names = {"query": labels.numbered(queries)[found.query], "key": labels.numbered(keys)[found.key]}
    weight = f"{found.weights[found.query, found.key]:.3f}"
    return lesson.CellChoice(
        grid=lesson.Grid(labels.texts(queries), labels.texts(keys), found.weights),
        answer=(found.query, found.key),
        **lab.asked("block", subject, attention, layer=found.layer, head=found.head, weight=weight, **names),
    )


def _blind(masked: Masked, names: list[str]) -> None:
    """Says what becomes of rows in which everything is blocked."""
    if masked.blind:
        rows = ", ".join(plain(names[i]) for i in masked.blind[:LISTED])
        st.warning(lab.text("blind", rows=rows + " …" * (len(masked.blind) > LISTED)))
        lab.note("nothing")


def _expected(subject: Subject, attention: Kind, flips: Cells, layers: tuple[int, ...]) -> None:
    """What is predicted at every position, before and after painting in these layers."""
    if not model_cache.predicts(subject.model):
        lab.note("headless")
        return
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    names = labels.numbered(subject.trace.tokens[stack])[: mask.LARGEST]
    cells = [
        [
            f"{row.before.text} {labels.percent(row.before_probability)}",
            f"{row.after.text} {labels.percent(row.after_probability)}",
            "0" if row.moved == 0 else f"{row.moved:.2g}",
        ]
        for row in expectations(subject, attention, flips, layers)[: mask.LARGEST]
    ]
    st.html(matrix.style())
    columns = lab.columns("before", "after", "moved")
    st.html(table(lab.text(f"expected.{stack}"), columns, names, cells))
    lab.note("moved")


# Cells painted by hand, kept in the link: a bit per cell, in an order that does not depend on the sentence.
#
# Cell (q, k) lies on the shell m = max(q, k) and has the number m^2 .. m^2 + 2m: a short sentence gives a short text,
# and a cell keeps its number when the sentence changes.  Six bits make a character, 40 characters a setting.
def write(cells: Collection[tuple[int, int]]) -> str:
    """The cells as characters; trailing empty ones are left out."""
    bits = {_number(query, key) for query, key in cells}
    values = [sum(1 << i for i in range(6) if 6 * at + i in bits) for at in range(max(bits, default=-1) // 6 + 1)]
    return "".join(_ALPHABET[value] for value in values)


def read(text: str) -> Cells:
    """Reads the cells that `write` wrote, in order; cells beyond `SIDE` are left out."""
    if len(text) > _PIECE * _PIECES or not _CELLS.fullmatch(text):
        raise UnusableError(N_("it must be the painted cells of a mask"))
    found = []
    for at, character in enumerate(text):
        value = _ALPHABET.index(character)
        found += [_cell(6 * at + i) for i in range(6) if value >> i & 1]
    return tuple(sorted(pair for pair in found if max(pair) < SIDE))


def painted_cells(rows: int, columns: int) -> Cells:
    """The painted cells of the view that a map of this size has."""
    settings = link_settings.read(state.view().settings)
    pieces = [settings.get(name, "") for name in _NAMES]
    try:
        cells = read("".join(piece.ljust(_PIECE, _ALPHABET[0]) for piece in pieces))
    except UnusableError:  # as every setting of a lesson that a page cannot use: it counts as not set
        cells = ()
    return tuple((query, key) for query, key in cells if query < rows and key < columns)


def keep(cells: Collection[tuple[int, int]]) -> None:
    """Puts the painted cells into the view, and so into the link."""
    settings = {name: value for name, value in link_settings.read(state.view().settings).items() if name not in _NAMES}
    written = write(cells)
    for i, name in enumerate(_NAMES):
        piece = written[_PIECE * i : _PIECE * (i + 1)].rstrip(_ALPHABET[0])
        if piece:
            settings[name] = piece
    state.update(settings=link_settings.write(settings))


def _number(query: int, key: int) -> int:
    shell = max(query, key)
    return shell * shell + (key if query == shell else 2 * shell - query)


def _cell(number: int) -> tuple[int, int]:
    shell = int(number**0.5)
    rest = number - shell * shell
    return (shell, rest) if rest <= shell else (2 * shell - rest, shell)

"""A head of the model with a mask over it: what the laboratories of the lesson Masks share."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import UInt8

from vizformer.analysis import Kind, kinds, n_layers, site_name
from vizformer.components import mask
from vizformer.explain import Masked, masked_attention
from vizformer.messages import ranges
from vizformer.model import AttentionRecord
from vizformer.model.masks import MaskKind, MaskRecipe
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, map_words, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate

_BLOCKED, _CENTRED = 'class="vf-blocked" ', 'style="text-align: center"'


def shown_on(subject: Subject, mask: MaskKind) -> Kind | None:
    """Where models use a mask of this kind, if this model has that attention; else its self-attention.

    None for the mask of cross-attention where there is none.
    """
    have = kinds(subject.trace)
    if mask == "cross":
        return "cross" if "cross" in have else None
    order: tuple[Kind, ...] = ("decoder", "encoder") if mask in ("causal", "prefix") else ("encoder", "decoder")
    return next(name for name in order if name in have)


def causal_on(subject: Subject) -> Kind:
    """The self-attention on which the causal mask is shown, whether it has one of its own or not."""
    attention = shown_on(subject, "causal")
    assert attention is not None  # every model has self-attention
    return attention


def tokens(subject: Subject, attention: Kind) -> tuple[tuple[Token, ...], tuple[Token, ...]]:
    """The tokens that are queries, and those that are keys."""
    rows, columns = labels.stacks(attention)
    return subject.trace.tokens[rows], subject.trace.tokens[columns]


@dataclass(frozen=True)
class Laid:
    """A mask laid over a head: the numbers, the tokens of rows and columns, and which of them are padding."""

    masked: Masked
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    kept: UInt8[np.ndarray, "n_q n_k"] | None = None
    unused: tuple[int, ...] = ()


@cached
def laid(subject: Subject, attention: Kind, layer: int, head: int, recipe: MaskRecipe) -> Laid:
    """A mask of one sentence over a head of its trace."""
    rows, columns = tokens(subject, attention)
    kept = recipe.kept(len(rows))
    found = masked_attention(record(subject, attention, layer), head, recipe.mask(len(rows)))
    return Laid(found, rows, columns, None if kept is None else kept.numpy())


def causal_head(subject: Subject, layer: int, head: int) -> Masked:
    """A head of the self-attention with the causal mask, whether it has one of its own or not."""
    return laid(subject, causal_on(subject), layer, head, MaskRecipe("causal")).masked


def record(subject: Subject, attention: Kind, layer: int) -> AttentionRecord:
    """What the trace holds of a layer's attention."""
    return subject.trace[site_name(attention, layer)]


def place(subject: Subject, attention: Kind) -> str:
    """Boxes for the layer and the head, held within what the model has; why they open on this head, if nobody chose it."""
    layers, heads = n_layers(subject.trace, attention), subject.config.n_heads
    state.fit(layer=layers, head=heads)
    why = attention_selector.open_on_a_head(subject, attention)
    st.selectbox(_("Layer"), range(layers), width=80, **state.bind("layer"))
    st.selectbox(_("Head"), range(heads), width=80, **state.bind("head"))
    return why


def notes(lab: Laboratory, subject: Subject, attention: Kind, masked: Masked, *, own: bool) -> None:
    """The lines under a mask: whether it is the model's own and agrees with it, and of how many positions it is drawn."""
    aside(_own_mask(lab, subject, attention))
    if (n := max(masked.reasons.shape)) > mask.LARGEST:
        lab.note("first", shown=mask.LARGEST, n=n)
    values = {"difference": f"{masked.proof.difference:.1g}", "anchor": translate(masked.proof.anchor)}
    proof_badge.show(masked.proof, lab.text("used" if own else "laid", **values))
    if attention == kinds(subject.trace)[0]:
        map_words.say_pronoun(subject)


def _own_mask(lab: Laboratory, subject: Subject, attention: Kind) -> str:
    """A sentence about the sliding window of a layer; empty for models without one."""
    layer, window, have = state.view().layer, subject.config.sliding_window, subject.config.windowed_layers
    n = len(tokens(subject, attention)[0])
    if window is None or attention == "cross" or (attention == "encoder" and layer not in have):
        return ""
    if attention == "encoder":
        return lab.text("window.encoder", layer=layer, reach=f"{window - 1:,}")
    values = {"layer": layer, "window": f"{window:,}", "before": f"{window - 1:,}", "layers": ranges(sorted(have))}
    if layer not in have:
        return lab.text("window.without", **values)
    said = lab.text("window.decoder", **values)
    return f"{said} {lab.text('window.wide', n=n)}" if n <= window else said


def table(
    caption: str, columns: Sequence[str], rows: Sequence[str], cells: Sequence[Sequence[str]], blocked: object = None
) -> str:
    """A small HTML table of texts, in the look of the matrices; `blocked` cells (a boolean matrix) are hatched."""
    hatched = np.zeros((len(rows), len(columns)), dtype=bool) if blocked is None else np.asarray(blocked, dtype=bool)
    corner = "<th></th>" if any(rows) else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>"
        + (f'<th style="max-width: 14em">{escape(name)}</th>' if corner else "")
        + "".join(
            f"<td {_BLOCKED * int(hatched[r, c])}{_CENTRED}>{escape(cell)}</td>" for c, cell in enumerate(cells[r])
        )
        + "</tr>"
        for r, name in enumerate(rows)
    )
    return (
        f'<div class="vf-matrix"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{corner}{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )

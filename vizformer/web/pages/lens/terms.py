"""The logit of the answer as a sum: what every part of the model has added, and one part looked into."""

from typing import Any

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Kind, LogitAttribution, Term, site_name
from vizformer.components import tinted_text
from vizformer.explain import Proof
from vizformer.explain.step import limit
from vizformer.messages import N_
from vizformer.recorder.recorded_trace import KeyShares
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.pages.lens import token_choice
from vizformer.web.pages.lens.token_choice import Asked
from vizformer.web.widgets import attention_selector, chart, data_table, position_choice, proof_badge
from vizformer.web.widgets.choices import box
from vizformer.web.widgets.laboratories import folded
from vizformer.web.widgets.map_words import tokens_with_spaces
from vizformer.web.words.i18n import _, show_markdown, show_note, translate
from vizformer.web.words.part_names import part_name

NEURONS = 10

HEADS = 12


def draw_terms(subject: Subject, asked: Asked) -> None:
    """What is held so that the logit is a sum, all of its terms, and one head or network."""
    st.subheader(_("Direct logit attribution"), anchor=False)
    found = token_choice.attribution(subject, asked.position, asked.token, against=asked.against)
    for message in token_choice.frozen(subject):
        st.caption(translate(message))
    with folded(_("All terms"), key="lens.all") as is_open:
        if is_open:
            data_table.show(
                {
                    _("Part"): [name(subject, term) for term in found.sorted],
                    _("Contribution"): [t.value for t in found.sorted],
                },
                hide_index=True,
            )
            proof_badge.show(found.proof, edited=bool(subject.edited))
    one_part(subject, asked, found)


def name(subject: Subject, term: Term) -> str:
    position, usual = state.view().position, position_choice.usual_position(subject)
    token = subject.trace.tokens[position_choice.stack(subject)][usual if position is None else position]
    return part_name(subject.config, term.part, term.place, term.head, token.text)


def one_part(subject: Subject, asked: Asked, found: LogitAttribution) -> None:
    """One head, key by key, or one network, neuron by neuron; where none was chosen, the strongest head.

    Of a model that the reader opened it is the head that the page Attention begins with.
    """
    parts = {
        f"{term.place}.{term.head}" if term.part == "head" else term.place: term
        for term in found.sorted
        if term.part in ("head", "feedforward")
    }
    first = next((key for key, term in parts.items() if term.part == "head"), next(iter(parts)))
    names = {"": ""}  # stands first
    names |= {key: f"{name(subject, term)}  {term.value:+.3f}".replace("-", "−") for key, term in parts.items()}
    kind: Kind = "encoder" if subject.config.architecture == "encoder-only" else "decoder"
    if place := attention_selector.place_elsewhere(subject, kind):
        first = f"{site_name(kind, place[0])}.{place[1]}"
        names[""] = _("the head of the page Attention: {name}", name=names[first])
    else:
        names[""] = _("the head with the largest contribution: {name}", name=names[first])
    st.subheader(_("One part"), anchor=False)
    chosen = parts[box(_("Head or feed-forward network"), "lens.part", names, width="stretch") or first]
    if chosen.part == "feedforward":
        network(subject, asked, chosen)
    else:
        head(subject, asked, chosen)


def head(subject: Subject, asked: Asked, term: Term) -> None:
    """A head's share, key by key."""
    shares, weights, lengths = token_choice.keys(
        subject, asked.position, asked.token, asked.against, term.place, term.head or 0
    )
    draw_keys(subject, asked, term.place, term.head or 0, KeyShares(shares, weights, lengths))


def draw_keys(subject: Subject, asked: Asked, site: str, head: int, found: KeyShares) -> None:
    """What a head takes from each key, tinted in the text and as a table, and the way to its map."""
    shares, weights, lengths = found
    stack = "encoder" if site.endswith("cross") else site.split(".")[0]
    tokens = subject.trace.tokens[stack]
    top = int(np.abs(shares).argmax())
    show_markdown(
        "Most of it comes from token {key} “{token}”: {value}, with the attention weight {weight}. Blue raises the "
        "logit, orange lowers it.",
        key=top,
        token=tokens[top].text,
        value=f"{shares[top]:+.3f}",
        weight=f"{weights[top]:.3f}",
    )
    label = _("The text; the tint of a token is its contribution through this head")
    st.html(tinted_text.to_html(tokens_with_spaces(subject, stack), shares, label=label, marked=top))
    order = np.argsort(-np.abs(shares), kind="stable")[:50]
    with folded(_("Key by key"), key="lens.keys") as is_open:
        if is_open:
            table: dict[str, Any] = {
                _("Key"): [f"{key} {tokens[key].text}" for key in order.tolist()],
                _("Share of the logit"): shares[order],
                _("Attention weight"): weights[order],
                _("Length of a · v W_O"): lengths[order],
            }
            data_table.show(table, hide_index=True)
            show_note(
                "The length is that of the weight times the value times W_O (Kobayashi et al. 2020): a large weight "
                "on a short value contributes little. The share is the dot product of that vector with the direction "
                "of the answer."
            )
    layer = int(site.split(".")[1])
    there = "→ " + _("Layer {layer}, head {head} on the page Attention", layer=layer, head=head)
    if presses.button(there, type="tertiary", key="lens.head"):
        kind = "cross" if site.endswith("cross") else stack
        state.update(kind=kind, layer=layer, head=head, query=asked.position, picture="map")
        st.switch_page(sitemap.ATTENTION.file)


def network(subject: Subject, asked: Asked, term: Term) -> None:
    """A feed-forward network's share, neuron by neuron."""
    shares = token_choice.neurons(subject, asked.position, asked.token, asked.against, term.layer or 0)
    order = np.argsort(-np.abs(shares), kind="stable")[:NEURONS]
    names = [_("neuron {n}", n=int(one)) for one in order]
    values, rest = shares[order], float(shares.sum() - shares[order].sum())
    names.append(_("{n} others together", n=len(shares) - len(order)))
    figure = figures.logit_terms(names, np.append(values, rest))
    chart.show(figure, key="lens.neurons")


def draw_layer_shares(subject: Subject, asked: Asked) -> None:
    """What every block adds to the logit of the answer, and how closely the sum is the logit."""
    st.subheader(_("Direct logit attribution"), anchor=False)
    found = token_choice.layer_shares(subject, asked.position, asked.token, asked.against)
    names = [_("embeddings"), *found.names[1:], _("biases")]
    values = np.array([*found.values, found.constant])
    chart.show(figures.logit_terms(names, values), key="lens.shares")
    show_note(
        "Each block's share is the dot product of its output with the direction of the answer, by the calls "
        "after the model's last block. Nonlinear parts keep their values: the divisor of a norm, the ratio "
        "of an activation. Shares of a sum are not effects."
    )
    dtype = subject.checkpoint.dtype
    holds = bool(found.error <= limit(np.array([np.abs(values).sum()]), dtype)[0])
    proof = Proof(N_("the model's own logit"), found.error, holds, direct=True, precision=str(dtype)[6:])
    proof_badge.show(proof, edited=bool(subject.edited))
    _draw_heads(subject, asked)


def _draw_heads(subject: Subject, asked: Asked) -> None:
    """The heads that add or take off most, where what heads bring sums to what their attention adds."""
    found = token_choice.head_shares(subject, asked.position, asked.token, asked.against)
    shares = [(site, head, value) for site, values in found.items() for head, value in enumerate(values or ())]
    if None in found.values():
        sites = ", ".join(site for site, values in found.items() if values is None)
        show_note(
            "Heads have no share of their own in {sites}: their outputs do not sum to the addition to the "
            "stream, or a norm follows the sum.",
            sites=sites,
        )
    if shares:
        st.subheader(_("The heads with the largest contributions"), anchor=False)
        most = sorted(shares, key=lambda one: -abs(one[2]))[:HEADS]
        names = [_("{site}, head {head}", site=site, head=head) for site, head, _value in most]
        chart.show(figures.logit_terms(names, np.array([value for *_names, value in most])), key="lens.head_shares")
        _draw_one(subject, asked, most, names)


def _draw_one(subject: Subject, asked: Asked, most: list[tuple[str, int, float]], names: list[str]) -> None:
    """One of these heads, key by key; where none was chosen the first."""
    places = token_choice.places(subject)
    parts = {f"{places[site]}.{head}": (site, head) for site, head, _value in most}
    first = next(iter(parts))
    said = {
        "": _("the head with the largest contribution: {name}", name=names[0]),
        **dict(zip(parts, names, strict=True)),
    }
    st.subheader(_("One part"), anchor=False)
    site, head = parts[box(_("Head"), "lens.part", said, width="stretch") or first]
    found = token_choice.recorded_keys(subject, asked.position, asked.token, asked.against, site, head)
    draw_keys(subject, asked, places[site], head, found)

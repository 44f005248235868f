"""Attention that another program computed, as a map of every head or as lines between the tokens."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from vizformer import figures
from vizformer.components import attention, lines
from vizformer.web.widgets.take_away import Picture, caption, take_away
from vizformer.web.words import counts
from vizformer.web.words.errors import plain
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    import numpy as np

    from vizformer.analysis.attention_arrays import AttentionArrays
    from vizformer.components.attention import HeadsPayload
    from vizformer.figures.figure import Figure

_FOUND = "elsewhere.found"
_PACKED = "elsewhere.packed"  # what was made of the group that is looked at: payloads, small maps
_SELECTED = "elsewhere.selection"


def keep(found: "dict[str, AttentionArrays]") -> None:
    """For this session, until another file takes its place."""
    st.session_state[_FOUND] = found


def forget() -> None:
    for name in (_FOUND, _PACKED, _SELECTED, f"{_SELECTED}.lines"):
        st.session_state.pop(name, None)


def pictures() -> None:
    """What was handed in last."""
    found: dict[str, AttentionArrays] | None = st.session_state.get(_FOUND)
    if found is None:
        return
    names = list(found)
    name = names[0]
    if len(names) > 1:
        name = st.selectbox(_("Which of the arrays"), names, key="elsewhere.group", width=420) or name
    arrays = found[name]
    layers, heads, n_q, n_k = arrays.shape
    st.caption(
        plain(name)
        + " · "
        + _(
            "{layers}, {heads}, maps of {n_q} × {n_k}",
            layers=counts.layers(layers),
            heads=counts.heads(heads),
            n_q=n_q,
            n_k=n_k,
        )
    )
    for note in arrays.notes:
        st.info(translate(note, plain))
    kinds = {"map": _("Map"), "lines": _("Lines")}
    picture = st.segmented_control(
        _("Picture"), list(kinds), default="map", format_func=kinds.__getitem__, key="elsewhere.picture"
    )
    if picture == "lines":
        _as_lines(name, arrays)
    else:
        _as_map(name, arrays)
    if layers > 1 or arrays.layers[0] != name:
        with st.expander(_("Which array became which layer")):
            st.markdown("\n".join(f"- {layer}: {plain(called)}" for layer, called in enumerate(arrays.layers)))


def _as_map(name: str, arrays: "AttentionArrays") -> None:
    last = st.session_state.get(_SELECTED)
    shown = attention.peek(key="elsewhere.heads", selected=last)
    payload = _payload(name, arrays, min(shown.layer, arrays.shape[0] - 1), min(shown.head, arrays.shape[1] - 1))
    shown_as: dict[str, Any] = {
        "query_tokens": arrays.query_tokens,
        "key_tokens": arrays.key_tokens,
        "words": words(attention.ENGLISH),
    }
    chosen = attention.mount(payload, selected=last, key="elsewhere.heads", **shown_as)
    st.session_state[_SELECTED] = chosen

    def drawn() -> "Figure":
        weights = arrays.weights[chosen.layer, chosen.head]
        texts = words(figures.ENGLISH)
        return figures.attention_heatmap(weights, arrays.query_tokens, arrays.key_tokens, words=texts)

    told = _("Layer {layer}, head {head}", layer=chosen.layer, head=chosen.head)
    take_away(
        Picture(
            f"layer{chosen.layer}-head{chosen.head}",
            caption(told, name, model=False),
            drawn,
            page=lambda: attention.to_html(payload, selected=chosen, **shown_as),
            title=told,
        ),
        key="elsewhere.heads",
    )


def _payload(name: str, arrays: "AttentionArrays", layer: int, head: int) -> "HeadsPayload":
    """Of all heads where they fit; else of one, beside small maps that are made once."""
    kept: tuple[str, HeadsPayload | np.ndarray] | None = st.session_state.get(_PACKED)
    made = None if kept is None or kept[0] != name else kept[1]
    if made is None:
        whole = attention.fits(arrays.shape)
        made = attention.pack_heads(arrays.weights) if whole else attention.thumbnails(arrays.weights)
        st.session_state[_PACKED] = (name, made)
    if isinstance(made, attention.HeadsPayload):
        return made
    return attention.pack_chosen(made, arrays.weights[layer, head], chosen=(layer, head))


def _as_lines(name: str, arrays: "AttentionArrays") -> None:
    if not lines.fits((1, *arrays.shape[1:]), scored=False):
        st.info(_("The text is too long for lines. The map shows every head of it."))
        return
    last = st.session_state.get(f"{_SELECTED}.lines")
    layer = min(lines.peek(key="elsewhere.lines", selected=last).layer, arrays.shape[0] - 1)
    payload = (
        _payload(name, arrays, 0, 0)
        if lines.fits(arrays.shape)
        else lines.pack_layer(arrays.weights[layer], layer=layer, layers=arrays.shape[0])
    )
    shown_as: dict[str, Any] = {
        "query_tokens": arrays.query_tokens,
        "key_tokens": arrays.key_tokens,
        "words": words(lines.ENGLISH),
    }
    chosen = lines.mount(payload, selected=last, key="elsewhere.lines", **shown_as)
    st.session_state[f"{_SELECTED}.lines"] = chosen
    heads = list(chosen.heads or ())

    def drawn() -> "Figure":
        return figures.attention_lines(
            arrays.weights[chosen.layer, heads],
            arrays.query_tokens,
            arrays.key_tokens,
            heads=heads,
            threshold=chosen.threshold,
            words=words(figures.ENGLISH),
        )

    told = _("layer {layer}", layer=chosen.layer)
    take_away(
        Picture(
            f"layer{chosen.layer}-lines",
            caption(told, name, model=False),
            drawn,
            page=lambda: lines.to_html(payload, selected=chosen, **shown_as),
        ),
        key="elsewhere.lines",
    )

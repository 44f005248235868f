"""The boxes that choose an attention, a layer, a head and a query; the same choice on every page."""

import streamlit as st

from vizformer.web import labels, models, state
from vizformer.web.errors import guarded
from vizformer.web.i18n import _
from vizformer.web.subject import Subject


@guarded()
def choose(subject: Subject, *, cross: bool = True, head: bool = True, query: bool = True) -> None:
    """Draws the boxes.

    Args:
        cross: whether cross-attention can be chosen; where it cannot and is, the decoder's self-attention takes over.
        head, query: whether these are asked for.
    """
    from vizformer.analysis import kinds

    config = models.options(subject.model)
    usable = tuple(kind for kind in kinds(subject.trace) if cross or kind != "cross")
    if not cross and state.view().site == "cross":
        state.update(site="decoder")
    kind = state.fit(site=usable).site
    if len(usable) > 1:
        st.segmented_control(_("Site"), usable, format_func=labels.kind_label, required=True, **state.bind("site"))
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    queries = subject.trace.tokens[labels.stacks(kind)[0]]
    state.fit(layer=n_layers, head=config.n_heads, query=len(queries))
    columns = iter(st.columns([1] * (1 + head) + [2] * query))
    next(columns).selectbox(_("Layer"), range(n_layers), **state.bind("layer"))
    if head:
        next(columns).selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    if query:
        numbered = labels.numbered(queries)
        next(columns).selectbox(
            _("Query"), range(len(queries)), format_func=numbered.__getitem__, **state.bind("query")
        )


def site() -> str:
    """The trace's name of the attention that is chosen, e.g. "decoder.2.cross"."""
    from vizformer.analysis import site_name

    return site_name(state.view().site, state.view().layer)

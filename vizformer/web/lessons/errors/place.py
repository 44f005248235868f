"""Which head an exercise looks at, and which sentence where the open model does not do what the exercise is about."""

import streamlit as st

from vizformer.analysis import Kind, n_layers
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.errors import computations
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _


def reads(subject: Subject) -> Kind:
    """The self-attention of the stack that reads the text."""
    return "encoder" if "encoder" in subject.trace.tokens else "decoder"


def writes(subject: Subject) -> Kind:
    """The self-attention that is causal where the model has such; the causal mask is laid over the other."""
    return "decoder" if "decoder" in subject.trace.tokens else "encoder"


def head(subject: Subject, kind: Kind) -> tuple[int, int]:
    """The layer and the head that the link names."""
    fitted = state.fit(layer=n_layers(subject.trace, kind), head=subject.config.n_heads)
    return fitted.layer, fitted.head


def boxes(subject: Subject, kind: Kind) -> None:
    """Boxes for the layer and the head, for the proof: what comes before it is the same for all."""
    st.selectbox(_("Layer"), range(n_layers(subject.trace, kind)), **state.bind("layer"))
    st.selectbox(_("Head"), range(subject.config.n_heads), **state.bind("head"))


def translator(subject: Subject) -> Subject:
    """The subject, if its model scales its embedding and adds positions; else the first model and its sentence."""
    if computations.scales_its_embedding(subject):
        return subject
    usual = View()
    st.caption(
        _(
            "{model} does not multiply its embedding by √d and add waves. So these are the numbers of {other} and “{text}”.",
            model=plain(subject.title),
            other=plain(sources.title(usual.model)),
            text=usual.text,
        )
    )
    return Subject(sources.stamped(usual.model), usual.text, "")

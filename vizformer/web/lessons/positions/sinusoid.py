"""What the laboratories of the sinusoidal code share: the code, its width and a position, and which models add it."""

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer.analysis.positions.sinusoidal_code import CodeFacts, code_facts, wavelength
from vizformer.model.positions import sinusoidal_encoding
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.errors import plain

ROWS = 512  # of the code, for what is measured on it
WIDTHS = (8, 16, 32, 64, 128, 256, 512)
FURTHEST = 64


@cached
def code(n: int, d_model: int) -> Float[np.ndarray, "n d_model"]:
    """PE of positions 0..n-1, as a model adds it."""
    return sinusoidal_encoding(n, d_model).numpy()


@cached
def facts(d_model: int, k: int = 1) -> CodeFacts:
    """The properties that hold for all rows of the sinusoidal code."""
    return code_facts(ROWS, d_model, k)


def width(lab: Laboratory, subject: Subject) -> int:
    return lab.steps("d", WIDTHS, subject.config.d_model if _has_code(subject) else 64)


def position(lab: Laboratory) -> int:
    return lab.slider("pos", 0, FURTHEST - 1, 3)


def say_whose(lab: Laboratory, subject: Subject, d: int) -> None:
    """Whether the model adds the code of this width."""
    own = _has_code(subject)
    form = "other" if not own else "exactly" if d == subject.config.d_model else "width"
    st.caption(lab.text("whose", form=form, model=plain(subject.title), d=subject.config.d_model))


def length(d: int, pair: int) -> str:
    """The positions until a pair has turned once; three digits are enough."""
    found = wavelength(d, pair)
    return f"{found:,.0f}" if found >= 100 else f"{found:.3g}"


def _has_code(subject: Subject) -> bool:
    return subject.config.positions == "sinusoidal" and subject.config.d_model in WIDTHS

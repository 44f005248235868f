"""What the laboratories of the sinusoidal code share: the code, its width and a position, and which models add it."""

from collections.abc import Sequence

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer.analysis.positions import CodeFacts, code_facts, small_model, wavelength
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load
from vizformer.model import Transformer
from vizformer.model.positions import sinusoidal_encoding
from vizformer.options import Positions
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.errors import plain

ROWS = 512  # of the code, for what is measured on it
WIDTHS = (8, 16, 32, 64, 128, 256, 512)
FURTHEST = 64

MOST = 32  # tokens in the pictures of whole matrices
SCHEMES: tuple[Positions, ...] = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")


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


# What the laboratories share that compare ways to tell positions: these, and small models that differ in them alone.
def words_only(subject: Subject) -> tuple[Token, ...]:
    """The first tokens without start and end marks, which would stay where they are; all, if there is nothing else."""
    return (tuple(token for token in subject.tokens if not token.special) or subject.tokens)[:MOST]


@cached
def tiny(scheme: Positions) -> Checkpoint:
    """The trained language model over bytes with this way to tell positions."""
    return load(asset("lessons", "positions", scheme))


@cached
def small(scheme: Positions, vocab_size: int, causal: bool, trained: bool = False) -> Transformer:
    """The untrained model; `trained`: with the trained model's tables of positions."""
    tables = tiny(scheme).model if trained and scheme in ("learned", "relative") else None
    return small_model(scheme, vocab_size, causal=causal, tables_of=tables)


def choose_pair(lab: Laboratory, numbered: Sequence[str]) -> tuple[int, int]:
    """The boxes for a query and for a key that is not after it."""
    m = lab.box("query", numbered, len(numbered) - 1)
    return m, lab.box("key", numbered[: m + 1], 0)

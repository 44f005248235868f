"""On which kind of attention of a model a mask is shown, and the tokens of its rows and columns."""

from vizformer.analysis import Kind, kinds
from vizformer.model.mask_recipe import MaskKind
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.words import labels


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
    found = subject.trace.tokens
    return found[rows], found[columns]

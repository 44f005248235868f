"""What a logit is taken apart into: a term for each part of the model that has written into the last row."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.frames import frame
from vizformer.explain.step import Proof

Part = Literal[
    "token", "position", "segment", "head", "attention_bias", "feedforward", "feedforward_bias", "norm_bias",
    "projection_bias", "head_bias", "logit_bias", "by_hand",
]  # fmt: skip
Against = int | Literal["mean"] | None
Row = Float[ndarray, " d_model"]


@dataclass(frozen=True)
class Term:
    """A share of the logit.

    Attributes:
        part: what has written it: the embedding of the token, of the position or the segment, a head, b_O of an attention,
            the neurons of a feed-forward network, its last bias, the bias of a norm, that of the head's
            dense layer, that of the token; or numbers of the residual stream that were set by hand.
        place: where: a site such as "decoder.2.cross", "decoder.2.feedforward", "decoder.final", "embedding", "prediction".
        head: which, of a head.
    """

    part: Part
    place: str
    value: float
    head: int | None = None

    @property
    def layer(self) -> int | None:
        """The layer that it belongs to; None for what belongs to none."""
        return layer_of(self.place)


def layer_of(place: str) -> int | None:
    """The layer of a place such as "decoder.2.cross"; None where it names none."""
    number = place.split(".")[1] if "." in place else ""
    return int(number) if number.isdecimal() else None


@dataclass(frozen=True)
class LogitAttribution:
    """A logit taken apart.

    Attributes:
        against: what was taken off it: nothing (None), the mean logit of all tokens, or the logit of this token.
        terms: in the order of the data.
        directions: place -> g, the direction along which what is written there becomes logit.
        logit: what the model recorded, less `against`.
        proof: the sum of the terms against it.
        allowed: how far such a sum may be from it, by rounding.
    """

    position: int
    token: int
    against: Against
    terms: tuple[Term, ...]
    directions: dict[str, Row]
    logit: float
    proof: Proof
    allowed: float

    @property
    def total(self) -> float:
        return float(sum(term.value for term in self.terms))

    @property
    def sorted(self) -> tuple[Term, ...]:
        """The terms, the largest (above or below 0) first."""
        return tuple(sorted(self.terms, key=lambda term: -abs(term.value)))

    def heads(self, kind: Literal["self", "cross"] = "self") -> Float[ndarray, "n_layers n_heads"]:
        """The terms of all heads of one kind of attention."""
        found = [term for term in self.terms if term.part == "head" and term.place.endswith(f".{kind}")]
        shape = tuple(max(at) + 1 for at in zip(*((t.layer or 0, t.head or 0) for t in found), strict=True)) or (0, 0)
        values = np.zeros(shape)
        for term in found:
            values[term.layer, term.head] = term.value
        return values

    def to_frame(self) -> Any:
        """A DataFrame: a row for each term, the largest |value| first."""
        found = frame(vars(term) for term in self.sorted)
        return found[["part", "place", "head", "value"]]

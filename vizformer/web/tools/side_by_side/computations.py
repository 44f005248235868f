"""Cached computations of the page Side by side."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis import (
    Kind,
    head_divergences,
    head_pair,
    moved_weights,
    side_by_side,
    stream_cosines,
    two_answers,
)
from vizformer.analysis.side_by_side import MovedWeights, TwoRuns
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import Cached, cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject_functions import asked_of
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.side_by_side.pair import Pair

P = ParamSpec("P")
R = TypeVar("R")


def of_runs(function: Callable[Concatenate[TwoRuns, P], R]) -> Cached[Concatenate[Pair, P], R]:
    kept: Cached[Concatenate[Pair, P], R] = asked_of("pair", lambda pair: (pair.runs,), function)
    return kept


@cached
def divergences(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    return head_divergences(pair.runs, kind, heard=HEARD.get())


@cached
def elsewhere(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    """The total variation distance between the attention of each head in the two runs, averaged over rows."""
    return head_divergences(pair.runs, kind, measure=side_by_side.total_variation)


head = of_runs(head_pair)
cosines = of_runs(stream_cosines)
answers = of_runs(two_answers)
differing_rows = of_runs(side_by_side.differing_rows)


@cached
def moved(first: ModelRef, second: ModelRef, singular: bool = False) -> MovedWeights:
    """How far the weights of the second model are from those of the first."""
    one, two = (model_cache.checkpoint(model) for model in (first, second))
    return moved_weights(one, two, singular=singular, heard=HEARD.get())


def bits(value: float) -> str:
    """A divergence with three digits; one that would round to 0 with its first digit."""
    text = f"{value:.3f}"
    return text if float(text) or not value else f"{value:.0e}".replace("-", "−")

"""Cached computations of the page Fill in the blank."""

from typing import TYPE_CHECKING

from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float

    from vizformer.analysis import Guess, Prediction
    from vizformer.model import Trace
    from vizformer.text import Token


def fills_blanks(model: str) -> bool:
    """Whether the model was trained with [MASK] and can say what it hides."""
    config = model_cache.options(model)
    return config.architecture == "encoder-only" and config.mask_id is not None and model_cache.predicts(model)


def tokens(model: str, text: str) -> "tuple[Token, ...]":
    return model_cache.trace(model, text, "").tokens["encoder"]


@cached
def trace(model: str, text: str, hidden: tuple[int, ...]) -> "Trace":
    """The forward over the text with these positions hidden."""
    from vizformer.analysis import hide

    return hide(model_cache.checkpoint(model), tokens(model, text), hidden)


@cached
def guesses(model: str, text: str) -> "Float[np.ndarray, ' n']":
    """The probability of each token where it alone is hidden."""
    from vizformer.analysis import guesses

    return guesses(model_cache.checkpoint(model), tokens(model, text))


def predictions(model: str, text: str, hidden: tuple[int, ...], position: int) -> "tuple[Prediction, ...]":
    from vizformer.analysis import next_tokens

    return next_tokens(model_cache.checkpoint(model), trace(model, text, hidden), position)


def guess(model: str, text: str, hidden: tuple[int, ...], position: int) -> "Guess":
    """How well the token that stands at `position` in the text is found."""
    from vizformer.analysis import guess

    return guess(trace(model, text, hidden), position, tokens(model, text)[position].id)


def looks_at(
    model: str, text: str, hidden: tuple[int, ...], position: int, head: int | None
) -> "Float[np.ndarray, 'n_layers n']":
    """Where a position looks, layer by layer: in one head, or averaged over the heads."""
    from vizformer.analysis import head_maps

    weights = head_maps(trace(model, text, hidden), "encoder").weights[:, :, position]  # [n_layers, n_heads, n]
    return weights.mean(1) if head is None else weights[:, head]

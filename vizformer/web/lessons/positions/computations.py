"""Cached computations of the lesson Positions."""

from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.analysis.positions import effects as positions
from vizformer.analysis.positions import moved_pair, sinusoidal_code
from vizformer.analysis.positions.effects import (
    RotaryPair,
    Shuffled,
    alibi_penalties,
    bias_by_distance,
    bucket_map,
    input_rows,
    other_order,
    position_tables,
    rotary_pair,
    running_mean,
    score_effect,
    shuffle,
    small_model,
)
from vizformer.analysis.positions.sinusoidal_code import CodeFacts, code_facts, product_by_distance, shift_matrix
from vizformer.assets import asset
from vizformer.checkpoints import Checkpoint, load
from vizformer.model import Transformer
from vizformer.model.positions import sinusoidal_encoding
from vizformer.options.positions import Positions
from vizformer.text import Token
from vizformer.training import lengths
from vizformer.training.lengths import byte_losses, continued, mean_from
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject

Order = Literal["reverse", "random"]

ROWS = 512  # of the code, for what is measured on it
MOST = 32  # tokens in the pictures of whole matrices
SCHEMES: tuple[Positions, ...] = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")


def words_only(subject: Subject) -> tuple[Token, ...]:
    """The tokens without start and end marks, which would stay where they are; all, if there is nothing else."""
    found = subject.tokens
    return tuple(token for token in found if not token.special) or found


# --- the sinusoidal code ----------------------------------------------------------------------------------------------


@cached
def code(n: int, d_model: int) -> Float[np.ndarray, "n d_model"]:
    """PE of positions 0..n-1, as a model adds it."""
    return sinusoidal_encoding(n, d_model).numpy()


@cached
def waves(d_model: int, dims: tuple[int, ...], last: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Places 0..last and the dimensions' values there [dims, samples], fine enough to look smooth."""
    places = np.linspace(0, last, samples)
    return places, sinusoidal_code.waves(d_model, list(dims), places)


def wavelength(d_model: int, pair: int) -> float:
    """Positions until the pair has turned once."""
    return sinusoidal_code.wavelength(d_model, pair)


@cached
def facts(d_model: int, k: int = 1) -> CodeFacts:
    return code_facts(ROWS, d_model, k)


@cached
def shift(d_model: int, k: int) -> Float[np.ndarray, "d_model d_model"]:
    return shift_matrix(k, d_model)


@cached
def products(d_model: int, furthest: int) -> tuple[np.ndarray, np.ndarray]:
    """Distances -furthest..furthest and the dot product of two codes that far apart."""
    half = product_by_distance(d_model, furthest)
    return np.arange(-furthest, furthest + 1), np.concatenate([half[:0:-1], half])


@cached
def code_products(n: int, d_model: int) -> Float[np.ndarray, "n n"]:
    """The dot products of all pairs of the codes of positions 0..n-1."""
    return sinusoidal_code.code_products(n, d_model)


# --- small models -----------------------------------------------------------------------------------------------------


@cached
def tiny(scheme: Positions) -> Checkpoint:
    """The trained language model over bytes with this way to tell positions."""
    return load(asset("lessons", "positions", scheme))


@cached
def small(scheme: Positions, vocab_size: int, causal: bool, trained: bool = False) -> Transformer:
    """The untrained model; `trained`: with the trained model's tables of positions."""
    tables = tiny(scheme).model if trained and scheme in ("learned", "relative") else None
    return small_model(scheme, vocab_size, causal=causal, tables_of=tables)


@cached
def shuffled(
    scheme: Positions, vocab_size: int, causal: bool, ids: tuple[int, ...], order: Order, seed: int = 0
) -> Shuffled:
    return shuffle(small(scheme, vocab_size, causal), ids, other_order(len(ids), order, seed))


@cached
def moved_scores(
    scheme: Positions, vocab_size: int, query_id: int, key_id: int, distance: int, furthest: int
) -> Float[np.ndarray, "n_heads moves"]:
    """The score of a pair of tokens that is moved on by 0..furthest positions, in the untrained causal model."""
    return moved_pair.moved_scores(small(scheme, vocab_size, True, trained=True), query_id, key_id, distance, furthest)


@cached
def effect(scheme: Positions, vocab_size: int, ids: tuple[int, ...]) -> Float[np.ndarray, "n_heads n n"]:
    """What the scheme adds to each score of the untrained causal model's first layer."""
    return score_effect(small(scheme, vocab_size, True, trained=True), ids)


@cached
def inputs(scheme: Positions, vocab_size: int, ids: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the untrained model, and the rows that the scheme adds to them once they are scaled [n, 64] each."""
    return input_rows(small(scheme, vocab_size, True, trained=True), ids)


@cached
def _unturned(vocab_size: int, ids: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    return positions.unturned(small("rope", vocab_size, True), ids)


def unturned(vocab_size: int, ids: tuple[int, ...], head: int, query: int, key: int) -> dict[str, np.ndarray]:
    """The q of token `query` and the k of token `key` before they are turned, by the names that code has for them."""
    q, k = _unturned(vocab_size, ids)
    return {"q": q[head, query], "k": k[head, key]}


def relative_table() -> Tensor:
    """The trained numbers of T5's buckets [buckets, n_heads]."""
    return position_tables(tiny("relative").model)[0]


def rotary(
    vocab_size: int, ids: tuple[int, ...], head: int, pair: int, query: int, key: int, at: tuple[int, int]
) -> RotaryPair:
    """The q of token `query` and the k of token `key`, turned as if they stood at the positions `at`."""
    q, k = _unturned(vocab_size, ids)
    return rotary_pair(q[head, query], k[head, key], pair, at)


@cached
def biases(scheme: Positions, furthest: int) -> Float[np.ndarray, "n_heads distances"]:
    """What the trained model adds to the score of a key 0..furthest positions back."""
    return bias_by_distance(tiny(scheme).model, furthest)


@cached
def penalties(n: int, n_heads: int) -> tuple[Float[np.ndarray, "n n"], float]:
    """What ALiBi takes off each score of head 0, as a share of the most; the slope of that head."""
    return alibi_penalties(n, n_heads)


@cached
def buckets(n: int) -> Int[np.ndarray, "n n"]:
    config = tiny("relative").model.config
    return bucket_map(n, config.relative_buckets, config.relative_max_distance, both_sides=False)


@cached
def learned_rows() -> Float[np.ndarray, "positions d_model"]:
    """The trained table of positions."""
    return position_tables(tiny("learned").model)[0].numpy()


@cached
def cosines(learned: bool) -> Float[np.ndarray, "n n"]:
    """Cosines between the trained rows of positions, or between as many rows of the sinusoidal code."""
    return sinusoidal_code.cosines(learned_rows() if learned else code(*learned_rows().shape))


# --- past the trained length ------------------------------------------------------------------------------------------


@cached
def measured() -> dict[str, Any]:
    """What was measured when the models were trained (`vizformer.training.lengths.measured`)."""
    return lengths.measured(asset("lessons", "positions"))


@cached
def held_out_losses(text: str) -> dict[Positions, Float[np.ndarray, " length"]]:
    """Loss by position of each trained model on a held-out text ("book", "chinese"), smoothed for a picture."""
    notes = measured()
    return {scheme: running_mean(np.array(notes["loss"][text][scheme]), 9, notes["trained"]) for scheme in SCHEMES}


@cached
def own_losses(text: str, rest: str) -> dict[Positions, Float[np.ndarray, " length"]]:
    """Loss by position of each trained model on the reader's text, continued to 257 bytes by a held-out passage ("book",
    "chinese") or again and again ("repeat").
    """
    data = continued(text, None if rest == "repeat" else measured()["passages"][rest])
    return {scheme: byte_losses(tiny(scheme).model, data) for scheme in SCHEMES}


@cached
def own_curves(text: str, rest: str) -> dict[Positions, Float[np.ndarray, " length"]]:
    """`own_losses`, smoothed for a picture."""
    return {
        scheme: running_mean(losses, 33, measured()["trained"]) for scheme, losses in own_losses(text, rest).items()
    }


@cached
def losses_behind(text: str, rest: str) -> dict[Positions, float]:
    """The mean of `own_losses` past the trained length, of each model that reads as far."""
    found = {scheme: mean_from(losses, measured()["trained"]) for scheme, losses in own_losses(text, rest).items()}
    return {scheme: mean for scheme, mean in found.items() if mean is not None}

"""Cached computations of the lesson Positions."""

import random
from typing import TYPE_CHECKING, Any

from vizformer.assets import asset
from vizformer.config import Positions
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float, Int
    from torch import Tensor

    from vizformer.analysis.positions import CodeFacts, RotaryPair, Shuffled
    from vizformer.checkpoints import Checkpoint
    from vizformer.model import Transformer
    from vizformer.text import Token

ROWS = 512  # of the code, for what is measured on it
MOST = 32  # tokens in the pictures of whole matrices
SCHEMES: tuple[Positions, ...] = ("none", "sinusoidal", "learned", "rope", "alibi", "relative")


def words_only(subject: Subject) -> "tuple[Token, ...]":
    """The tokens without start and end marks, which would stay where they are; all, if there is nothing else."""
    found = subject.tokens
    return tuple(token for token in found if not token.special) or found


# --- the sinusoidal code ----------------------------------------------------------------------------------------------


@cached
def code(n: int, d_model: int) -> "Float[np.ndarray, 'n d_model']":
    """PE of positions 0..n-1, as a model adds it."""
    from vizformer.model.positions import sinusoidal_encoding

    return sinusoidal_encoding(n, d_model).numpy()


@cached
def waves(d_model: int, dims: tuple[int, ...], last: int, samples: int) -> "tuple[np.ndarray, np.ndarray]":
    """Places 0..last and the dimensions' values there [dims, samples], fine enough to look smooth."""
    import numpy as np

    from vizformer.analysis import positions

    places = np.linspace(0, last, samples)
    return places, positions.waves(d_model, list(dims), places)


def wavelength(d_model: int, pair: int) -> float:
    """Positions until the pair has turned once."""
    return float(6.283185307179586 * 10_000.0 ** (2 * pair / d_model))


@cached
def facts(d_model: int, k: int = 1) -> "CodeFacts":
    from vizformer.analysis.positions import code_facts

    return code_facts(ROWS, d_model, k)


@cached
def shift(d_model: int, k: int) -> "Float[np.ndarray, 'd_model d_model']":
    from vizformer.analysis.positions import shift_matrix

    return shift_matrix(k, d_model)


@cached
def products(d_model: int, furthest: int) -> "tuple[np.ndarray, np.ndarray]":
    """Distances -furthest..furthest and the dot product of two codes that far apart."""
    import numpy as np

    from vizformer.analysis.positions import product_by_distance

    half = product_by_distance(d_model, furthest)
    return np.arange(-furthest, furthest + 1), np.concatenate([half[:0:-1], half])


# --- small models -----------------------------------------------------------------------------------------------------


@cached
def tiny(scheme: Positions) -> "Checkpoint":
    """The trained language model over bytes with this way to tell positions."""
    from vizformer.checkpoints import load

    return load(asset("lessons", "positions", scheme))


@cached
def small(scheme: Positions, vocab_size: int, causal: bool, trained: bool = False) -> "Transformer":
    """The untrained model; `trained`: with the trained model's tables of positions."""
    from vizformer.analysis.positions import small_model

    tables = tiny(scheme).model if trained and scheme in ("learned", "relative") else None
    return small_model(scheme, vocab_size, causal=causal, tables_of=tables)


def order(n: int, kind: str, seed: int) -> tuple[int, ...]:
    """Which token stands where afterwards: the last first, or drawn (never the order that it was)."""
    if kind == "reverse" or n < 2:
        return tuple(reversed(range(n)))
    drawn, rng = list(range(n)), random.Random(seed)
    while drawn == sorted(drawn):
        rng.shuffle(drawn)
    return tuple(drawn)


@cached
def shuffled(
    scheme: Positions, vocab_size: int, causal: bool, ids: tuple[int, ...], order: tuple[int, ...]
) -> "Shuffled":
    from vizformer.analysis.positions import shuffle

    return shuffle(small(scheme, vocab_size, causal), ids, order)


@cached
def effect(scheme: Positions, vocab_size: int, ids: tuple[int, ...]) -> "Float[np.ndarray, 'n_heads n n']":
    """What the scheme adds to each score of the untrained causal model's first layer."""
    from vizformer.analysis.positions import score_effect

    return score_effect(small(scheme, vocab_size, True, trained=True), ids)


@cached
def inputs(scheme: Positions, vocab_size: int, ids: tuple[int, ...]) -> "tuple[np.ndarray, np.ndarray]":
    """Scaled embeddings of the untrained model, and the rows that the scheme adds to them [n, 64] each."""
    import torch

    model = small(scheme, vocab_size, True, trained=True)
    added = model.positions(len(ids))
    if added is None:
        raise ValueError(f"{scheme!r} adds nothing to the input")
    return (model.embedding(torch.tensor(ids)) * model.config.d_model**0.5).numpy(), added.numpy()


@cached
def _unturned(vocab_size: int, ids: tuple[int, ...]) -> "tuple[np.ndarray, np.ndarray]":
    from vizformer.analysis.positions import unturned

    return unturned(small("rope", vocab_size, True), ids)


def unturned(vocab_size: int, ids: tuple[int, ...], head: int, query: int, key: int) -> "dict[str, np.ndarray]":
    """The q of token `query` and the k of token `key` before they are turned, by the names that code has for them."""
    q, k = _unturned(vocab_size, ids)
    return {"q": q[head, query], "k": k[head, key]}


def relative_table() -> "Tensor":
    """The trained numbers of T5's buckets [buckets, n_heads]."""
    decoder = tiny("relative").model.decoder
    assert decoder is not None
    assert decoder.relative_bias is not None
    return decoder.relative_bias.weight.detach()


def rotary(
    vocab_size: int, ids: tuple[int, ...], head: int, pair: int, query: int, key: int, at: tuple[int, int]
) -> "RotaryPair":
    """The q of token `query` and the k of token `key`, turned as if they stood at the positions `at`."""
    from vizformer.analysis.positions import rotary_pair

    q, k = _unturned(vocab_size, ids)
    return rotary_pair(q[head, query], k[head, key], pair, at)


@cached
def biases(scheme: Positions, furthest: int) -> "Float[np.ndarray, 'n_heads distances']":
    """What the trained model adds to the score of a key 0..furthest positions back."""
    from vizformer.analysis.positions import bias_by_distance

    return bias_by_distance(tiny(scheme).model, furthest)


@cached
def buckets(n: int) -> "Int[np.ndarray, 'n n']":
    from vizformer.analysis.positions import bucket_map

    config = tiny("relative").model.config
    return bucket_map(n, config.relative_buckets, config.relative_max_distance, both_sides=False)


@cached
def learned_rows() -> "Float[np.ndarray, 'positions d_model']":
    """The trained table of positions."""
    from vizformer.analysis.positions import position_tables

    return position_tables(tiny("learned").model)[0].numpy()


@cached
def cosines(learned: bool) -> "Float[np.ndarray, 'n n']":
    """Cosines between the trained rows of positions, or between as many rows of the sinusoidal code."""
    import numpy as np

    rows = learned_rows() if learned else code(*learned_rows().shape)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    found: np.ndarray = unit @ unit.T
    return found


# --- past the trained length ------------------------------------------------------------------------------------------


@cached
def measured() -> dict[str, Any]:
    """What was measured when the models were trained (`vizformer.training.lengths.measured`)."""
    from vizformer.training import lengths

    return lengths.measured(asset("lessons", "positions"))


def smooth(curve: "Float[np.ndarray, ' n']", width: int, border: int) -> "Float[np.ndarray, ' n']":
    """A running mean over `width` places (odd), over fewer at the ends and on both sides of `border`.

    Places before the border are not mixed with those from it on: what happens behind the trained length must not seem
    to begin before it.
    """
    import numpy as np

    sides = []
    for side in np.split(curve, [border]):
        sums = np.concatenate([[0.0], np.cumsum(side, dtype=np.float64)])
        places = np.arange(len(side))
        first, last = np.maximum(places - width // 2, 0), np.minimum(places + width // 2 + 1, len(side))
        sides.append((sums[last] - sums[first]) / (last - first))
    return np.concatenate(sides)


def alike(text: str) -> str:
    """The held-out text ("book", "chinese") that goes on in the script of this one."""
    return "chinese" if 2 * sum(ord(character) > 0x2E7F for character in text) > len(text) else "book"


def continued(text: str, rest: str) -> bytes:
    """257 bytes: the text followed by a held-out passage ("book", "chinese"), or again and again ("repeat")."""
    from vizformer.training.lengths import LONGEST

    start, needed = text.encode(), int(LONGEST) + 1
    if rest == "repeat":
        start += b" "
        return (start * (needed // len(start) + 1))[:needed]
    passage: bytes = measured()["passages"][rest].encode()
    return (start + b"\n" + passage * 2)[:needed]


@cached
def own_losses(text: str, rest: str) -> "dict[Positions, Float[np.ndarray, ' length']]":
    """Loss by position of each trained model on the reader's text, continued to 257 bytes."""
    import torch

    from vizformer.training.lengths import losses

    ids = torch.tensor([list(continued(text, rest))])
    return {scheme: losses(tiny(scheme).model, ids)[0].double().numpy() for scheme in SCHEMES}

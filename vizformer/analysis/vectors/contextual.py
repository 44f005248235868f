"""Static against contextual: how alike the vectors of one token are in two texts, layer by layer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.pronouns import Sentence, coins, minimal_pair, places
from vizformer.checkpoints import AnyCheckpoint
from vizformer.explain.arrays import is_half
from vizformer.explain.step import ROUNDINGS
from vizformer.model import Trace
from vizformer.model.input_check import row_at
from vizformer.text import Token

ROUNDING = 1e-5  # of the largest number; float32 keeps 7 digits, and layers add up (half precision: `ROUNDINGS` units)


@dataclass(frozen=True, eq=False)
class SenseGap:
    """Mean cosines of a word's vectors: place 0 is the layers' input, place l + 1 is after layer l."""

    # of each frame the sentence with the first sense and the one with the second
    sentences: tuple[tuple[Sentence, Sentence], ...]
    same: Float[ndarray, " places"]  # between two frames in the same sense
    different: Float[ndarray, " places"]  # between two frames in different senses
    # of all ways in which coins could say which sentence of a frame has which sense, the share in which `same -
    # different` is at least as large (an exact permutation test)
    chance: Float[ndarray, " places"]

    @property
    def share(self) -> Float[ndarray, " places"]:
        """(same - different) / (1 - different): 0 where senses make no difference; 1: two points, one for each sense."""
        room = 1.0 - self.different
        return np.where(room > GAP_ROUNDING, (self.same - self.different) / np.maximum(room, GAP_ROUNDING), 0.0)


GAP_ROUNDING = 1e-6


@dataclass(frozen=True)
class Contexts:
    """Cosines of residual streams from two texts: place 0 is the layers' input, place l + 1 is after layer l."""

    table: float  # the cosine of the two rows of the embedding table: 1 for the same token
    same: Float[ndarray, " places"]  # of the two vectors that are compared, [n_layers + 1]
    # the mean over all pairs of *different* tokens, one from each text: what a cosine is worth here, as all residual
    # streams share common directions (Ethayarajh 2019, "How Contextual are Contextualized Word Representations?",
    # section 4.1)
    other: Float[ndarray, " places"]
    # low, high: the 10th and 90th percentile of these pairs
    low: Float[ndarray, " places"]
    high: Float[ndarray, " places"]
    others: int
    # whether the two vectors agree after the last layer but for rounding: texts of different lengths are multiplied in
    # different orders
    identical: bool
    first: Float[ndarray, "places d_model"]
    second: Float[ndarray, "places d_model"]

    @property
    def curve(self) -> Float[ndarray, " all_places"]:
        """The cosine of the two rows of the embedding table, followed by `same`."""
        return np.concatenate([[self.table], self.same])


def shared(first: Trace, second: Trace) -> tuple[tuple[int, int], ...]:
    """Positions (in the first text, in the second) that hold the same token, each token once, special ones left out.

    Where a token occurs several times, its first place in either text is taken.
    """
    seconds: dict[int, int] = {}
    for position, token in enumerate(reading_tokens(second)):
        if not token.special:
            seconds.setdefault(token.id, position)
    found: dict[int, tuple[int, int]] = {}
    for position, token in enumerate(reading_tokens(first)):
        if not token.special and token.id in seconds:
            found.setdefault(token.id, (position, seconds[token.id]))
    return tuple(found.values())


def contexts(checkpoint: AnyCheckpoint, first: Trace, second: Trace, i: int, j: int) -> Contexts:
    """How alike position i of the first text and position j of the second are, from the table through every layer.

    cos(x_l^A[i], x_l^B[j]),   l = 0 (embeddings with positions), 1, ..., n_layers

    A causal model's vector depends on the tokens up to it: the same beginning gives exactly the same vector.  In a
    model that normalises before its sublayers (pre-norm), this is the residual stream before the final norm.
    """
    tokens = reading_tokens(first), reading_tokens(second)
    i, j = (row_at(position, len(row)) for position, row in zip((i, j), tokens, strict=True))
    different = np.array([[a.id != b.id and not a.special and not b.special for b in tokens[1]] for a in tokens[0]])
    rows = checkpoint.model.token_table().weight[[tokens[0][i].id, tokens[1][j].id]].detach().cpu().double().numpy()
    same, other, low, high = [], [], [], []
    for name in _places(first):
        cosines = _unit(first, name) @ _unit(second, name).T  # [n_first, n_second]
        same.append(cosines[i, j])
        pairs = cosines[different] if different.any() else np.array([np.nan])
        other.append(pairs.mean())
        low.append(np.quantile(pairs, 0.1))
        high.append(np.quantile(pairs, 0.9))
    ends = first.residual(_places(first)[-1])[i], second.residual(_places(second)[-1])[j]
    last = [end.double().cpu().numpy() for end in ends]
    dtype = ends[0].dtype
    rounding = ROUNDINGS * torch.finfo(dtype).eps if is_half(dtype) else ROUNDING
    return Contexts(
        float(_normalised(rows)[0] @ _normalised(rows)[1]),
        np.array(same),
        np.array(other),
        np.array(low),
        np.array(high),
        int(different.sum()),
        bool(np.abs(last[0] - last[1]).max() <= rounding * np.abs(last[0]).max()),
        _vectors(first, i),
        _vectors(second, j),
    )


def _stack(trace: Trace) -> str:
    """The stack that reads the text: the encoder, where there is one."""
    return "encoder" if "encoder.0.pre" in trace.residuals else "decoder"


def reading_tokens(trace: Trace) -> tuple[Token, ...]:
    """The tokens of the stack that reads the text."""
    return trace.tokens[_stack(trace)]


def _places(trace: Trace) -> list[str]:
    stack = _stack(trace)
    posts = [name for name in trace.residuals if name.startswith(f"{stack}.") and name.endswith(".post")]
    return [f"{stack}.0.pre", *posts]


def _vectors(trace: Trace, position: int) -> Float[ndarray, "places d_model"]:
    position = row_at(position, len(reading_tokens(trace)))
    rows = [trace.residual(name)[position] for name in _places(trace)]
    return torch.stack(rows).float().cpu().numpy()


def unit_rows(trace: Trace, position: int) -> Float[ndarray, "places d_model"]:
    """The residual stream of one position at every place, each row divided by its length."""
    return _normalised(_vectors(trace, position).astype(np.float64))


def _unit(trace: Trace, name: str) -> Float[ndarray, "n d_model"]:
    return _normalised(trace.residual(name).cpu().double().numpy())


def _normalised(x: Float[ndarray, "n d_model"]) -> Float[ndarray, "n d_model"]:
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)


# Does a model tell two senses of a word apart?  The cosines of its contextual vectors, layer by layer.
#
# The word stands in the same frames in both senses, each time with one word changed ("went to the bank with his
# money", "... with his boat"). Only vectors of different frames are compared, and every frame takes part in both
# senses: what the frames themselves do to the vector cancels out.
def sense_gap(read: Callable[[str], Trace], frames: Sequence[str]) -> SenseGap:
    """Measures a word in up to `MOST_PAIRS` frames, see `minimal_pair`; the bracketed word is measured."""
    sentences = tuple(map(minimal_pair, frames))
    rows = np.array(
        [[_vectors_at_word(read(one.text), one) for one in pair] for pair in sentences]
    )  # [frame, sense, place, d]
    cosines = np.einsum("asld,btld->abstl", rows, rows)  # [frame, frame, sense, sense, place]
    pairs = cosines[~np.eye(len(rows), dtype=np.bool_)]
    same = (pairs[:, 0, 0] + pairs[:, 1, 1]).mean(0) / 2
    different = (pairs[:, 0, 1] + pairs[:, 1, 0]).mean(0) / 2
    # A coin that falls the other way exchanges the senses of its frame: same and different trade places with the frames
    # whose coins fall otherwise.
    lead = (cosines[:, :, 0, 0] + cosines[:, :, 1, 1] - cosines[:, :, 0, 1] - cosines[:, :, 1, 0]) / 2
    lead[np.eye(len(rows), dtype=np.bool_)] = 0.0
    signs = coins(len(rows))
    drawn = np.einsum("na,abl,nb->nl", signs, lead, signs) / len(pairs)
    return SenseGap(sentences, same, different, (drawn >= drawn[0] - GAP_ROUNDING).mean(0))


def _vectors_at_word(trace: Trace, sentence: Sentence) -> Float[ndarray, "places d_model"]:
    at = places(reading_tokens(trace), sentence.spans[0])[0]
    return unit_rows(trace, at)

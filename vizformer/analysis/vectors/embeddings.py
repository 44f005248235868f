"""The rows of an embedding table: looked up, compared, projected, measured.

Where encoder and decoder have a table each, it is the encoder's: the one that a text is read with.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from safetensors import safe_open
from torch import Tensor

from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.explain.arrays import float64
from vizformer.model import Transformer, without_memory

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|[\u4e00-\u9fff]")


@dataclass(frozen=True, eq=False)
class WordVectors:
    words: tuple[str, ...]
    counts: tuple[int, ...]  # how often each occurred in the text that the table learned from
    unit: Float[ndarray, "n_words width"]  # the rows, less their mean, each of length 1 [n_words, width]

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row index of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def average(self) -> float:
        """The mean cosine of two rows: (|sum of the rows|^2 - n) / (n (n - 1)) for rows of length 1."""
        n = len(self.unit)
        return float((np.square(self.unit.sum(0, dtype=np.float64)).sum() - n) / (n * (n - 1)))

    def nearest(self, word: str, most: int) -> list[tuple[str, float]]:
        """The words whose rows point most nearly in the direction of a word's row, with their cosines.

        Raises:
            KeyError: the table does not have the word.
        """
        own = self.rows[word]
        cosines = self.unit @ (self.unit[own] / max(float(np.linalg.norm(self.unit[own])), 1e-12))
        kept = [row for row in np.argsort(-cosines)[: most + 1] if row != own][:most]
        return [(self.words[row], float(cosines[row])) for row in kept]


@dataclass(frozen=True)
class Lookup:
    """A row of the table E, taken out of it and computed as a product."""

    row: Float[ndarray, " d_model"]  # E[id], [d_model]
    product: Float[ndarray, " d_model"]  # one_hot(id) E, [d_model], in the table's own precision
    difference: float  # the largest |product - row|
    # products, copies: numbers multiplied by the product, and copied by the look-up
    products: int
    copies: int


@dataclass(frozen=True)
class Neighbours:
    """The rows whose direction is nearest to that of one row, nearest first, without itself, and cos(E[id], E[ids])."""

    ids: tuple[int, ...]
    cosines: Float[ndarray, " k"]


@dataclass(frozen=True)
class Projection:
    """Vectors on the plane in which they vary most."""

    points: Float[ndarray, "m 2"]
    explained: Float[ndarray, " 2"]  # share of the variance along each of the two directions

    @property
    def shares(self) -> tuple[float, float]:
        """`explained` as a tuple of two floats."""
        return float(self.explained[0]), float(self.explained[1])


@dataclass(frozen=True)
class Norms:
    """Euclidean lengths of what is added up before the first layer, one for each token."""

    tokens: Float[ndarray, " n"]  # |E[id]|
    positions: Float[ndarray, " n"] | None  # |P[pos]|, None where no position vectors are added
    factor: float  # sqrt(d_model)
    scaled: bool  # whether the model multiplies E[id] by the factor

    def entering(self, scaled: bool) -> Float[ndarray, " n"]:
        """The lengths of the token vectors as they are added up: times the factor if `scaled`."""
        return self.tokens * (self.factor if scaled else 1.0)

    def compared(self, scaled: bool) -> tuple[float, float, float]:
        """The mean length of the token vectors and of the position vectors, and the latter's share of the squares.

        share = sum |P[pos]|^2 / (sum |P[pos]|^2 + sum |x[id]|^2),   x = E, or sqrt(d_model) E if `scaled`

        Raises:
            ValueError: no position vectors are added.
        """
        if self.positions is None:
            raise ValueError("this model adds no position vectors")
        tokens = self.entering(scaled)
        own, others = float(np.sum(self.positions**2)), float(np.sum(tokens**2))
        return float(tokens.mean()), float(self.positions.mean()), own / (own + others)


def table(checkpoint: AnyCheckpoint) -> Tensor:
    """The embedding table E that a text is read with [vocab_size, d_model]: the model's own memory, to be read only."""
    return checkpoint.model.token_table("encoder").weight.detach()


def entries(checkpoint: AnyCheckpoint, rows: Sequence[int], columns: Sequence[int]) -> Float[ndarray, "rows columns"]:
    """Some rows and columns of the embedding table, in float64."""
    return float64(table(checkpoint)[list(rows)][:, list(columns)])


def lookup(checkpoint: AnyCheckpoint, id: int) -> Lookup:
    """Row `id` of the embedding table, and the product of a one-hot row with the table.

    e_id E = sum_v [v = id] E[v] = E[id]

    Every product but one is 0, so the two agree to the last bit.
    """
    E = _table(checkpoint)
    _check(id, E.shape[0])
    one_hot = torch.nn.functional.one_hot(torch.tensor(id), E.shape[0]).to(E.dtype)  # [vocab_size]
    product, row = one_hot @ E, E[id]  # [d_model]
    difference = float((product - row).abs().max())
    return Lookup(row.double().numpy(), product.double().numpy(), difference, E.numel(), E.shape[1])


def directions(checkpoint: AnyCheckpoint, *, centred: bool = False) -> Float[ndarray, "vocab_size d_model"]:
    """The rows of the embedding table, each of length 1 (a row of zeros stays 0), in float32.

    With `centred` the mean of all rows is taken off first: trained rows share a common direction, which makes all of
    them look alike (Mu & Viswanath 2018, "All-but-the-Top", section 2).
    """
    rows = _table(checkpoint).numpy()
    if centred:
        rows = rows - rows.mean(0, dtype=np.float64).astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def neighbours(directions: Float[ndarray, "vocab_size d_model"], id: int, k: int = 8) -> Neighbours:
    """The k rows with the largest cosine to row `id`.

    cos(a, b) = a . b / (|a| |b|),   which is a . b for the rows of `directions`
    """
    count = len(directions)
    _check(id, count)
    cosines = directions @ directions[id]  # [vocab_size]
    cosines[id] = -np.inf
    k = min(k, count - 1)
    nearest = np.argpartition(-cosines, k - 1)[:k]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    return Neighbours(tuple(int(i) for i in nearest), cosines[nearest].astype(np.float64))


def average_cosine(directions: Float[ndarray, "vocab_size d_model"]) -> float:
    """The mean cosine of two different rows, over all pairs.

    |sum_i u_i|^2 = sum_i |u_i|^2 + sum_{i != j} u_i . u_j,   so no pair needs to be visited
    """
    count = len(directions)
    total = directions.sum(0, dtype=np.float64)
    own = float(np.einsum("ij,ij->", directions, directions, dtype=np.float64))
    return (float(total @ total) - own) / (count * (count - 1))


def project(vectors: Float[ndarray, "m d"]) -> Projection:
    """Principal component analysis: X - mean = U S V^T; the points are the first two columns of U S.

    The share of the variance along direction i is S_i^2 / sum S^2.  Signs are chosen so that the largest entry of
    each direction is positive: the same vectors always give the same picture.

    Source: Pearson 1901, "On lines and planes of closest fit to systems of points in space".
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    centred = vectors - vectors.mean(0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(vt[np.arange(len(vt)), np.abs(vt).argmax(1)])
    points, shares = np.zeros((len(vectors), 2)), np.zeros(2)
    kept = min(2, len(s))
    points[:, :kept] = (u * s * signs)[:, :kept]
    if total := float(np.sum(s**2)):
        shares[:kept] = s[:kept] ** 2 / total
    return Projection(points, shares)


def norms(checkpoint: AnyCheckpoint, ids: Int[ndarray, " n"]) -> Norms:
    """How long the token and position vectors are that are added before the first layer.

    Rows drawn with standard deviation d_model^-0.5 have a length of about 1; a sinusoidal position vector has exactly
    sqrt(d_model / 2), as its pairs are sine and cosine of one angle.  Times sqrt(d_model), the tokens weigh as much.

    Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.4 and 3.5.
    """
    model = checkpoint.model
    added = model.positions(len(ids))
    rows = table(checkpoint)[torch.as_tensor(ids)].detach().cpu()
    lengths = rows.double().norm(dim=1).numpy()  # [n]
    places = None if added is None else added.double().norm(dim=1).cpu().numpy()  # [n]
    return Norms(lengths, places, math.sqrt(model.config.d_model), model.config.scaled_embedding)


def input_parts(checkpoint: AnyCheckpoint, ids: Sequence[int]) -> dict[str, Tensor | int]:
    """What enters the first layer, x_0 = E[ids] (times sqrt(d_model)) + P, by name: E, ids, d_model, and P where rows are
    added for the positions 0..n-1 [n, d_model].
    """
    model = checkpoint.model
    found: dict[str, Tensor | int] = {
        "E": table(checkpoint),
        "ids": torch.tensor(list(ids)),
        "d_model": model.config.d_model,
    }
    positions = model.positions(len(ids))
    return found if positions is None else found | {"P": positions.detach()}


def with_scale(checkpoint: AnyCheckpoint, scaled: bool) -> AnyCheckpoint:
    """A checkpoint with the same weights, and with or without the factor sqrt(d_model) on the embeddings."""
    model = checkpoint.model
    if model.config.scaled_embedding == scaled:
        return checkpoint
    with without_memory():
        twin = Transformer(replace(model.config, scaled_embedding=scaled))
    twin.load_state_dict(model.state_dict(), assign=True)  # shares the weights' memory
    twin.materialise_buffers()
    return replace(checkpoint, model=twin)  # type: ignore[type-var]  # (one with `model` is a dataclass)


def _table(checkpoint: AnyCheckpoint) -> Tensor:
    return table(checkpoint).cpu().float()


def _check(id: int, count: int) -> None:
    if not 0 <= id < count:
        raise TraceError("Token id {id} is outside the vocabulary: ids go from 0 to {last}.", id=id, last=count - 1)


# Static word vectors: one row for each word, wherever it stands.
#
# Source: Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space" (the table, and sums
# such as brother - he + she); the bundled table is made by `recipes.word_vectors`.
def plain_words(text: str) -> list[str]:
    """Splits a text into the words of these vectors: lower-case runs of English letters, and single Chinese characters."""
    return _WORD.findall(text.lower().replace("’", "'"))


def read_word_vectors(path: Path) -> WordVectors:
    """The table of a file that `recipes.word_vectors` wrote."""
    with safe_open(path, "np") as file:
        notes, vectors = file.metadata(), file.get_tensor("vectors").astype(np.float32)
    vectors = vectors - vectors.mean(0)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return WordVectors(tuple(notes["words"].split("\n")), tuple(map(int, notes["counts"].split())), unit)

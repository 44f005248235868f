"""Disentangled attention: scores that also compare contents with distances, and distances with contents.

A learned vector stands for every distance between two tokens.  Each layer makes a key and a query of it, head by head, and
the score of query i and key j has up to three terms instead of one:

score_ij = (q_i . k_j  +  q_i . k^r_d(i,j)  +  k_j . q^r_d(i,j)) * scale,   scale = 1 / sqrt(d_head * number of terms)

content to content, content to position (c2p), position to content (p2c); d(i, j) is the row of the table (`relative_rows`).

Source: He et al. 2021, "DeBERTa: Decoding-enhanced BERT with Disentangled Attention", section 3.1.  The paper writes
d(j, i) in the last term; the code and the weights published with it have d(i, j), as here.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.embedding import embedding_table
from vizformer.model.norms import norm
from vizformer.model.positions import relative_positions


@dataclass(frozen=True)
class Distances:
    """The vectors of the distances between the tokens of a text.

    Attributes:
        vectors: those rows of the table that the text needs, normalised where the model does so.
        rows: which of them is that of query i and key j.
        first: which row of the whole table is the first of them.
    """

    vectors: Float[Tensor, "n_rows d_model"]
    rows: Int[Tensor, "n n"]
    first: int = 0


def relative_rows(relative: Int[Tensor, "*at n_k"], span: int, furthest: int | None = None) -> Int[Tensor, "*at n_k"]:
    """The row of the table of 2 k vectors for every relative position j - i; with r = i - j and k = `span`:

    d(i, j) = b(r) + k, held between 0 and 2 k - 1

    b(r) = r, a row for each distance.  Where `furthest` is given, this is so for |r| <= m = floor(k / 2) only; farther
    ones share ever longer stretches, up to `furthest`:

    b(r) = sign(r) (m + ceil(ln(|r| / m) / ln((furthest - 1) / m) (m - 1)))

    The logarithms are of float32, as the models were trained: where a stretch ends exactly at a distance, rounding decides.

    Source: He et al. 2021, "DeBERTa", equation 3; for the logarithms, the code published with DeBERTa v2 and He et al. 2023,
    "DeBERTaV3: Improving DeBERTa using ELECTRA-Style Pre-Training with Gradient-Disentangled Embedding Sharing".
    """
    behind = -relative  # i - j
    if furthest is not None:
        middle = span // 2
        distance = behind.abs().clamp(min=middle)
        widest = torch.log(torch.tensor((furthest - 1) / middle))
        far = torch.ceil(torch.log(distance / middle) / widest * (middle - 1)) + middle
        behind = torch.where(behind.abs() <= middle, behind, (far * behind.sign()).long())
    return (behind + span).clamp(0, 2 * span - 1)


def table_rows(n: int, span: int, furthest: int | None = None) -> range:
    """The rows that a text of `n` tokens needs."""
    ends = relative_rows(torch.tensor([n - 1, 1 - n]), span, furthest)  # the farthest key behind a query, and before it
    return range(int(ends[0]), int(ends[1]) + 1)


class RelativeTable(nn.Module):
    """The learned vectors of the distances, the same in all layers, and their norm where they have one (DeBERTa v2, v3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.span, self.furthest = config.disentangled_span, config.disentangled_furthest
        self.vectors = embedding_table(2 * self.span, config.d_model)
        self.norm = norm(config) if config.disentangled_norm else None

    def forward(self, n: int) -> Distances:
        """For a text of `n` tokens; rows that it does not need are left out."""
        weight: Tensor = self.vectors.weight
        rows = relative_rows(relative_positions(n, n, weight.device), self.span, self.furthest)  # [n, n]
        needed = table_rows(n, self.span, self.furthest)
        vectors = weight[needed.start : needed.stop]  # [n_rows, d_model]
        return Distances(vectors if self.norm is None else self.norm(vectors), rows - needed.start, needed.start)


class RelativeProjections(nn.Module):
    """The matrices that make keys and queries of the vectors of distances, where a layer has some of its own.

    None where a term is missing; with disentangled_shared both are, as W_K and W_Q of the contents serve.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, own = config.n_heads * config.d_head, not config.disentangled_shared
        self.W_K = nn.Linear(config.d_model, width, bias=config.qkv_bias) if own and config.has_c2p else None
        self.W_Q = nn.Linear(config.d_model, width, bias=config.qkv_bias) if own and config.has_p2c else None


def distance_scores(
    q: Float[Tensor, "b h n d"],
    k: Float[Tensor, "b h n d"],
    keys: Float[Tensor, "h n_rows d"] | None,
    queries: Float[Tensor, "h n_rows d"] | None,
    rows: Int[Tensor, "n n"],
    scale: float,
) -> Float[Tensor, "b h n n"]:
    """(q_i . keys_rows(i,j) + k_j . queries_rows(i,j)) * scale, in every head; a term whose vectors are None is left out.

    Half precision is left inside, as the fused call that this is added in does.
    """
    total = q.new_zeros((*q.shape[:2], *rows.shape), dtype=_wide(q).dtype)  # [b, h, n, n]
    index = rows.expand(total.shape)  # [b, h, n, n]
    if keys is not None:
        total = total + (_wide(q) @ _wide(keys).mT).gather(-1, index)  # [b, h, n, n_rows] -> [b, h, n, n]
    if queries is not None:
        total = total + (_wide(queries) @ _wide(k).mT).gather(-2, index)  # [b, h, n_rows, n] -> [b, h, n, n]
    return total * scale


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x

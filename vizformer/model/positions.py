"""Positions: vectors added to embeddings (sinusoidal), queries and keys turned (RoPE), biases of scores (ALiBi, T5)."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vizformer.config import ModelConfig
from vizformer.options import Sinusoids


def sinusoidal_encoding(n: int, d_model: int, sinusoids: Sinusoids = "interleaved") -> Float[Tensor, "n d_model"]:
    """Sine and cosine waves of geometrically growing wavelength.

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)),  PE[pos, 2i+1] = cos(pos / 10000^(2i/d_model))

    In "halves" the sines are PE[pos, i] and the cosines PE[pos, d_model/2 + i]: the same in another order.

    Row 0 is 0, 1, 0, 1, ...; low dimensions oscillate fast (wavelength 2 pi), high ones slowly (up to 20000 pi).
    The angles are computed in float64: at position 5000 float32 angles are already wrong in the fourth digit.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    position = torch.arange(n, dtype=torch.float64)[:, None]  # [n, 1]
    pair = torch.arange(0, d_model, 2, dtype=torch.float64)  # [d_model/2]
    angle = position * torch.exp(-math.log(10_000.0) * pair / d_model)  # [n, d_model/2]
    encoding = torch.stack([angle.sin(), angle.cos()], dim=1 if sinusoids == "halves" else 2)  # 2 at that place
    return encoding.reshape(n, d_model).float()  # [n, d_model]


@dataclass(frozen=True)
class Rotation:
    """Rotary positions: cosine and sine of every angle pos * theta^(-2m/d), [n, d/2] each; d is d_head."""

    cos: Float[Tensor, "n pairs"]
    sin: Float[Tensor, "n pairs"]

    def __getitem__(self, positions: slice) -> "Rotation":
        return Rotation(self.cos[positions], self.sin[positions])

    def turn(self, x: Float[Tensor, "b h n d_head"]) -> Float[Tensor, "b h n d_head"]:
        """Turns each pair of numbers of a query or key by its position's angle.

        x'_m = x_m cos - x_(m+d/2) sin,   x'_(m+d/2) = x_m sin + x_(m+d/2) cos,   angle = pos * theta^(-2m/d)

        The dot product of a turned query and a turned key then depends only on how far apart they stand.
        Pairs are (m, m + d/2), as in LLaMA's published weights; the paper's are (2m, 2m+1): the same up to an order of the
        dimensions.

        Source: Su et al. 2021, "RoFormer", equations 13 and 34.
        """
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)  # [n, d/2]
        first, second = x.chunk(2, dim=-1)  # [b, h, n, d/2] each
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)  # [b, h, n, d_head]


def rope_frequencies(config: ModelConfig) -> Float[Tensor, " pairs"]:
    """By how much each pair turns from one position to the next: theta^(-2m/d), the first pair fastest.

    Where the model was fitted to longer texts, pairs are slowed down: "linear" all by the factor F; "llama3" those
    that turn r times in the texts of the first training, r = trained * frequency / (2 pi), by

    frequency * (s + (1 - s) / F),   s = (r - low) / (high - low), held between 0 and 1

    Source: Su et al. 2021, "RoFormer", section 3.2.2; Chen et al. 2023, "Extending Context Window of Large Language
    Models via Position Interpolation"; Grattafiori et al. 2024, "The Llama 3 Herd of Models".
    """
    d = config.d_head
    pair = torch.arange(0, d, 2, dtype=torch.float64)  # [pairs]
    frequency = torch.exp(-math.log(config.rope_theta) * pair / d)
    if config.rope_scaling == "linear":
        return frequency / config.rope_factor
    if config.rope_scaling == "llama3":
        turns = config.rope_trained_positions * frequency / (2 * math.pi)
        kept = ((turns - config.rope_low_turns) / (config.rope_high_turns - config.rope_low_turns)).clamp(0, 1)
        return frequency * (kept + (1 - kept) / config.rope_factor)
    return frequency


def rotation(n: int, frequencies: Float[Tensor, " pairs"]) -> Rotation:
    """The rotations of positions 0..n-1: pair m turns by pos * frequencies[m]."""
    position = torch.arange(n, dtype=torch.float64)[:, None]  # [n, 1]
    angle = position * frequencies  # [n, pairs]
    return Rotation(angle.cos().float(), angle.sin().float())


def relative_positions(n_q: int, n_k: int, device: torch.device | None = None) -> Int[Tensor, "n_q n_k"]:
    """j - i: how far key j stands behind query i, negative where it is before; the last query is at the last key."""
    query = torch.arange(n_k - n_q, n_k, device=device)[:, None]  # [n_q, 1]
    return torch.arange(n_k, device=device)[None, :] - query  # [n_q, n_k]


def alibi_slopes(n_heads: int) -> Float[Tensor, " n_heads"]:
    """The slope m_h of each head: the score falls by m_h for every step of distance.

    m_h = 2^(-8(h+1)/n_heads),   h = 0..n_heads-1

    for n_heads a power of two: head 0 looks nearest.  Otherwise the slopes of the next lower power of two, P, followed
    by every second slope of 2P heads, from the first on, until there are enough.

    Source: Press, Smith & Lewis 2021, "Train Short, Test Long", section 3; the rule for other numbers of heads is their
    implementation's.
    """
    power = 1 << (n_heads.bit_length() - 1)
    exponents = [-8 * (h + 1) / power for h in range(power)]
    exponents += [-8 * (2 * h + 1) / (2 * power) for h in range(n_heads - power)]
    return torch.tensor([2.0**exponent for exponent in exponents])  # [n_heads]


def alibi_bias(slopes: Float[Tensor, " n_heads"], n_q: int, n_k: int) -> Float[Tensor, "1 n_heads n_q n_k"]:
    """-m_h |i - j|, added to the scores: the same on both sides of the query, where both can be seen.

    Source: Press, Smith & Lewis 2021, "Train Short, Test Long", section 3.
    """
    distance = relative_positions(n_q, n_k, slopes.device).abs()  # [n_q, n_k]
    return slopes.float()[None, :, None, None] * -distance  # [1, n_heads, n_q, n_k]


def relative_buckets(
    relative: Int[Tensor, "n_q n_k"], buckets: int = 32, max_distance: int = 128, *, both_sides: bool
) -> Int[Tensor, "n_q n_k"]:
    """The row of T5's table for every relative position j - i, for distance D = |i - j|.

    D                                                        for D < E,  E = B / 2
    min(B - 1, E + floor(ln(D / E) / ln(max / E) (B - E)))   otherwise

    Near keys have a bucket each, farther ones share ever longer stretches, and beyond max_distance all share the last.
    With `both_sides` (an encoder) B is half of `buckets`, and keys behind the query use the second half.  Without
    (a decoder) B is `buckets`, and keys behind the query, which it cannot see, count as distance 0.

    Source: Raffel et al. 2019, "Exploring the Limits of Transfer Learning" (T5), section 2.1, and their implementation.
    """
    if both_sides:
        buckets //= 2
        distance, first = relative.abs(), (relative > 0) * buckets
    else:
        distance, first = (-relative).clamp(min=0), torch.zeros_like(relative)
    exact = buckets // 2
    stretch = torch.log(distance.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    far = (exact + (stretch * (buckets - exact)).long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, far)


def relative_bias(
    table: Float[Tensor, "buckets n_heads"], n_q: int, n_k: int, max_distance: int = 128, *, both_sides: bool
) -> Float[Tensor, "1 n_heads n_q n_k"]:
    """table[bucket(j - i), h], added to the scores.

    Source: Raffel et al. 2019, "Exploring the Limits of Transfer Learning" (T5), section 2.1.
    """
    relative = relative_positions(n_q, n_k, table.device)
    rows = relative_buckets(relative, table.shape[0], max_distance, both_sides=both_sides)
    return F.embedding(rows, table).permute(2, 0, 1)[None].contiguous()  # [1, n_heads, n_q, n_k]


def position_tables(config: ModelConfig) -> dict[str, Tensor]:
    """The tables that follow from the options alone and are not saved with the weights, by the names of their buffers."""
    if config.positions == "sinusoidal":
        return {"position_encoding": sinusoidal_encoding(config.max_positions, config.d_model, config.sinusoids)}
    if config.positions == "rope":
        table = rotation(config.max_positions, rope_frequencies(config))
        return {"rope_cos": table.cos, "rope_sin": table.sin}
    return {"alibi_slopes": alibi_slopes(config.n_heads)} if config.positions == "alibi" else {}

"""The station of attention: which queries see which keys, and what becomes of their scores."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message, ranges
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Count, Layers, Positive, are_layers

AttentionBias = Literal["same", "all", "qkv", "none"]


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(CommonOptions):
    """softmax(q k^T * scale + position bias + mask) v, in every head.

    Attributes:
        attention_scale: what the dot products of queries and keys are multiplied by; None: 1 / sqrt(d_head). T5 has 1.
        sliding_window: how many keys a query of self-attention sees, the latest ones, itself included (Child et al.
            2019, "Sparse Transformers"; Jiang et al. 2023, "Mistral 7B", section 2); an encoder's sees as many to either
            side, itself included in both (Beltagy et al. 2020, "Longformer"); None: all but the future.
        sliding_layers: the layers in which the window holds, counted from 0, in order; None: all (Qwen2 has it in the
            last ones only, others in every second one).
        qk_norm: every query and key goes through a norm over its d_head numbers, one for the queries and one for the
            keys of a layer, before "rope" turns it (Henry et al. 2020; Qwen3).
        attention_bias: which of the linear layers of attention have biases: the "same" as bias says, "all", those of "qkv"
            but not the last one (Qwen2), or "none".
    """

    attention_scale: Positive | None = None
    sliding_window: Count | None = None
    sliding_layers: Layers | None = None
    qk_norm: bool = False
    attention_bias: AttentionBias = "same"

    @property
    def windowed_layers(self) -> frozenset[int]:
        """The layers whose self-attention has a sliding window."""
        if self.sliding_window is None:
            return frozenset()
        return frozenset(range(self.depth) if self.sliding_layers is None else self.sliding_layers)

    @property
    def qkv_bias(self) -> bool:
        """Whether W_Q, W_K and W_V have biases."""
        return self.bias if self.attention_bias == "same" else self.attention_bias in ("all", "qkv")

    @property
    def out_bias(self) -> bool:
        """Whether W_O has a bias."""
        return self.bias if self.attention_bias == "same" else self.attention_bias == "all"

    def scores_formula(self, product: str) -> str:
        """LaTeX of the scores before anything is added: `product`, a product of queries and keys, times the scale."""
        if self.attention_scale is None:
            return rf"\tfrac{{{product}}}{{\sqrt{{d_\text{{head}}}}}}"
        return product if self.attention_scale == 1 else rf"{self.attention_scale:.4g}\,{product}"

    def sentences(self) -> Iterator[Message]:
        """One sentence for each unusual thing that a head does."""
        if self.qk_norm:
            yield N_("Each query and each key is brought to a standard size before they are compared.")
        if self.kv_heads != self.n_heads:
            yield N_(
                "{kv_heads} key/value heads serve them: {group} query heads share one.",
                kv_heads=self.kv_heads,
                group=self.n_heads // self.kv_heads,
            )

    def rules(self) -> Iterator[Message]:
        if self.n_heads >= 1 and self.head_dim is None and self.d_model % self.n_heads:
            yield N_(
                "d_model={d_model} is not divisible by n_heads={n_heads}: choose n_heads from {divisors}",
                d_model=self.d_model,
                n_heads=self.n_heads,
                divisors=_divisors(self.d_model),
            )
        if self.n_kv_heads is not None and (self.n_kv_heads < 1 or self.n_heads % self.n_kv_heads):
            yield N_(
                "n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}: choose n_kv_heads from {divisors}",
                n_heads=self.n_heads,
                n_kv_heads=self.n_kv_heads,
                divisors=_divisors(self.n_heads),
            )
        if self.sliding_window is not None and self.architecture == "encoder-decoder":
            yield N_("sliding_window={value}: only one stack alone has one, leave it out", value=self.sliding_window)
        if self.sliding_layers is not None:
            if self.sliding_window is None:
                yield N_("sliding_layers without sliding_window: give both or neither")
            elif not are_layers(self.sliding_layers, self.depth):
                yield N_(
                    "sliding_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where "
                    "all have the window",
                    value=str(list(self.sliding_layers)),
                    last=self.depth - 1,
                )

    def details(self) -> Iterator[Message]:
        if self.attention_bias != "same" and self.qkv_bias and not self.out_bias:
            yield N_("attention: queries, keys and values have biases, the output has none")
        if self.qkv_bias and self.out_bias and not self.bias:
            yield N_("attention has biases, the feed-forward layers have none")
        if self.bias and not self.qkv_bias:
            yield N_("the feed-forward layers have biases, attention has none")
        if self.sliding_window is not None:
            yield self._window(self.sliding_window)
        if self.qk_norm:
            yield N_("queries and keys are normalised")
        if self.attention_scale is not None:
            yield N_("scores are dot products times {scale}, not over √d_head", scale=f"{self.attention_scale:g}")

    def _window(self, window: int) -> Message:
        layers = ranges(sorted(self.windowed_layers))
        if self.architecture == "encoder-only":
            return N_(
                "sliding window (layers: {layers}): a query sees only the tokens up to {reach} places away, on both sides",
                layers=layers,
                reach=f"{window - 1:,}",
            )
        if len(self.windowed_layers) == self.depth:
            return N_(
                "sliding window: a query sees only the latest {window} tokens, itself included", window=f"{window:,}"
            )
        return N_(
            "sliding window (layers: {layers}): a query sees only the latest {window} tokens, itself included; in the "
            "other layers all before it",
            layers=layers,
            window=f"{window:,}",
        )


def _divisors(n: int) -> str:
    return ", ".join(str(h) for h in range(1, min(n, 64) + 1) if n % h == 0)

"""The station of attention: which queries see which keys, and what becomes of their scores."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from vizformer.messages import N_, Message, ranges
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import Count, Layers, Positive, are_layers

AttentionBias = Literal["same", "all", "qkv", "none"]
NormedOver = Literal["head", "all"]
StateRule = Literal["delta", "space", "convolution"]

_STEPS = ("state_step_least", "state_step_most")
_LACKING: Mapping[StateRule, tuple[str, ...]] = {
    "delta": ("state_bias", *_STEPS),
    "space": (),
    "convolution": ("state_key_heads", "state_value_heads", "state_key_dim", "state_value_dim", *_STEPS),
}  # options that the layers of a rule do not have
MOST_TAPS = 64  # of a short convolution: each is a head


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(CommonOptions):
    """softmax(cap(q k^T * scale) + position bias + mask) v, in every head.

    Attributes:
        attention_scale: what the dot products of queries and keys are multiplied by; None: 1 / sqrt(d_head). T5 has 1.
        score_cap: the scores are bent by cap * tanh(score / cap) before the mask is added, so that none is beyond it
            (Gemma 2); None: they are not.
        sliding_window: how many keys a query of self-attention sees, the latest ones, itself included (Child et al.
            2019, "Sparse Transformers"; Jiang et al. 2023, "Mistral 7B", section 2); an encoder's sees as many to either
            side, itself included in both (Beltagy et al. 2020, "Longformer"; ModernBERT); None: all but the future.
        sliding_layers: the layers in which the window holds, counted from 0, in order; None: all (Qwen2 has it in the
            last ones only, others in every second one).
        qk_norm: every query and key goes through a norm over its d_head numbers, one for the queries and one for the
            keys of a layer, before "rope" turns it (Henry et al. 2020; Qwen3).
        qk_norm_over: whether that norm is over each "head" by itself, or over "all" of them side by side, with a scale of
            its own for every number (OLMo 2).
        qk_norm_layers: the layers that have that norm, counted from 0, in order (Llama 4, where only layers that turn have
            it); None: all.
        value_norm: every value is divided by its root mean square, v / sqrt(mean(v^2) + norm_eps), with nothing learned
            (Gemma 4).
        attention_bias: which of the linear layers of attention have biases: the "same" as bias says, "all", those of "qkv"
            but not the last one (Qwen2), or "none".
        sinks: every head has a learned score beside those of the keys, which takes its share of the softmax and carries no
            value: a head that finds nothing can give its weight away (Xiao et al. 2023; gpt-oss).
        attention_gate: what a head has mixed is multiplied, number by number, by sigmoid(x W_gate) before W_O (Qiu et al.
            2025, "Gated Attention for Large Language Models"; Qwen3-Next).
        kv_layers: for every layer the number of the layer whose keys and values it reads, its own or that of an earlier one,
            so that a cache keeps those of fewer layers (Brandon et al. 2024, "Reducing Transformer Key-Value Cache Size with
            Cross-Layer Attention"; Gemma 3n, whose last layers read those of the last layer before them that has the same
            window); None: each its own.
        state_layers: the layers that keep a state in the place of self-attention, counted from 0, in order
            (`vizformer.model.state_rule`); None: none.
        state_rule: how they write it: by the gated "delta" rule (Yang et al. 2024, "Gated Delta Networks"), or as a state
            "space" (Dao & Gu 2024, "Transformers are SSMs"; Mamba-2); or, without a state, a short "convolution" between
            two gates (Liquid AI 2025, "LFM2 Technical Report"; `vizformer.model.short_convolution`).
        state_key_heads, state_value_heads: of these layers, heads of queries and keys, and of values; None: n_heads.
        state_key_dim, state_value_dim: how wide they are; None: d_head.
        state_kernel: over how many tokens their short convolution goes, the token itself included; where there is nothing
            else, each of these is a head.
        state_bias: whether their linear layers have biases (and the convolution, where there is nothing else).
        state_step_least, state_step_most: of a state space, between what the step is held; None: no limit but 0.
    """

    attention_scale: Positive | None = None
    score_cap: Positive | None = None
    sliding_window: Count | None = None
    sliding_layers: Layers | None = None
    qk_norm: bool = False
    qk_norm_over: NormedOver = "head"
    qk_norm_layers: Layers | None = None
    value_norm: bool = False
    attention_bias: AttentionBias = "same"
    sinks: bool = False
    attention_gate: bool = False
    kv_layers: Layers | None = None
    state_layers: Layers | None = None
    state_rule: StateRule = "delta"
    state_key_heads: Count | None = None
    state_value_heads: Count | None = None
    state_key_dim: Count | None = None
    state_value_dim: Count | None = None
    state_kernel: Count = 4
    state_bias: bool = False
    state_step_least: Positive | None = None
    state_step_most: Positive | None = None

    @property
    def plain_scores(self) -> bool:
        """Whether the content's scores are q k^T / sqrt(d_head), as in the paper, and nothing is done to them."""
        return self.attention_scale is None and self.score_cap is None

    @property
    def windowed_layers(self) -> frozenset[int]:
        """The layers whose self-attention sees only the window."""
        if self.sliding_window is None:
            return frozenset()
        return frozenset(range(self.depth) if self.sliding_layers is None else self.sliding_layers)

    def has_qk_norm(self, layer: int) -> bool:
        """Whether the queries and keys of a layer are normalised."""
        return self.qk_norm and (self.qk_norm_layers is None or layer in self.qk_norm_layers)

    def kv_layer(self, layer: int) -> int:
        """The layer whose keys and values a layer reads."""
        return layer if self.kv_layers is None else self.kv_layers[layer]

    @property
    def shared_kv_layers(self) -> tuple[int, ...]:
        """The layers that read those of an earlier one."""
        return tuple(layer for layer in range(self.depth) if self.kv_layer(layer) != layer)

    @property
    def n_kv_layers(self) -> int:
        """Layers of a decoder that make keys and values: what a cache keeps is theirs."""
        return self.n_decoder_layers - self.n_state_layers - len(self.shared_kv_layers)

    def has_state(self, layer: int) -> bool:
        """Whether a layer keeps a state in the place of attention."""
        return self.state_layers is not None and layer in self.state_layers

    @property
    def state_heads(self) -> tuple[int, int]:
        """Heads of these layers: of queries and keys, and of values."""
        if self.state_rule == "convolution":
            return self.state_kernel, self.state_kernel
        return self.state_key_heads or self.n_heads, self.state_value_heads or self.n_heads

    @property
    def n_state_layers(self) -> int:
        return len(self.state_layers or ())

    @property
    def only_states(self) -> bool:
        """Whether no layer has attention."""
        return self.n_state_layers == self.depth

    @property
    def state_channels(self) -> int:
        """Numbers a token that go through the short convolution: those of queries, keys and values, or of a row."""
        if self.state_rule == "convolution":
            return self.d_model
        (n_keys, n_heads), (d_key, d_value) = self.state_heads, self.state_dims
        return 2 * n_keys * d_key + n_heads * d_value

    @property
    def state_dims(self) -> tuple[int, int]:
        """How wide these are."""
        if self.state_rule == "convolution":
            return 1, self.d_model
        return self.state_key_dim or self.d_head, self.state_value_dim or self.d_head

    @property
    def state_sizes(self) -> dict[str, Any]:
        """All sizes of these layers as options, those included that follow from the heads; none where there are none."""
        if self.state_layers is None or self.state_rule == "convolution":
            return {}
        names = ("state_key_heads", "state_value_heads", "state_key_dim", "state_value_dim")
        return dict(zip(names, (*self.state_heads, *self.state_dims), strict=True))

    @property
    def state_options(self) -> tuple[str, ...]:
        """The names of the other options of these layers that are given."""
        names = (one.name for one in fields(self) if one.name.startswith("state_") and one.name != "state_layers")
        return tuple(name for name in names if getattr(self, name) != getattr(AttentionOptions, name))

    def heads_of(self, layer: int) -> tuple[int, int]:
        """Heads of a layer, and of its keys: several heads may share one."""
        if self.has_state(layer):
            n_keys, n_heads = self.state_heads
            return n_heads, n_keys
        return self.n_heads, (self.wide_kv_heads if self.is_wide(layer) else None) or self.kv_heads

    @property
    def most_heads(self) -> int:
        """Heads of the layers that have most of them."""
        if self.state_layers is None:
            return self.n_heads
        return self.state_heads[1] if self.only_states else max(self.n_heads, self.state_heads[1])

    @property
    def qkv_bias(self) -> bool:
        """Whether W_Q, W_K and W_V have biases."""
        return self.bias if self.attention_bias == "same" else self.attention_bias in ("all", "qkv")

    @property
    def out_bias(self) -> bool:
        """Whether W_O has a bias."""
        return self.bias if self.attention_bias == "same" else self.attention_bias == "all"

    def scores_formula(self, product: str) -> str:
        """What becomes of a product of queries and keys before anything is added to it; LaTeX."""
        if self.attention_scale is None:
            scores = rf"\tfrac{{{product}}}{{\sqrt{{d_\text{{head}}}}}}"
        else:  # a factor of 1 needs no mention
            scores = product if self.attention_scale == 1 else rf"{self.attention_scale:.4g}\,{product}"
        cap = self.score_cap
        return scores if cap is None else rf"{cap:g} \tanh\tfrac{{{scores}}}{{{cap:g}}}"

    def sentences(self) -> Iterator[Message]:
        """What is done in a head beside the usual, one sentence each."""
        if self.qk_norm and self.qk_norm_over == "all":
            yield N_(
                "The queries of all heads together, and the keys likewise, are brought to a standard size before they are "
                "compared."
            )
        elif self.qk_norm:
            yield N_("Each query and each key is brought to a standard size before they are compared.")
        if self.score_cap is not None:
            yield N_("A soft cap bends the scores: none goes beyond ±{cap}.", cap=f"{self.score_cap:g}")
        if self.kv_layers is not None:
            yield N_(
                "These layers make no keys and values, but read those of an earlier one: {layers}.",
                layers=ranges(self.shared_kv_layers),
            )
        if self.sinks:
            yield N_(
                "Each head has a sink: a learned score that takes a share of the softmax and carries no value, so that the "
                "weights of the tokens sum to less than 1."
            )
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
        yield from self._rules_of_shared_layers()
        yield from self._rules_of_wide_layers()
        for name in self.state_options:
            if self.state_layers is None:
                yield N_("{name} without state_layers: give both, or leave it out", name=name)
            elif name in _LACKING.get(self.state_rule, ()):
                yield (
                    N_("{name}: the layers of the delta rule have none, leave it out", name=name)
                    if self.state_rule == "delta"
                    else N_("{name}: short convolutions (state_rule='convolution') have none, leave it out", name=name)
                )
        if self.state_layers is not None and self.state_rule == "convolution" and self.state_kernel > MOST_TAPS:
            yield N_("state_kernel={n}: of short convolutions at most {most}", n=self.state_kernel, most=MOST_TAPS)
        if self.state_layers is not None and self.architecture != "decoder-only":
            yield N_("state_layers: only a decoder alone has such layers, leave it out")
        elif self.state_layers is not None and not are_layers(self.state_layers, self.depth):
            yield N_(
                "state_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where none has it",
                value=str(list(self.state_layers)),
                last=self.depth - 1,
            )
        if self.state_layers is not None and self.n_heads >= 1 and self.state_heads[1] % self.state_heads[0]:
            yield N_(
                "state_value_heads={n} is not a multiple of state_key_heads={of}: choose state_key_heads from {divisors}",
                n=self.state_heads[1],
                of=self.state_heads[0],
                divisors=_divisors(self.state_heads[1]),
            )
        if (self.state_step_least or 0) >= (self.state_step_most or math.inf):
            yield N_("state_step_least={value}: must be below state_step_most", value=self.state_step_least)
        if self.qk_norm_layers is not None:
            if not self.qk_norm or self.architecture == "encoder-decoder":
                yield N_("qk_norm_layers: only one stack alone with qk_norm has such layers, leave it out")
            elif not are_layers(self.qk_norm_layers, self.depth):
                yield N_(
                    "qk_norm_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where all "
                    "have it",
                    value=str(list(self.qk_norm_layers)),
                    last=self.depth - 1,
                )
        if self.qk_norm_over == "all" and not self.qk_norm:
            yield N_("qk_norm_over='all' without qk_norm: give both, or leave it out")
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

    def _rules_of_shared_layers(self) -> Iterator[Message]:
        if self.kv_layers is None:
            return
        if self.architecture != "decoder-only" or self.state_layers is not None:
            yield N_(
                "kv_layers: only a decoder alone whose layers all have attention shares keys and values between layers; "
                "leave it out"
            )
        elif (
            len(self.kv_layers) != self.depth
            or not all(0 <= of <= layer for layer, of in enumerate(self.kv_layers))
            or any(self.kv_layers[of] != of for of in self.kv_layers)
            or not self.shared_kv_layers
        ):
            yield N_(
                "kv_layers={value}: must have an entry for each of the {n} layers, the number of the layer itself or of an "
                "earlier one that makes its own; leave it out where all do",
                value=str(list(self.kv_layers)),
                n=self.depth,
            )
        elif any(
            (layer in kind) != (self.kv_layer(layer) in kind)
            for kind in (
                self.windowed_layers,
                self.wide_layers or (),
                {one for one in range(self.depth) if self.has_qk_norm(one)},
            )
            for layer in self.shared_kv_layers
        ):
            yield N_(
                "kv_layers: layers that share keys and values must be alike in sliding_layers, wide_layers and "
                "qk_norm_layers",
            )

    def _rules_of_wide_layers(self) -> Iterator[Message]:
        given = self.wide_layers, self.wide_head_dim, self.wide_kv_heads
        if given == (None, None, None):
            return
        if self.wide_layers is None or self.wide_head_dim is None or self.wide_kv_heads is None:
            yield N_("wide_layers, wide_head_dim and wide_kv_heads belong together: give all or none")
        elif self.architecture != "decoder-only" or self.state_layers is not None:
            yield N_("wide_layers: only a decoder alone whose layers all have attention has such layers")
        elif not are_layers(self.wide_layers, self.depth) or len(self.wide_layers) == self.depth:
            yield N_(
                "wide_layers={value}: must be numbers of layers in order, from 0 to {last}, and not of all; where all are "
                "alike give head_dim and n_kv_heads",
                value=str(list(self.wide_layers)),
                last=self.depth - 1,
            )
        elif self.n_heads % self.wide_kv_heads:
            yield N_(
                "n_heads={n_heads} is not a multiple of wide_kv_heads={n_kv_heads}: choose wide_kv_heads from {divisors}",
                n_heads=self.n_heads,
                n_kv_heads=self.wide_kv_heads,
                divisors=_divisors(self.n_heads),
            )
        elif self.sinks or self.attention_gate or self.qk_norm_over == "all":
            yield N_("wide_layers: models with sinks, gates of attention or qk_norm_over='all' have none, leave it out")

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
            yield (
                N_("queries and keys are normalised")
                if self.qk_norm_over == "head"
                else N_("queries and keys are normalised, all heads together")
            )
        if self.value_norm:
            yield N_("values are brought to one size, with no learned scale")
        if self.wide_layers is not None:
            yield N_(
                "width of a head: {width}, key/value heads: {kv} (layers: {layers})",
                width=self.wide_head_dim,
                kv=self.wide_kv_heads,
                layers=ranges(self.wide_layers),
            )
        if self.attention_scale is not None:
            yield N_("scores are dot products times {scale}, not over √d_head", scale=f"{self.attention_scale:g}")
        if self.attention_gate:
            yield N_("what a head has mixed goes through a gate of its own before W_O")
        for of in sorted({self.kv_layer(layer) for layer in self.shared_kv_layers}):
            yield N_(
                "keys and values of layer {of} are read by later layers too, which make none (layers: {layers})",
                of=of,
                layers=ranges([layer for layer in self.shared_kv_layers if self.kv_layer(layer) == of]),
            )
        if self.state_layers is not None and self.state_rule == "convolution":
            yield N_(
                "a short convolution between two gates in the place of attention (layers: {layers}): a token reads itself "
                "and those right before it, {n} in all, by weights that do not depend on the text",
                layers=ranges(self.state_layers),
                n=self.state_kernel,
            )
        elif self.state_layers is not None:
            rows, columns = self.state_dims
            yield N_(
                "{rule} in the place of attention (layers: {layers}): {n} heads with a state of {rows} × {columns} numbers "
                "each",
                rule=N_("the gated delta rule") if self.state_rule == "delta" else N_("a state space"),
                layers=ranges(self.state_layers),
                n=self.state_heads[1],
                rows=rows,
                columns=columns,
            )
        if self.sinks:
            yield N_("each head has a sink: a learned score in the softmax that carries no value")
        if self.score_cap is not None:
            yield N_("scores are bent by a soft cap, {cap} · tanh(score / {cap})", cap=f"{self.score_cap:g}")

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

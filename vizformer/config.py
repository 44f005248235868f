"""The options that a model is made from, which must fit together, and their form as JSON."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from typing import Any

from vizformer.errors import ConfigError
from vizformer.messages import N_, Message, ranges
from vizformer.options import (
    AboveOne,
    Activation,
    Architecture,
    AttentionBias,
    Count,
    CountOrZero,
    FeedForwardKind,
    Fraction,
    Head,
    Kind,
    Layers,
    Norm,
    NormOrder,
    Positions,
    Positive,
    Probability,
    Residual,
    RopeScaling,
    Sinusoids,
    StackInputs,
    read_kinds,
)
from vizformer.presets import PRESETS

# Former options, each with the value at which it had no effect; older files still contain them.
_GONE: Mapping[str, Any] = json.loads("""{
    "n_experts": null, "experts_per_token": 2, "expert_weights": "renormalised", "router_bias": false,
    "router_scores": "softmax", "router_correction": false, "router_groups": 1, "router_groups_used": 1,
    "router_group_best": 2, "expert_scale": 1.0, "expert_inputs_weighed": false, "d_expert": null,
    "d_shared_expert": null, "shared_expert_gate": true, "expert_norms": false, "expert_layers": null,
    "qk_norm_layers": null, "gate_limit": null, "sinks": false, "attention_gate": false, "last_norm": true,
    "latent_dim": null, "latent_query_dim": null, "latent_value_dim": null, "state_layers": null, "state_rule":
    "delta", "state_key_heads": null, "state_value_heads": null, "state_key_dim": null, "state_value_dim": null,
    "state_kernel": 4, "state_bias": false, "state_step_least": null, "state_step_most": null, "delta_layers": null,
    "delta_key_heads": null, "delta_value_heads": null, "delta_key_dim": null, "delta_value_dim": null,
    "delta_kernel": 4, "value_norm": false, "kv_layers": null, "wide_layers": null, "wide_head_dim": null,
    "wide_kv_heads": null, "layer_input_dim": null, "layer_input_vocab": null, "shared_kv_d_ff": null,
    "gate_sparsity": null, "layer_scale": false, "n_streams": null, "stream_scale": true, "laurel_rank": null,
    "disentangled": "none", "disentangled_span": 256, "disentangled_furthest": null, "disentangled_norm": false,
    "disentangled_shared": false, "first_norm": true, "final_norm_stack": "each", "decoder_positions_after_norm":
    false, "relative_in_layers": false, "rope_whole_pairs": true, "rope_divisors": null, "rope_gain": 1.0,
    "qk_norm_over": "head", "residual_scale": 1.0, "embedding_scale": 1.0, "score_cap": null, "logit_cap": null,
    "norm_offset": false, "rope_layers": null, "rope_dims": null, "rope_local_theta": null, "rope_local_layers":
    null, "embedding_dim": null, "embedding_projection": "normed_sum"
}""")
# Former values of options that still exist.
_GONE_VALUES: Mapping[str, tuple[str, ...]] = {
    "rope_scaling": ("yarn", "longrope"),
    "residual": ("parallel",),
    "norm_order": ("output", "sandwich"),
    "head": ("projection",),
}


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """The sizes of a model, and its marks: `checkpoint.shape`.

    Attributes:
        encoder_heads, decoder_heads, cross_heads: the heads of each layer, by kind of attention; empty where it has none.
        d_model: width of the residual stream.
        d_head: width of a head's queries and keys, in the first layer.
        vocab_size: number of ids that it predicts.
        input_vocab_size: number of ids that a text may consist of.
        max_positions: the longest sequence, in tokens, that it accepts.
        activation: the name of the activation in its feed-forward networks; None: not known.
        start_ids: the first ids of a decoder behind an encoder.
        eos_id, pad_id, mask_id: the ids of the end mark, of padding and of [MASK], where it has them.
        never_written: the id that is never generated, where there is one.
    """

    encoder_heads: tuple[int, ...] = ()
    decoder_heads: tuple[int, ...] = ()
    cross_heads: tuple[int, ...] = ()
    d_model: int
    d_head: int
    vocab_size: int
    input_vocab_size: int
    max_positions: int
    activation: str | None = None
    start_ids: tuple[int, ...] = ()
    eos_id: int | None = None
    pad_id: int | None = None
    mask_id: int | None = None
    never_written: int | None = None

    @property
    def architecture(self) -> Architecture:
        if self.encoder_heads and self.decoder_heads:
            return "encoder-decoder"
        return "decoder-only" if self.decoder_heads else "encoder-only"

    @property
    def n_encoder_layers(self) -> int:
        return len(self.encoder_heads)

    @property
    def n_decoder_layers(self) -> int:
        return len(self.decoder_heads)

    @property
    def depth(self) -> int:
        """The number of layers of both stacks together."""
        return self.n_encoder_layers + self.n_decoder_layers

    @property
    def n_heads(self) -> int:
        """Attention heads of a layer; if layers differ, of the layer with the most."""
        return max((*self.encoder_heads, *self.decoder_heads, *self.cross_heads))

    def layers_of(self, of: str) -> int:
        """The number of layers of a stack, or of the stack that a kind of attention is in: "encoder", "decoder",
        "cross".
        """
        return self.n_encoder_layers if of == "encoder" else self.n_decoder_layers

    def heads_of(self, kind: str) -> tuple[int, ...]:
        """The heads of each layer in a kind of attention: "encoder", "decoder", "cross"."""
        return {"encoder": self.encoder_heads, "decoder": self.decoder_heads, "cross": self.cross_heads}[kind]

    @property
    def last_stack(self) -> str:
        """The stack from whose rows the logits are computed."""
        return "decoder" if self.decoder_heads else "encoder"


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that decides the shape and the arithmetic of a model, checked; the options of each station of the forward.

    An option is added when a model uses it and a test holds it (docs/decisions.md), so everything listed here works.

    Sizes: What belongs to no station alone.
        vocab_size: number of token ids; encoder and decoder share them unless source_vocab_size says otherwise.
        d_model: width of the residual stream.
        n_heads: attention heads per layer; each is d_head = d_model / n_heads wide, unless head_dim says otherwise.
        d_ff: width of the feed-forward hidden layer.
        n_encoder_layers, n_decoder_layers: depth of each stack; 0 leaves the stack out.
        source_vocab_size: number of ids that the encoder reads where they are another vocabulary's, with a table of
            embeddings of its own (translators with a vocabulary per language); None: the same ids, one table.
        head_dim: width of a head where it is not d_model / n_heads (Qwen3); None: it is.
        n_kv_heads: key/value heads, each shared by n_heads / n_kv_heads query heads (grouped-query attention, Ainslie
            et al. 2023; 1 is the multi-query attention of Shazeer 2019); None: every query head has its own.
        max_positions: the longest sequence, in tokens, that the model accepts.
        bias: whether the linear layers of attention and feed-forward have biases.
        dropout: probability in training, of embeddings + positions and of every sublayer's output.

    Attention: softmax(q k^T * scale + position bias + mask) v, in every head.
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

    Feed forward: What every position goes through by itself.
        activation: of the feed-forward layer; "relu_squared" is max(0, x)^2 (So et al. 2021, "Primer"), "gelu_tanh" GPT-2's
            approximation of GELU, "quick_gelu" that by a sigmoid (CLIP).
        feedforward: "plain" act(x W_in) W_out, or "gated" (act(x W_gate) * x W_in) W_out; gated with "silu" is SwiGLU
            (Shazeer 2020).

    Norm: How what a sublayer f has found is added to the residual stream x, and where both are normalised.
        norm_order: "post" is norm(x + f(x)) (2017); "pre" is x + f(norm(x)) (GPT-2; Xiong et al. 2020);
            "none" is x + f(x), as toy models have it (Elhage et al. 2021, "A Mathematical Framework for Transformer
            Circuits").
        norm: "layer_norm" (Ba, Kiros & Hinton 2016) or "rms_norm" (Zhang & Sennrich 2019).
        residual: "sequential", or "none": what a sublayer brings takes the place of x.
        final_norm: one more norm after the last layer of each stack.
        norm_eps: added to the variance (or mean square) inside the norm's root.

    Embedding: Which tables there are, and what becomes of the sum of their rows.
        n_segments: rows of the table of segment embeddings (BERT's sentence A and B); 0: no such table.
        embedding_norm: a norm after the sum of the embeddings (BERT).
        stack_inputs: whether encoder and decoder have a "shared" table of learned positions and embedding norm, or each
            "own" (BART); that of the token embeddings is shared always.
        scaled_embedding: token embeddings are multiplied by sqrt(d_model) (Vaswani et al. 2017, 3.4).

    Position: What is added, turned or compared so that order matters.
        positions: "sinusoidal" (Vaswani et al. 2017, 3.5); a "learned" table; "rope" turns queries and keys instead of
            adding something (Su et al. 2021); "alibi" takes a fixed slope times the distance off every score (Press,
            Smith & Lewis 2021); "relative" adds a learned number per head and bucket of distances, one table per stack
            (Raffel et al. 2019, "T5"); "none".
        sinusoids: how "sinusoidal" lays out its waves: "interleaved" sine, cosine, sine, ... (the paper) or in
            "halves", all sines before all cosines (the paper's own code; Marian).
        rope_theta: base of the wavelengths of "rope".
        rope_scaling: how "rope" was slowed down for texts longer than those of the first training: "none"; "linear"
            divides every angle by rope_factor (Chen et al. 2023, "Position Interpolation"); "llama3" only those of
            pairs that turn fewer than rope_low_turns times in rope_trained_positions, leaves those with more than
            rope_high_turns as they are, and mixes the two in between (Grattafiori et al. 2024, "The Llama 3 Herd of
            Models", and the code published with it).
        rope_factor, rope_low_turns, rope_high_turns, rope_trained_positions: see rope_scaling.
        relative_bias: the scores get the learned numbers of "relative" beside the vectors of positions="learned" (Song et
            al. 2020, "MPNet").
        relative_buckets: rows of each table of "relative"; half are for single distances, the others for ever longer
            stretches. An encoder splits them between keys before and keys behind the query.
        relative_max_distance: the last bucket of "relative" serves every distance from here on (and some before).

    Prediction: (row * scale) W_U + bias, after what the head has made of the row. Nothing here changes what is before it.
        tied_unembedding: the logits are computed with the embedding table (Press & Wolf 2017).
        head: what turns the last row into logits: "linear" is the unembedding alone; "transform" has a dense layer, the
            activation and a norm before it and a bias after it (BERT's masked-language-model head).
        logit_scale: what the last row is multiplied by before the unembedding (T5: d_model^-0.5).
        logit_bias: a learned number for every token, added to its logit (BART, Marian); "transform" has one anyway.

    Mark: Which ids are marks, and how writing begins and ends. No number of a forward depends on them.
        pad_id, bos_id, eos_id, mask_id: the ids of padding, start, end and [MASK], where the model has them.
        decoder_start_id: what a decoder behind an encoder begins with where that is not bos_id (T5 and Marian: padding;
            BART: the end mark).
        forced_bos_id: what always comes after that, as the first token of its own (BART: the start mark).
        never_pad: the padding is never generated, however high its logit (Marian, whose decoder begins with it).

    Raises:
        ConfigError: an option of another type or value than it may have, or options that contradict each other; all
            problems are listed at once.
    """

    vocab_size: Count
    d_model: Count
    n_heads: Count
    d_ff: Count
    n_encoder_layers: CountOrZero = 0
    n_decoder_layers: CountOrZero = 0
    source_vocab_size: Count | None = None
    head_dim: Count | None = None
    n_kv_heads: int | None = None
    max_positions: Count = 512
    bias: bool = True
    dropout: Probability = 0.1
    attention_scale: Positive | None = None
    sliding_window: Count | None = None
    sliding_layers: Layers | None = None
    qk_norm: bool = False
    attention_bias: AttentionBias = "same"
    activation: Activation = "relu"
    feedforward: FeedForwardKind = "plain"
    norm_order: NormOrder = "post"
    norm: Norm = "layer_norm"
    residual: Residual = "sequential"
    final_norm: bool = False
    norm_eps: Fraction = 1e-5
    n_segments: CountOrZero = 0
    embedding_norm: bool = False
    stack_inputs: StackInputs = "shared"
    scaled_embedding: bool = False
    positions: Positions = "sinusoidal"
    sinusoids: Sinusoids = "interleaved"
    rope_theta: AboveOne = 10_000.0
    rope_scaling: RopeScaling = "none"
    rope_factor: Positive = 1.0
    rope_low_turns: Positive = 1.0
    rope_high_turns: float = 4.0
    rope_trained_positions: Count = 8192
    relative_bias: bool = False
    relative_buckets: int = 32
    relative_max_distance: int = 128
    tied_unembedding: bool = True
    head: Head = "linear"
    logit_scale: Positive = 1.0
    logit_bias: bool = False
    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    mask_id: int | None = None
    decoder_start_id: int | None = None
    forced_bos_id: int | None = None
    never_pad: bool = False

    def __post_init__(self) -> None:
        wrong_types = list(self._refused_by(Kind.wrong_type))
        if problems := wrong_types or [*self._rules(), *self._refused_by(Kind.out_of_bounds)]:
            raise ConfigError("This model cannot be built: {problems}.", problems=tuple(problems))

    @property
    def architecture(self) -> Architecture:
        if self.n_encoder_layers and self.n_decoder_layers:
            return "encoder-decoder"
        return "decoder-only" if self.n_decoder_layers else "encoder-only"

    @property
    def depth(self) -> int:
        """The layers of both stacks; of the one stack where there is one."""
        return self.n_encoder_layers + self.n_decoder_layers

    def layers_of(self, of: str) -> int:
        """The number of layers of a stack, or of the stack that a kind of attention is in: "encoder", "decoder",
        "cross".
        """
        return self.n_encoder_layers if of == "encoder" else self.n_decoder_layers

    @property
    def d_head(self) -> int:
        """Width of one head: head_dim, or its share of d_model."""
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def kv_heads(self) -> int:
        """Key/value heads: n_kv_heads, or as many as there are query heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def kv_numbers(self) -> int:
        """Numbers that a cache keeps per token and layer: keys and values."""
        return 2 * self.kv_heads * self.d_head

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

    @property
    def network_matrices(self) -> int:
        """The number of matrices of one feed-forward network: 2 (W_in, W_out), or 3 with a gate (W_gate)."""
        return 3 if self.feedforward == "gated" else 2

    def network_parameters(self, width: int) -> int:
        """The number of parameters of one feed-forward network: 2 d width + width + d, or with a gate 3 d width (+ 2
        width + d).
        """
        matrices = self.network_matrices
        return matrices * self.d_model * width + ((matrices - 1) * width + self.d_model if self.bias else 0)

    @property
    def has_norms(self) -> bool:
        """Whether the model has any norm, of rows or of queries and keys."""
        return self.norm_order != "none" or self.final_norm or self.embedding_norm or self.qk_norm

    @property
    def input_vocab_size(self) -> int:
        """Number of ids in the vocabulary of the input: the encoder's, if it has one of its own."""
        return self.vocab_size if self.source_vocab_size is None else self.source_vocab_size

    @property
    def embedding_factor(self) -> float:
        """The factor of the token embeddings: sqrt(d_model) or 1."""
        return math.sqrt(self.d_model) if self.scaled_embedding else 1.0

    @property
    def has_relative_bias(self) -> bool:
        """Whether a learned bias for the bucket of their distance is added to each score (T5, MPNet)."""
        return self.positions == "relative" or self.relative_bias

    @property
    def start_ids(self) -> tuple[int, ...]:
        """The first ids of a decoder behind an encoder: decoder_start_id or bos_id, then forced_bos_id."""
        start = self.bos_id if self.decoder_start_id is None else self.decoder_start_id
        return tuple(id for id in (start, self.forced_bos_id) if id is not None)

    @property
    def never_written(self) -> int | None:
        """The id that is never generated; None if every id may be.

        It still has a probability: P is the softmax of all logits, everywhere. No list of candidates shows it.
        """
        return self.pad_id if self.never_pad else None

    @cached_property
    def shape(self) -> ModelShape:
        """The sizes of this model, and its marks."""
        encoder, decoder = ((self.n_heads,) * n for n in (self.n_encoder_layers, self.n_decoder_layers))
        return ModelShape(
            encoder_heads=encoder,
            decoder_heads=decoder,
            cross_heads=decoder if encoder else (),
            d_model=self.d_model,
            d_head=self.d_head,
            vocab_size=self.vocab_size,
            input_vocab_size=self.input_vocab_size,
            max_positions=self.max_positions,
            activation=self.activation,
            start_ids=self.start_ids,
            eos_id=self.eos_id,
            pad_id=self.pad_id,
            mask_id=self.mask_id,
            never_written=self.never_written,
        )

    def unusual(self) -> dict[str, Any]:
        """The options that differ from their defaults, and those that have no default."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}

    def scores_formula(self, product: str) -> str:
        """LaTeX of the scores before anything is added: `product`, a product of queries and keys, times the scale."""
        if self.attention_scale is None:
            return rf"\tfrac{{{product}}}{{\sqrt{{d_\text{{head}}}}}}"
        return product if self.attention_scale == 1 else rf"{self.attention_scale:.4g}\,{product}"

    def sentences(self) -> Iterator[Message]:
        """One sentence for each unusual thing that a head does."""
        if self.qk_norm:
            yield N_("Each query and each key is normalised before they are compared.")
        if self.kv_heads != self.n_heads:
            yield N_(
                "{kv_heads} key/value heads serve them: {group} query heads share one.",
                kv_heads=self.kv_heads,
                group=self.n_heads // self.kv_heads,
            )

    def details(self) -> Iterator[Message]:
        """Sentences about what these options give the model that most models of its kind lack."""
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
            yield N_("scores are dot products times {scale}, not divided by √d_head", scale=f"{self.attention_scale:g}")
        if self.residual == "none":
            yield N_("no residual connections: the output of a sublayer replaces its input")
        if self.scaled_embedding:
            yield N_("embeddings are multiplied by √d_model")
        if self.stack_inputs == "own":
            yield N_("encoder and decoder have a position table and an embedding norm each")
        if self.positions == "rope" and self.rope_scaling != "none":
            yield N_(
                "rotary positions slowed down for longer texts ({kind}, factor {factor})",
                kind=self.rope_scaling,
                factor=f"{self.rope_factor:g}",
            )
        if self.relative_bias:
            yield N_("a learned number for the distance is added to the scores, the same in all layers")
        if self.positions == "sinusoidal" and self.sinusoids == "halves":
            yield N_("in the positional encoding, all sines come before all cosines")
        if self.logit_scale != 1:
            yield N_("the last row is multiplied by {scale} before the unembedding", scale=f"{self.logit_scale:.4g}")
        if self.logit_bias:
            yield N_("logits have a bias for every token")
        if self.never_pad:
            yield N_("the padding token is never generated, but every softmax over the vocabulary counts it")

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

    def without_meaning(self) -> Iterator[str]:
        """The names of the options without effect, because another option does not have the value that they depend on."""
        if self.positions != "sinusoidal":
            yield "sinusoids"
        for name in _KINDS:
            if name.startswith("rope_") and self.positions != "rope":
                yield name
        if not self.has_relative_bias:
            yield from ("relative_buckets", "relative_max_distance")
        if self.rope_scaling == "none":
            yield from ("rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions")
        if not (self.embedding_norm or self.positions == "learned"):
            yield "stack_inputs"

    def _rules(self) -> Iterator[Message]:
        """Every rule that the options break: the value, the rule, the way out."""
        if self.n_encoder_layers == self.n_decoder_layers == 0:
            yield N_("both stacks have 0 layers: give n_encoder_layers, n_decoder_layers or both")
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
            yield N_(
                "sliding_window={value}: a model with two stacks has no sliding window; leave it out",
                value=self.sliding_window,
            )
        if self.sliding_layers is not None:
            if self.sliding_window is None:
                yield N_("sliding_layers without sliding_window: give both or neither")
            elif not _are_layers(self.sliding_layers, self.depth):
                yield N_(
                    "sliding_layers={value}: must be layer numbers from 0 to {last}, in ascending order; "
                    "leave it out if all layers have the window",
                    value=str(list(self.sliding_layers)),
                    last=self.depth - 1,
                )
        if self.source_vocab_size is not None and self.architecture != "encoder-decoder":
            yield N_(
                "source_vocab_size={value}: this model has only one stack, which reads vocab_size ids; leave it out",
                value=self.source_vocab_size,
            )
        if self.stack_inputs == "own" and self.architecture != "encoder-decoder":
            yield N_("stack_inputs='own': this model has only one stack; choose 'shared'")
        if self.positions == "sinusoidal" and self.d_model % 2:
            yield N_(
                "d_model={d_model} is odd: sinusoidal positions come in sine-cosine pairs, make it even",
                d_model=self.d_model,
            )
        if self.positions == "rope" and self.n_heads >= 1 and self.d_head % 2:
            yield N_(
                "d_head={d_head} is odd: rotary positions turn pairs of numbers, make d_model / n_heads even",
                d_head=self.d_head,
            )
        if not self.rope_low_turns < self.rope_high_turns < float("inf"):
            yield N_(
                "rope_high_turns={high}: must be above rope_low_turns={low}",
                high=self.rope_high_turns,
                low=self.rope_low_turns,
            )
        if self.relative_buckets < 4 or self.relative_buckets % 2:
            yield N_("relative_buckets={value}: must be even and at least 4", value=self.relative_buckets)
        if self.relative_max_distance <= self.relative_buckets // 2:
            yield N_(
                "relative_max_distance={value}: must be above half of relative_buckets, {half}",
                value=self.relative_max_distance,
                half=self.relative_buckets // 2,
            )
        if self.logit_bias and self.head == "transform":
            yield N_("logit_bias=True: head='transform' has one of its own, leave it out")
        if self.never_pad and self.pad_id is None:
            yield N_("never_pad=True: this model has no padding token to leave out; give pad_id")
        for name in _KINDS:
            value = getattr(self, name) if name.endswith("_id") else None
            if value is not None and not 0 <= value < self.vocab_size:
                yield N_(
                    "{name}={value}: must be a token id, 0 to {last}", name=name, value=value, last=self.vocab_size - 1
                )
        if self.relative_bias and (self.architecture != "encoder-only" or self.positions != "learned"):
            yield N_("relative_bias=True: only an encoder-only model with positions='learned' has it; leave it out")

    def _refused_by(self, check: Callable[[Kind, str, Any], Message | None]) -> Iterator[Message]:
        for name, kind in _KINDS.items():
            if (refused := check(kind, name, getattr(self, name))) is not None:
                yield refused

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> "ModelConfig":
        """Builds a config from JSON; unknown names are refused rather than ignored.

        A former option is ignored if its value had no effect, and refused by name otherwise.
        """
        lost = sorted(name for name, nothing in _GONE.items() if options.get(name, nothing) != nothing)
        if lost := lost + [name for name, values in _GONE_VALUES.items() if options.get(name) in values]:
            raise ConfigError(
                "This version no longer has the options {names}, which this model needs. Open the folder that it was made "
                "from: its own code in `transformers` runs and is recorded. Or take the version of VizFormer that wrote it.",
                names=", ".join(f"{name}={options[name]!r}" for name in lost),
            )
        options = {name: value for name, value in options.items() if name not in _GONE}
        known = {field.name for field in fields(cls)}
        required = {field.name for field in fields(cls) if field.default is MISSING}
        if unknown := sorted(set(options) - known):
            raise ConfigError(
                "Unknown option {names}. Known options are: {known}.",
                names=", ".join(map(repr, unknown)),
                known=", ".join(sorted(known)),
            )
        if missing := sorted(required - set(options)):
            raise ConfigError("The model options lack {names}; add them.", names=", ".join(missing))
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        return cls(**given)

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "ModelConfig":
        """A model of the literature by name (a key of `PRESETS`, e.g. "gpt2-small"), with `changes` on top."""
        if name not in PRESETS:
            raise ConfigError(
                "There is no preset {name!r}; choose one of: {known}.", name=name, known=", ".join(PRESETS)
            )
        return cls(**{**PRESETS[name], **changes})

    def __str__(self) -> str:
        """The options that differ from their defaults, as JSON. Options that are added later do not change this text."""
        return json.dumps(self.unusual(), sort_keys=True)


_KINDS = read_kinds(ModelConfig)


def _divisors(n: int) -> str:
    return ", ".join(str(h) for h in range(1, min(n, 64) + 1) if n % h == 0)


def _are_layers(layers: Layers, n: int) -> bool:
    """Whether `layers` are numbers of layers from 0 to n - 1, ascending, at least one."""
    return bool(layers) and list(layers) == sorted(set(layers)) and 0 <= layers[0] <= layers[-1] < n

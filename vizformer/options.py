"""The options of a Transformer: one frozen table, every option with the values it may take.

An option is added when a model uses it and a test holds it (docs/decisions.md), so everything listed here works.
"""

from dataclasses import dataclass
from typing import Literal

Disentangled = Literal["none", "c2p", "p2c", "both"]
Positions = Literal["sinusoidal", "learned", "rope", "alibi", "relative", "none"]
NormOrder = Literal["post", "pre", "output", "sandwich", "none"]
Norm = Literal["layer_norm", "rms_norm", "deviation_norm"]
Activation = Literal["relu", "gelu", "gelu_tanh", "quick_gelu", "silu"]
FeedForwardKind = Literal["plain", "gated"]
ExpertWeights = Literal["renormalised", "probabilities"]
Head = Literal["linear", "transform", "projection"]
ProjectedRows = Literal["normed_sum", "sum", "tokens"]
Architecture = Literal["encoder-decoder", "decoder-only", "encoder-only"]
AttentionBias = Literal["same", "all", "qkv", "none"]
NormedOver = Literal["head", "all"]
Residual = Literal["sequential", "parallel", "none"]
Sinusoids = Literal["interleaved", "halves"]
StackInputs = Literal["shared", "own"]
RopeScaling = Literal["none", "linear", "llama3", "yarn"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that decides the shape and the arithmetic of a model.

    Attributes:
        vocab_size: number of token ids; encoder and decoder share them unless source_vocab_size says otherwise.
        source_vocab_size: number of ids that the encoder reads where they are another vocabulary's, with a table of
            embeddings of its own (translators with a vocabulary per language); None: the same ids, one table.
        d_model: width of the residual stream.
        n_heads: attention heads per layer; each is d_head = d_model / n_heads wide, unless head_dim says otherwise.
        head_dim: width of a head where it is not d_model / n_heads (Qwen3, Gemma); None: it is.
        n_kv_heads: key/value heads, each shared by n_heads / n_kv_heads query heads (grouped-query attention, Ainslie
            et al. 2023; 1 is the multi-query attention of Shazeer 2019); None: every query head has its own.
        d_ff: width of the feed-forward hidden layer.
        n_encoder_layers, n_decoder_layers: depth of each stack; 0 leaves the stack out.
        max_positions: the longest sequence, in tokens, that the model accepts.
        positions: "sinusoidal" (Vaswani et al. 2017, 3.5); a "learned" table; "rope" turns queries and keys instead of
            adding something (Su et al. 2021); "alibi" takes a fixed slope times the distance off every score (Press,
            Smith & Lewis 2021); "relative" adds a learned number per head and bucket of distances, one table per stack
            (Raffel et al. 2019, "T5"); "none".
        sinusoids: how "sinusoidal" lays out its waves: "interleaved" sine, cosine, sine, ... (the paper) or in
            "halves", all sines before all cosines (the paper's own code; Marian).
        rope_theta: base of the wavelengths of "rope".
        rope_dims: how many numbers of a query or key "rope" turns, the first ones; the others stay as they are
            (GPT-NeoX); None: all.
        rope_layers: the layers in which "rope" turns, counted from 0, in order; the others know no positions but through
            what the turned ones write (Yang et al. 2025, "Rope to Nope and Back Again"); None: all.
        rope_local_theta, rope_local_layers: in these layers, counted from 0, in order, "rope" turns by this base and is
            never slowed down; both or neither (Gemma 3, whose layers with a sliding window turn faster than the others).
        rope_scaling: how "rope" was slowed down for texts longer than those of the first training: "none"; "linear"
            divides every angle by rope_factor (Chen et al. 2023, "Position Interpolation"); "llama3" only those of
            pairs that turn fewer than rope_low_turns times in rope_trained_positions, leaves those with more than
            rope_high_turns as they are, and mixes the two in between (Grattafiori et al. 2024, "The Llama 3 Herd of
            Models", and the code published with it); "yarn" mixes pair by pair between those that turn so often (Peng
            et al. 2023, "YaRN"). What YaRN multiplies the scores by is part of attention_scale.
        rope_factor, rope_low_turns, rope_high_turns, rope_trained_positions: see rope_scaling.
        rope_whole_pairs: "yarn" mixes from a whole pair to a whole pair, rounded outwards; otherwise from places between.
        relative_buckets: rows of each table of "relative"; half are for single distances, the others for ever longer
            stretches. An encoder splits them between keys before and keys behind the query.
        relative_max_distance: the last bucket of "relative" serves every distance from here on (and some before).
        disentangled: which terms the scores have beside q . k, where a learned vector stands for every distance between two
            tokens: the content of the query with the distance ("c2p"), the content of the key with it ("p2c"), or "both"
            (He et al. 2021, "DeBERTa", section 3.1); all are multiplied by attention_scale, 1 / sqrt(3 d_head) there.
        disentangled_span: half the number of those vectors: one for each distance to either side, from here on the same.
        disentangled_furthest: where half of them stand for single distances only, and the others for ever longer
            stretches, the distance that the last one begins near (DeBERTa v2, v3); None: one for each distance.
        disentangled_norm: whether they go through a norm.
        disentangled_shared: whether W_K and W_Q of the contents make keys and queries of them too; otherwise every layer has
            matrices of its own for it.
        attention_scale: what the dot products of queries and keys are multiplied by; None: 1 / sqrt(d_head). T5 has 1.
        score_cap: the scores are bent by cap * tanh(score / cap) before the mask is added, so that none is beyond it
            (Gemma 2); None: they are not.
        sliding_window: how many keys a query of self-attention sees, the latest ones, itself included (Child et al.
            2019, "Sparse Transformers"; Jiang et al. 2023, "Mistral 7B", section 2); an encoder's sees as many to either
            side, itself included in both (Beltagy et al. 2020, "Longformer"; ModernBERT); None: all but the future.
        sliding_layers: the layers in which the window holds, counted from 0, in order; None: all (Qwen2 has it in the
            last ones only, others in every second one).
        n_segments: rows of the table of segment embeddings (BERT's sentence A and B); 0: no such table.
        embedding_norm: a norm after the sum of the embeddings (BERT).
        embedding_dim: width of the table of token embeddings where it is not d_model; None: it is.
        embedding_projection: what is then brought to d_model: the "normed_sum" of all tables, as narrow, with a bias (Lan et
            al. 2019, "ALBERT", section 3.1; small ELECTRA); their "sum" before the norm, which is then over d_model (narrow
            DeBERTa); or the rows of the "tokens" alone, without a bias, before the others, as wide as d_model, are added
            (Zhang et al. 2022, "OPT", the model of 350 million parameters).
        stack_inputs: whether encoder and decoder have a "shared" table of learned positions and embedding norm, or each
            "own" (BART); that of the token embeddings is shared always.
        decoder_positions_after_norm: the positions of the decoder are added to its embeddings after the norm of these, not
            before it, and the embeddings are not scaled there (Blenderbot Small).
        norm_order: "post" is norm(x + f(x)) (2017); "pre" is x + f(norm(x)) (GPT-2; Xiong et al. 2020); "output" is
            x + norm(f(x)) (OLMo 2); "sandwich" is x + norm'(f(norm(x))), with two norms for every sublayer (Ding et al.
            2021, "CogView"; Gemma 2, GLM-4); "none" is x + f(x), as toy models have it (Elhage et al. 2021, "A Mathematical
            Framework for Transformer Circuits").
        first_norm: whether the attention of the first layer has a norm before it; False where that of the embeddings, just
            before, makes it unnecessary (Warner et al. 2024, "ModernBERT", section 2.1.1).
        last_norm: whether a norm comes after the last sublayer of a stack of "post"; False where only what a sublayer reads
            is normalised, and added to: x <- norm(x), then x + f(x).
        norm: "layer_norm" (Ba, Kiros & Hinton 2016), "rms_norm" (Zhang & Sennrich 2019), or "deviation_norm", LayerNorm as
            many write it by hand: over the standard deviation, divided by d_model - 1, plus norm_eps outside of the root
            (Rush 2018, "The Annotated Transformer").
        norm_offset: the scale of every RMSNorm is 1 + weight (Gemma): weights near 0 then change little.
        qk_norm: every query and key goes through a norm over its d_head numbers, one for the queries and one for the
            keys of a layer, before "rope" turns it (Henry et al. 2020; Qwen3).
        qk_norm_over: whether that norm is over each "head" by itself, or over "all" of them side by side, with a scale of
            its own for every number (OLMo 2).
        residual: "sequential", or "parallel" x + attention(norm x) + feedforward(norm' x): both read the same input
            (Wang & Komatsuzaki 2021, "GPT-J"; GPT-NeoX); or "none": what a sublayer brings takes the place of x.
        final_norm: one more norm after the last layer of each stack.
        norm_eps: added to the variance (or mean square) inside the norm's root.
        activation: of the feed-forward layer; "gelu_tanh" is GPT-2's approximation of GELU, "quick_gelu" that by a
            sigmoid (CLIP).
        feedforward: "plain" act(x W_in) W_out, or "gated" (act(x W_gate) * x W_in) W_out; gated with "silu" is SwiGLU
            (Shazeer 2020).
        n_experts: how many feed-forward networks a layer has, of which each token goes through a few, chosen by a router
            (mixture of experts: Shazeer et al. 2017, "Outrageously Large Neural Networks"; Mixtral); None: one, for all.
        experts_per_token: through how many of them.
        expert_weights: by what the outputs of the chosen ones are multiplied before they are summed: the router's
            "probabilities" of them, or those "renormalised" to the sum 1 (Jiang et al. 2024, "Mixtral of Experts", 2.1).
        d_expert: width of an expert's hidden layer; None: d_ff.
        d_shared_expert: width of one more network beside the experts, which all tokens go through; what it makes is
            multiplied by a number between 0 and 1, for each token another (Qwen2-MoE); None: there is none.
        expert_layers: the layers that have experts, counted from 0, in order; the others have one network of width d_ff;
            None: all.
        bias: whether the linear layers of attention and feed-forward have biases.
        attention_bias: which of those of attention do: the "same" as bias says, "all", those of "qkv" but not the last
            one (Qwen2), or "none".
        tied_unembedding: the logits are computed with the embedding table (Press & Wolf 2017).
        head: what turns the last row into logits: "linear" is the unembedding alone; "transform" has a dense layer, the
            activation and a norm before it and a bias after it (BERT's masked-language-model head); "projection" has a
            matrix before it, which brings the row to embedding_dim (OPT of 350 million parameters).
        logit_scale: what the last row is multiplied by before the unembedding (T5: d_model^-0.5).
        logit_cap: the logits are bent in the same way, after everything else; None: they are not.
        logit_bias: a learned number for every token, added to its logit (BART, Marian); "transform" has one anyway.
        scaled_embedding: token embeddings are multiplied by sqrt(d_model) (Vaswani et al. 2017, 3.4).
        embedding_scale: a factor of the token embeddings beside that (Granite).
        residual_scale: what every sublayer has found is multiplied by it before it is added (Granite).
        dropout: probability in training, of embeddings + positions and of every sublayer's output.
        pad_id, bos_id, eos_id, mask_id: the ids of padding, start, end and [MASK], where the model has them.
        decoder_start_id: what a decoder behind an encoder begins with where that is not bos_id (T5 and Marian: padding;
            BART: the end mark).
        forced_bos_id: what always comes after that, as the first token of its own (BART: the start mark).
        never_pad: the padding is never generated, however high its logit (Marian, whose decoder begins with it).

    Raises:
        ConfigError: an illegal value or combination; all problems are listed at once.
    """

    vocab_size: int
    d_model: int
    n_heads: int
    d_ff: int
    n_encoder_layers: int = 0
    n_decoder_layers: int = 0
    source_vocab_size: int | None = None
    head_dim: int | None = None
    n_kv_heads: int | None = None
    max_positions: int = 512
    positions: Positions = "sinusoidal"
    sinusoids: Sinusoids = "interleaved"
    rope_theta: float = 10_000.0
    rope_dims: int | None = None
    rope_layers: tuple[int, ...] | None = None
    rope_local_theta: float | None = None
    rope_local_layers: tuple[int, ...] | None = None
    rope_scaling: RopeScaling = "none"
    rope_factor: float = 1.0
    rope_low_turns: float = 1.0
    rope_high_turns: float = 4.0
    rope_trained_positions: int = 8192
    rope_whole_pairs: bool = True
    relative_buckets: int = 32
    relative_max_distance: int = 128
    disentangled: Disentangled = "none"
    disentangled_span: int = 256
    disentangled_furthest: int | None = None
    disentangled_norm: bool = False
    disentangled_shared: bool = False
    attention_scale: float | None = None
    score_cap: float | None = None
    sliding_window: int | None = None
    sliding_layers: tuple[int, ...] | None = None
    n_segments: int = 0
    embedding_norm: bool = False
    embedding_dim: int | None = None
    embedding_projection: ProjectedRows = "normed_sum"
    stack_inputs: StackInputs = "shared"
    decoder_positions_after_norm: bool = False
    norm_order: NormOrder = "post"
    first_norm: bool = True
    last_norm: bool = True
    norm: Norm = "layer_norm"
    norm_offset: bool = False
    qk_norm: bool = False
    qk_norm_over: NormedOver = "head"
    residual: Residual = "sequential"
    final_norm: bool = False
    norm_eps: float = 1e-5
    activation: Activation = "relu"
    feedforward: FeedForwardKind = "plain"
    n_experts: int | None = None
    experts_per_token: int = 2
    expert_weights: ExpertWeights = "renormalised"
    d_expert: int | None = None
    d_shared_expert: int | None = None
    expert_layers: tuple[int, ...] | None = None
    bias: bool = True
    attention_bias: AttentionBias = "same"
    tied_unembedding: bool = True
    head: Head = "linear"
    logit_scale: float = 1.0
    logit_cap: float | None = None
    logit_bias: bool = False
    scaled_embedding: bool = False
    embedding_scale: float = 1.0
    residual_scale: float = 1.0
    dropout: float = 0.1
    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None
    mask_id: int | None = None
    decoder_start_id: int | None = None
    forced_bos_id: int | None = None
    never_pad: bool = False

    @property
    def architecture(self) -> Architecture:
        if self.n_encoder_layers and self.n_decoder_layers:
            return "encoder-decoder"
        return "decoder-only" if self.n_decoder_layers else "encoder-only"

    @property
    def d_head(self) -> int:
        """Width of one head: head_dim, or its share of d_model."""
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def kv_heads(self) -> int:
        """Key/value heads: n_kv_heads, or as many as there are query heads."""
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

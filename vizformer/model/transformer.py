"""The Transformer: an encoder stack, a decoder stack, or both, from token ids to logits."""

from functools import lru_cache
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.block import Stack
from vizformer.model.edit import Edit
from vizformer.model.feedforward import activation
from vizformer.model.forward_pass import Cache, ForwardPass
from vizformer.model.initialisation import initialise, without_memory
from vizformer.model.input_check import check_ids
from vizformer.model.masks import padding_mask, self_attention_masks
from vizformer.model.norms import norm
from vizformer.model.positions import Rotation, alibi_bias, position_tables, relative_bias
from vizformer.model.trace import Trace

StackName = Literal["encoder", "decoder"]


class Transformer(nn.Module):
    """Encoder-decoder, decoder-only or encoder-only, as the config says.

    x_0 = embedding[ids] (* sqrt(d_model)) (+ positions) (+ segments) (then norm);  x = stack(x_0);  logits = x W_U

    Source: Vaswani et al. 2017, "Attention Is All You Need"; one table of embeddings serves both stacks (unless
    source_vocab_size gives the encoder its own) and, when tied, the logits (3.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.position_encoding: Tensor
        self.rope_cos: Tensor
        self.rope_sin: Tensor
        self.alibi_slopes: Tensor
        d_model, encoders, decoders = config.d_model, config.n_encoder_layers, config.n_decoder_layers
        learned, own = config.positions == "learned", config.stack_inputs == "own"

        def table(rows: int | None) -> nn.Embedding | None:
            return nn.Embedding(rows, d_model) if rows else None

        self.embedding = nn.Embedding(config.vocab_size, d_model)
        self.source_embedding = table(config.source_vocab_size)  # the encoder's, if it has a vocabulary of its own
        self.position_embedding = table(config.max_positions if learned else None)
        self.decoder_position_embedding = table(config.max_positions if learned and own else None)
        self.segment_embedding = table(config.n_segments)
        self.embedding_norm = norm(config) if config.embedding_norm else None
        self.decoder_embedding_norm = norm(config) if config.embedding_norm and own else None
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Stack(config, "encoder", encoders, cross=False) if encoders else None
        self.decoder = Stack(config, "decoder", decoders, cross=bool(encoders)) if decoders else None
        self.prediction = PredictionTransform(config) if config.head == "transform" else None
        self.unembedding = None if config.tied_unembedding else nn.Linear(d_model, config.vocab_size, bias=False)
        self.logit_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.logit_bias else None
        if not self.embedding.weight.is_meta:  # where there are no numbers to fill (`without_memory`)
            self.materialise_buffers()
            initialise(self, config, {self.token_table("encoder"), self.token_table("decoder")})

    def forward(
        self,
        ids: Int[Tensor, "b n"],
        target_ids: Int[Tensor, "b n_target"] | None = None,
        *,
        padding: Bool[Tensor, "b n"] | None = None,
        target_padding: Bool[Tensor, "b n_target"] | None = None,
        segments: Int[Tensor, "b n"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        rows: tuple[Tensor | slice | int, ...] | None = None,
    ) -> Float[Tensor, "*rows vocab_size"]:
        """Logits [b, n_out, vocab_size] of the next token at every position (of every token, if there is only an encoder).

        An encoder-decoder reads `ids` into its encoder and `target_ids` into its decoder; the others have one
        input.  `padding` is True where a token is only there to fill a batch.  `segments` says which sentence a token
        of `ids` belongs to, where the model has segment embeddings (0 if not given).  `edit` sets numbers by hand.
        Where not all logits are wanted, `rows` is an index of [b, n_out].

        Raises:
            TraceError: a sequence that is empty, longer than max_positions, or with ids outside the vocabulary; a
                target where the model has no second stack, or none where it needs one.
        """
        if (self.config.architecture == "encoder-decoder") != (target_ids is not None):
            raise TraceError(
                "An encoder-decoder model needs target_ids, the others take none; this one is {architecture}.",
                architecture=self.config.architecture,
            )
        if self.encoder is not None:
            x = self.encode(ids, padding=padding, segments=segments, trace=trace, edit=edit)  # [b, n, d_model]
        if target_ids is not None:  # x is its memory
            x = self.decode(target_ids, x, memory_padding=padding, padding=target_padding, trace=trace, edit=edit)
        elif self.decoder is not None:
            x = self.decode(ids, padding=padding, segments=segments, trace=trace, edit=edit)
        logits = self.logits(x if rows is None else x[rows])  # [b, n_out, vocab_size]
        if trace is not None and rows is None:
            trace.record_logits(logits, edit)
        return logits

    def encode(
        self,
        ids: Int[Tensor, "b n"],
        *,
        padding: Bool[Tensor, "b n"] | None = None,
        segments: Int[Tensor, "b n"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """The encoder: every position sees every other one.  Its output is the decoder's memory."""
        if self.encoder is None:
            raise TraceError("This model has no encoder.")
        run = self.forward_pass("encoder", ids, padding=padding, trace=trace, edit=edit)
        x: Tensor = self.encoder(self.embed(ids, segments=segments), run)  # [b, n, d_model]
        return x

    def decode(
        self,
        ids: Int[Tensor, "b n"],
        memory: Float[Tensor, "b n_memory d_model"] | None = None,
        *,
        memory_padding: Bool[Tensor, "b n_memory"] | None = None,
        padding: Bool[Tensor, "b n"] | None = None,
        segments: Int[Tensor, "b n"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """The decoder: position i sees positions 0..i and, where there is an encoder, all of its memory.

        With a `cache`, `ids` are only the tokens that follow those the cache has seen.
        """
        if self.decoder is None:
            raise TraceError("This model has no decoder.")
        source = {"memory": memory, "memory_padding": memory_padding}
        run = self.forward_pass("decoder", ids, padding=padding, **source, trace=trace, edit=edit, cache=cache)
        before = 0 if cache is None else cache.length
        x: Tensor = self.decoder(self.embed(ids, before, segments, stack="decoder"), run)  # [b, n, d_model]
        if cache is not None:
            cache.length += ids.shape[1]
        return x

    def embed(
        self,
        ids: Int[Tensor, "b n"],
        first: int = 0,
        segments: Int[Tensor, "b n"] | None = None,
        *,
        stack: StackName = "encoder",
    ) -> Float[Tensor, "b n d_model"]:
        """Token embeddings (scaled by sqrt(d_model) where the config says so) plus positions, from `first` on.

        `stack` is the stack that reads them; it matters if the stacks have tables of their own.
        """
        embedding = self.token_table(stack)
        check_ids(ids, first, self.config.max_positions, embedding.num_embeddings)
        return self.place(embedding(ids), first, segments, stack=stack)

    def place(
        self,
        x: Float[Tensor, "b n d_model"],
        first: int = 0,
        segments: Int[Tensor, "b n"] | None = None,
        *,
        stack: StackName = "encoder",
    ) -> Float[Tensor, "b n d_model"]:
        """The input of a stack from rows of the embedding table or their replacements; the other arguments as in
        `embed`.
        """
        x = x if (factor := self.config.embedding_factor) == 1 else x * factor  # [b, n, d_model], as every x here
        positions = self.positions(first + x.shape[1], stack)  # [first + n, d_model]
        if positions is not None:
            x = x + positions[first:].to(x.dtype)
        if self.segment_embedding is not None:
            given = torch.zeros(x.shape[:2], dtype=torch.long, device=x.device) if segments is None else segments
            x = x + self.segment_embedding(given)
        own = self.decoder_embedding_norm if stack == "decoder" else None
        normalise = own or self.embedding_norm
        out: Tensor = self.dropout(x if normalise is None else normalise(x))
        return out

    def logits(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n vocab_size"]:
        """x W_U, after the head's transform where it has one; W_U is the transposed embedding where tied.

        The row is multiplied by logit_scale before, and a bias of every token added after, where the model has them.
        """
        weight = self.embedding.weight if self.unembedding is None else self.unembedding.weight
        bias = self.logit_bias if self.prediction is None else self.prediction.logit_bias
        return F.linear(self.compared(x), weight, bias)  # [..., vocab_size]

    def compared(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        """The last rows as they are multiplied with W_U: after the head's transform, and scaled."""
        if self.prediction is not None:
            x = self.prediction(x)
        return x if self.config.logit_scale == 1 else x * self.config.logit_scale

    def forward_pass(
        self,
        stack: StackName,
        ids: Int[Tensor, "b n"],
        *,
        padding: Bool[Tensor, "b n"] | None = None,
        memory: Float[Tensor, "b n_memory d_model"] | None = None,
        memory_padding: Bool[Tensor, "b n_memory"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> ForwardPass:
        """The masks, positions and other inputs that `ids` need in a stack; arguments as in `encode` and `decode`."""
        n, before = ids.shape[1], 0 if cache is None else cache.length
        window, causal = self.config.sliding_window, stack == "decoder"
        mask, windowed = self_attention_masks(n, before, padding, window, causal=causal, device=ids.device)
        memory_mask = None if memory_padding is None else padding_mask(memory_padding)
        rotation, position_bias = self.rotations(n, before), self.position_bias(stack, n, before)
        return ForwardPass(mask, windowed, rotation, position_bias, memory, memory_mask, trace, edit, cache)

    def token_table(self, stack: StackName = "encoder") -> nn.Embedding:
        """The embeddings of the tokens that a stack reads, [its number of ids, d_model]; one model may have two."""
        return self.embedding if self.source_embedding is None or stack == "decoder" else self.source_embedding

    def positions(self, n: int, stack: StackName = "encoder") -> Float[Tensor, "n d_model"] | None:
        """The vectors added at positions 0..n-1; None where nothing is added.  `stack` as in `embed`."""
        own = self.decoder_position_embedding if stack == "decoder" else None
        if (learned := own or self.position_embedding) is not None:
            return learned.weight[:n]
        return self.position_encoding[:n] if self.config.positions == "sinusoidal" else None

    def rotations(self, n: int, first: int = 0) -> Rotation | None:
        """The rotations of queries and keys at positions first..first+n-1; None without rotary positions."""
        if self.config.positions != "rope":
            return None
        return Rotation(self.rope_cos, self.rope_sin)[first : first + n]

    def position_bias(self, stack: StackName, n: int, first: int = 0) -> Float[Tensor, "1 n_heads n n_k"] | None:
        """The position bias of queries first..first+n-1 with keys 0..first+n-1, [1, n_heads, n, n_k], the same in all
        layers; None without "alibi", "relative" and relative_bias.
        """
        if self.config.positions == "alibi":
            return alibi_bias(self.alibi_slopes, n, first + n)
        if not self.config.has_relative_bias:
            return None
        module, furthest = self.encoder if stack == "encoder" else self.decoder, self.config.relative_max_distance
        if module is None:
            raise TraceError(
                N_("This model has no encoder.") if stack == "encoder" else N_("This model has no decoder.")
            )
        assert module.relative_bias is not None
        table, both_sides = module.relative_bias.weight, stack == "encoder"  # the decoder sees only what is before it
        return relative_bias(table, n, first + n, furthest, both_sides=both_sides)

    def materialise_buffers(self) -> None:
        """Computes the buffers that are not saved with the weights, after a model was built without memory (on "meta").

        They are put on the device of the weights.
        """
        weight = self.embedding.weight
        for name, buffer in position_tables(self.config).items():
            self.register_buffer(name, buffer if weight.is_meta else buffer.to(weight.device), persistent=False)


class PredictionTransform(nn.Module):
    """BERT's masked-language-model head: t = norm(act(x W + b)); the logits are then t W_U + `logit_bias`.

    Source: Devlin et al. 2018, and the weights published with it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = activation(config)
        self.norm = norm(config)
        self.logit_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        out: Tensor = self.norm(self.activation(self.dense(x)))  # [..., d_model]
        return out


@lru_cache(maxsize=256)
def count_parameters(config: ModelConfig) -> int:
    """The number of trainable parameters of a model with these options, counted once on a model without memory."""
    with without_memory():
        return sum(parameter.numel() for parameter in Transformer(config).parameters())

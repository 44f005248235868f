"""The Transformer: an encoder stack, a decoder stack, or both, from token ids to logits."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.attention import Attention
from vizformer.model.block import Stack
from vizformer.model.cache import Cache
from vizformer.model.edit import Edit
from vizformer.model.masks import causal_mask, combine, padding_mask
from vizformer.model.positions import sinusoidal_encoding
from vizformer.model.trace import Trace


class Transformer(nn.Module):
    """Encoder-decoder, decoder-only or encoder-only, as the config says.

    x_0 = embedding[ids] (* sqrt(d_model)) + positions;  x = stack(x_0);  logits = x W_U

    Source: Vaswani et al. 2017, "Attention Is All You Need"; one table of embeddings serves both stacks and, when
    tied, the logits (3.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        if config.positions == "learned":
            self.position_embedding = nn.Embedding(config.max_positions, config.d_model)
        else:
            encoding = sinusoidal_encoding(config.max_positions, config.d_model)
            self.register_buffer("position_encoding", encoding, persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        both = config.architecture == "encoder-decoder"
        self.encoder = (
            Stack(config, "encoder", config.n_encoder_layers, cross=False) if config.n_encoder_layers else None
        )
        self.decoder = (
            Stack(config, "decoder", config.n_decoder_layers, cross=both) if config.n_decoder_layers else None
        )
        self.unembedding = None
        if not config.tied_unembedding:
            self.unembedding = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self._initialise()

    def forward(
        self,
        ids: Int[Tensor, "b n"],
        target_ids: Int[Tensor, "b n_target"] | None = None,
        *,
        padding: Bool[Tensor, "b n"] | None = None,
        target_padding: Bool[Tensor, "b n_target"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
    ) -> Float[Tensor, "b n_out vocab_size"]:
        """Logits of the next token at every position (of every token, where there is only an encoder).

        An encoder-decoder reads `ids` into its encoder and `target_ids` into its decoder; the others have one
        input.  `padding` is True where a token is only there to fill a batch.  `edit` sets numbers by hand.

        Raises:
            TraceError: a sequence that is empty, longer than max_positions, or with ids outside the vocabulary; a
                target where the model has no second stack, or none where it needs one.
        """
        if (self.config.architecture == "encoder-decoder") != (target_ids is not None):
            raise TraceError(
                N_("An encoder-decoder model needs target_ids, the others take none; this one is {architecture}.",
                   architecture=self.config.architecture)
            )  # fmt: skip
        if target_ids is not None:
            memory = self.encode(ids, padding=padding, trace=trace, edit=edit)
            x = self.decode(target_ids, memory, memory_padding=padding, padding=target_padding, trace=trace, edit=edit)
        elif self.decoder is not None:
            x = self.decode(ids, padding=padding, trace=trace, edit=edit)
        else:
            x = self.encode(ids, padding=padding, trace=trace, edit=edit)
        logits = self.logits(x)
        if trace is not None:
            trace.record_logits(logits, edit)
        return logits

    def encode(
        self,
        ids: Int[Tensor, "b n"],
        *,
        padding: Bool[Tensor, "b n"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """The encoder: every position sees every other one.  Its output is the decoder's memory."""
        if self.encoder is None:
            raise TraceError(N_("This model has no encoder."))
        mask = None if padding is None else padding_mask(padding)
        x: Tensor = self.encoder(self.embed(ids), mask, trace=trace, edit=edit)  # [b, n, d_model]
        return x

    def decode(
        self,
        ids: Int[Tensor, "b n"],
        memory: Float[Tensor, "b n_memory d_model"] | None = None,
        *,
        memory_padding: Bool[Tensor, "b n_memory"] | None = None,
        padding: Bool[Tensor, "b n"] | None = None,
        trace: Trace | None = None,
        edit: Edit | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """The decoder: position i sees positions 0..i and, where there is an encoder, all of its memory.

        With a `cache`, `ids` are only the tokens that follow those the cache has seen.
        """
        if self.decoder is None:
            raise TraceError(N_("This model has no decoder."))
        before = 0 if cache is None else cache.length
        causal = causal_mask(ids.shape[1], before + ids.shape[1], device=ids.device)
        mask = combine([None if padding is None else padding_mask(padding), causal])
        memory_mask = None if memory_padding is None else padding_mask(memory_padding)
        x: Tensor = self.decoder(
            self.embed(ids, before), mask, memory, memory_mask, trace=trace, edit=edit, cache=cache
        )  # [b, n, d_model]
        if cache is not None:
            cache.length += ids.shape[1]
        return x

    def logits(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n vocab_size"]:
        """x W_U; the unembedding W_U is the transposed embedding where the two are tied."""
        weight = self.embedding.weight if self.unembedding is None else self.unembedding.weight
        return F.linear(x, weight)  # [..., vocab_size]

    def embed(self, ids: Int[Tensor, "b n"], first: int = 0) -> Float[Tensor, "b n d_model"]:
        """Token embeddings (scaled by sqrt(d_model) where the config says so) plus positions, from `first` on."""
        self._check(ids, first)
        x: Tensor = self.embedding(ids)  # [b, n, d_model]
        if self.config.scaled_embedding:
            x = x * math.sqrt(self.config.d_model)
        out: Tensor = self.dropout(x + self.positions(first + ids.shape[1])[first:])
        return out

    def positions(self, n: int) -> Float[Tensor, "n d_model"]:
        """The vectors added at positions 0..n-1."""
        table = self.position_embedding.weight if self.config.positions == "learned" else self.position_encoding
        return table[:n]

    def materialise_buffers(self) -> None:
        """Computes what is not saved with the weights, after a model was built without memory (on "meta")."""
        if self.config.positions == "sinusoidal":
            self.position_encoding = sinusoidal_encoding(self.config.max_positions, self.config.d_model)

    def _check(self, ids: Tensor, first: int) -> None:
        n, limit, last = first + ids.shape[1], self.config.max_positions, self.config.vocab_size - 1
        if ids.shape[1] == 0:
            raise TraceError(N_("There is no token to look at: type at least one word."))
        if n > limit:
            raise TraceError(
                N_("The text has {n} tokens; this model accepts {limit}. Shorten it by {over}.", n=n, limit=limit,
                   over=n - limit)
            )  # fmt: skip
        if torch.compiler.is_compiling():
            return  # looking at the values would break the compiled graph
        lowest, highest = int(ids.min()), int(ids.max())
        if lowest < 0 or highest > last:
            raise TraceError(
                N_("Token id {id} is outside the vocabulary: ids go from 0 to {last}.",
                   id=lowest if lowest < 0 else highest, last=last)
            )  # fmt: skip

    def _initialise(self) -> None:
        """Xavier for matrices, as in the reference implementations; embeddings so that x_0 has unit scale per entry."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, Attention):
                # As if the three were one matrix [d, 3d], as in PyTorch: gentler scores at the start, faster learning
                # (5.8 against 3.3 BLEU after 600 updates, tests/benchmarks/README.md).
                for projection in (module.W_Q, module.W_K, module.W_V):
                    nn.init.xavier_uniform_(projection.weight, gain=2**-0.5)
        std = self.config.d_model**-0.5 if self.config.scaled_embedding else 0.02
        nn.init.normal_(self.embedding.weight, std=std)
        if self.config.positions == "learned":
            nn.init.normal_(self.position_embedding.weight, std=0.02)


def count_parameters(config: ModelConfig) -> int:
    """Trainable numbers of a model with these options, counted on a model without memory."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Transformer(config).parameters())

"""The options that all stations share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import Message
from vizformer.options.kinds import Count, CountOrZero, Probability

Architecture = Literal["encoder-decoder", "decoder-only", "encoder-only"]


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Sizes, depths, and what belongs to no station alone. A station is one of these with options of its own.

    Attributes:
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

    # What each station says of its own options ---------------------------------------------------------------

    def rules(self) -> Iterable[Message]:
        """Every rule that the options break: the value, the rule, the way out."""
        return ()

    def details(self) -> Iterable[Message]:
        """Sentences about what these options give the model that most models of its kind lack."""
        return ()

    def without_meaning(self) -> Iterable[str]:
        """The names of the options without effect, because another option does not have the value that they depend on."""
        return ()

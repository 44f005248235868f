"""The sizes that every model has, whatever code computes it."""

from dataclasses import dataclass

from vizformer.options.common import Architecture


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

"""The station of the embedding: from token ids to the rows that enter the first layer."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from vizformer.messages import N_, Message
from vizformer.options.common import CommonOptions
from vizformer.options.kinds import CountOrZero

StackInputs = Literal["shared", "own"]


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(CommonOptions):
    """Which tables there are, and what becomes of the sum of their rows.

    Attributes:
        n_segments: rows of the table of segment embeddings (BERT's sentence A and B); 0: no such table.
        embedding_norm: a norm after the sum of the embeddings (BERT).
        stack_inputs: whether encoder and decoder have a "shared" table of learned positions and embedding norm, or each
            "own" (BART); that of the token embeddings is shared always.
        scaled_embedding: token embeddings are multiplied by sqrt(d_model) (Vaswani et al. 2017, 3.4).
    """

    n_segments: CountOrZero = 0
    embedding_norm: bool = False
    stack_inputs: StackInputs = "shared"
    scaled_embedding: bool = False

    @property
    def input_vocab_size(self) -> int:
        """Number of ids in the vocabulary of the input: the encoder's, if it has one of its own."""
        return self.vocab_size if self.source_vocab_size is None else self.source_vocab_size

    @property
    def embedding_factor(self) -> float:
        """The factor of the token embeddings: sqrt(d_model) or 1."""
        return math.sqrt(self.d_model) if self.scaled_embedding else 1.0

    def rules(self) -> Iterator[Message]:
        if self.source_vocab_size is not None and self.architecture != "encoder-decoder":
            yield N_(
                "source_vocab_size={value}: there is one stack only, which reads vocab_size ids; leave it out",
                value=self.source_vocab_size,
            )
        if self.stack_inputs == "own" and self.architecture != "encoder-decoder":
            yield N_("stack_inputs='own': there is one stack only, take 'shared'")

    def details(self) -> Iterator[Message]:
        if self.scaled_embedding:
            yield N_("embeddings are multiplied by √d_model")
        if self.stack_inputs == "own":
            yield N_("encoder and decoder have a position table and an embedding norm each")

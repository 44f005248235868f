"""The laboratories of the lesson Tokens and embeddings, in the order of its parts."""

from vizformer.web.lessons.tokens import (
    contexts,
    lengths,
    merges,
    neighbours,
    signals,
    table_row,
    tokenizers,
    word_vectors,
)

_IN_ORDER = (tokenizers, merges, table_row, neighbours, word_vectors, contexts, lengths, signals)
PARTS = tuple(part.lab for part in _IN_ORDER)

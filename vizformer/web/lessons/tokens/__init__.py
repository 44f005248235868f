"""The laboratories of the lesson Tokens and embeddings, in the order of its parts."""

from vizformer.web.lessons.tokens import (
    contexts,
    lengths,
    merges,
    neighbours,
    table_row,
    tokenizers,
    word_vectors,
)

PARTS = (
    tokenizers.lab,
    merges.lab,
    table_row.lab,
    neighbours.lab,
    word_vectors.lab,
    contexts.lab,
    lengths.lab,
)

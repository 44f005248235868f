"""The laboratories of the lesson Tokens and embeddings, in the order of its parts."""

from vizformer.web.lessons.tokens import (
    contexts,
    lengths,
    merges,
    neighbours,
    table_row,
    tokenizers,
)

PARTS = (
    tokenizers.lab,
    merges.lab,
    table_row.lab,
    neighbours.lab,
    contexts.lab,
    lengths.lab,
)

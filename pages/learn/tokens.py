"""Tokens and embeddings: six ways to cut a sentence, and what becomes of the pieces before and inside the layers."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.tokens import contexts, lengths, merges, neighbours, table_row, tokenizers
from vizformer.web.widgets import lesson


def page() -> None:
    lesson.show(
        sitemap.TOKENS,
        [
            lesson.Part("pieces", N_("Six ways to cut"), tokenizers.pieces, wide=True),
            lesson.Part("merges", N_("BPE, merge by merge"), merges.merges),
            lesson.Part("lookup", N_("A row of a table"), table_row.look_up),
            lesson.Part("neighbours", N_("Neighbours"), neighbours.neighbours, wide=True),
            lesson.Part("context", N_("Static and contextual"), contexts.context),
            lesson.Part("norms", N_("Lengths"), lengths.norms),
        ],
        terms=(
            "token",
            "vocabulary",
            "token-id",
            "subword",
            "bpe",
            "wordpiece",
            "unigram",
            "unknown-token",
            "one-hot",
            "embedding",
            "cosine",
            "contextual",
        ),
    )


page()

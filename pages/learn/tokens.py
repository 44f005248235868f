"""Tokens and embeddings: ways to cut a sentence, what becomes of the pieces, and how pictures and sound are cut."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
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
from vizformer.web.widgets import lesson


def page() -> None:
    lesson.show(
        sitemap.TOKENS,
        [
            lesson.Part("pieces", N_("Six ways to cut"), tokenizers.pieces),
            lesson.Part("merges", N_("BPE, merge by merge"), merges.merges),
            lesson.Part("lookup", N_("A row of a table"), table_row.look_up),
            lesson.Part("neighbours", N_("Neighbours"), neighbours.neighbours),
            lesson.Part("vectors", N_("Word vectors"), word_vectors.word_vectors),
            lesson.Part("context", N_("Static and contextual"), contexts.context),
            lesson.Part("norms", N_("Lengths"), lengths.norms),
            lesson.Part("signals", N_("Pictures and sound"), signals.signals),
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
            "word2vec",
            "patch",
        ),
    )


page()

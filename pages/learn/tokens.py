"""Tokens and embeddings: ways to cut a sentence, what becomes of the pieces, and how pictures and sound are cut."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import tokens
from vizformer.web.widgets import lesson


def page() -> None:
    lesson.show(
        sitemap.TOKENS,
        tokens.PARTS,
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

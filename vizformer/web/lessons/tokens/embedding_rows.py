"""Which token of the sentence the laboratories look at, what tokens are called, and the table that they are rows of."""

from collections.abc import Sequence

from torch import Tensor

from vizformer.analysis.vectors import embeddings
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels


def choose_token(lab: Laboratory, subject: Subject) -> int:
    tokens = subject.tokens
    return lab.box("at", labels.numbered(tokens), tokens.index(rarest(tokens)[0]))


def rarest(tokens: Sequence[Token]) -> list[Token]:
    """Words first, those that were learned last before the others: they have the largest ids."""
    return sorted(tokens, key=lambda token: (not token.special, token.text[:1].isalnum(), token.id), reverse=True)


def names(model: ModelRef, ids: tuple[int, ...], beside: tuple[int, ...] = ()) -> list[str]:
    """What the tokens read, told apart from each other and from those `beside`."""
    others = [id for id in beside if id not in ids]
    found = model_cache.checkpoint(model).tokenizer_of("encoder").tokens([*ids, *others])
    return labels.told_apart(found)[: len(ids)]


def embedding_table(model: ModelRef) -> Tensor:
    """The table of embeddings that the text is read with [vocab_size, d_model]."""
    return embeddings.table(model_cache.checkpoint(model))

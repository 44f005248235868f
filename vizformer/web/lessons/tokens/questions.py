"""The questions of the lesson Tokens and embeddings."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import (
    computations,
    contexts,
    lengths,
    merges,
    neighbours,
    signals,
    table_row,
    tokenizers,
    word_vectors,
)
from vizformer.web.widgets.questions import Choice, Registry

PATCH = 6  # pixels


def _context(subject: Subject) -> Choice | None:
    second = computations.seconds(subject)[0]
    pairs = computations.shared(subject.model, subject.text, second) if second else ()
    if not pairs:
        return None
    i = contexts.expected(subject, pairs)
    found = computations.contexts(subject.model, subject.text, second, i, dict(pairs)[i])
    return contexts.context_question(subject, second, i, found) if found.others else None


def _lengths(subject: Subject) -> Choice | None:
    found = computations.norms(subject.model, tuple(token.id for token in subject.tokens))
    asks = lengths.longest_question if found.positions is None else lengths.forgotten_question
    return asks(subject, found)


QUESTIONS: Registry = {
    "pieces": tokenizers.pieces_question,
    "merge": lambda subject: merges.first_question(subject.text),
    "products": table_row.products_question,
    "nearest": lambda subject: neighbours.nearest_question(subject, centred=False),
    "static": lambda subject: word_vectors.static_question(),
    "context": _context,
    "lengths": _lengths,
    "patches": lambda subject: signals.patches_question(PATCH),
}

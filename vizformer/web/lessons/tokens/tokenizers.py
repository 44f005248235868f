"""A laboratory of the lesson Tokens and embeddings: the sentence under six tokenizers and under the model's own."""

import streamlit as st

from vizformer.components import cuts, listing
from vizformer.text import IdTokenizer
from vizformer.text.schemes import SCHEMES, Piece, cut, pieces, scheme_tokenizer
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import counts, labels

lab = Laboratory("tokens", "pieces")
BYTES = 240  # of the text that are drawn


@cached
def ways_to_cut(subject: Subject) -> dict[str, tuple[tuple[Piece, ...], int]]:
    """Scheme, or "own" for the model's -> the tokens of the text without special ones, and the vocabulary's entries."""
    own = pieces(subject.text, subject.checkpoint.tokenizer_of("encoder")), subject.config.input_vocab_size
    return {**{one: (cut(one, subject.text), scheme_tokenizer(one).vocab_size) for one in SCHEMES}, "own": own}


@lab.draws
def draw_tokenizers(subject: Subject) -> None:
    ways, d_model = ways_to_cut(subject), subject.config.d_model
    own = "ids" if isinstance(subject.checkpoint.tokenizer_of("encoder"), IdTokenizer) else "own"
    names = [*lab.texts("scheme", SCHEMES).values(), lab.text(own, model=subject.title)]
    written = subject.text.encode()
    shown = len(written[:BYTES].decode(errors="ignore").encode())  # no character is cut in two
    rows = [
        cuts.Row(name, _counted(found), [_drawn(piece) for piece in found])
        for name, (found, __) in zip(names, ways.values(), strict=True)
    ]
    lesson.ask(tokenizers_question(subject), folded=True)  # first: the table below gives it away
    st.html(cuts.style() + listing.style())
    st.html(cuts.to_html(rows, width=shown, label=lab.text("picture")))
    lab.note("hatched")
    if shown < len(written):
        lab.note("part", shown=shown, size=len(written))
    least = min(len(ways[scheme][0]) for scheme in SCHEMES)
    table: list[list[listing.Cell]] = []
    for name, (found, size) in zip(names, ways.values(), strict=True):
        n = len(found)
        table.append([name, n, n**2, n**2, (n / least) ** 2 if least else 0.0, size, size * d_model])
    tokenizer, n_tokens, cells, times, entries = lab.texts(
        "columns", ("tokenizer", "n", "cells", "times", "v")
    ).values()
    head = [tokenizer, n_tokens, cells, "", times, entries, lab.text("numbers", d_model=d_model)]
    st.html(listing.to_html(head, table, bar=3))
    lab.note("counted")


@lab.asks("pieces")
def tokenizers_question(subject: Subject) -> lesson.Choice | None:
    n_bytes, n = (len(ways_to_cut(subject)[scheme][0]) for scheme in ("byte", "character"))
    if not n:
        return None
    ratio = round((n_bytes / n) ** 2, 1)
    wrong = {"same": 1.0, "once": 3.0, "square": 9.0, "cube": 27.0}
    sizes = {"bytes": n_bytes, "characters": n, "byte_cells": n_bytes**2, "cells": n**2}
    return lab.options("pieces", ratio, wrong, subject.text, written=_times, once=f"{n_bytes / n:.1f}", **sizes)


def _times(ratio: float) -> str:
    return lab.text("asks.pieces.choices", form="same" if ratio == 1 else "times", ratio=f"{ratio:g}")


def _counted(row: tuple[Piece, ...]) -> str:
    n, unknown = len(row), sum(piece.unknown for piece in row)
    return lab.text("unknown", form="one" if n == 1 else "some", n=n, unknown=unknown) if unknown else counts.tokens(n)


def _drawn(piece: Piece) -> cuts.Cut:
    hint = lab.text("hint", id=piece.id, piece=labels.entry(piece.entry))
    continues = piece.entry.startswith("##") and len(piece.entry) > 2
    return cuts.Cut(piece.text, piece.start, piece.end, hint, piece.unknown, continues)

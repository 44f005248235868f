"""Six ways to cut, in the lesson Tokens and embeddings: the sentence under six tokenizers and the model's own."""

import streamlit as st

from vizformer.components import cuts, listing
from vizformer.text.schemes import Piece
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.tokens import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _

BYTES = 240  # of the text that are drawn
AROUND = 4  # merges above and below the current one in the table
WORDS = 80  # that are shown symbol by symbol
REPEATS = "他说他说过他说的话。"  # a sentence from which something can be learned


def scheme_names() -> dict[str, str]:
    return {
        "word": _("Words"),
        "character": _("Characters"),
        "bpe": "BPE",
        "wordpiece": "WordPiece",
        "unigram": "Unigram",
        "byte": _("Bytes"),
    }


@laboratory
def pieces(subject: Subject) -> None:
    """The sentence under six schemes and under the model's own tokenizer, in step with its bytes."""
    found = computations.cuts(subject)
    title = subject.title
    own = _("Ids of {model}, as typed", model=title) if found.takes_ids else _("The tokenizer of {model}", model=title)
    rows = [*((scheme_names()[scheme], cut) for scheme, cut in found.schemes.items()), (own, found.own)]
    least = min(len(cut.pieces) for cut in found.schemes.values())
    size = len(subject.text.encode())
    shown = 0
    for character in subject.text:  # no character is cut in two
        if shown + len(character.encode()) > BYTES:
            break
        shown += len(character.encode())
    st.html(cuts.style() + listing.style())
    st.html(
        cuts.to_html(
            [cuts.Row(name, counted(cut.pieces), [cell(piece) for piece in cut.pieces]) for name, cut in rows],
            width=shown,
            label=_("The sentence under each tokenizer"),
        )
    )
    st.caption(
        _(
            "Hatched: unknown to the vocabulary, so the text is lost. Dotted on the left: continues a word. "
            "␣ is a space."
        )
    )
    if shown < size:
        st.caption(
            _(
                "The rows show the first {shown} of {size} bytes; what is counted is all of them.",
                shown=shown,
                size=size,
            )
        )
    lesson.ask(pieces_question(subject))
    table: list[list[listing.Cell]] = []
    for name, cut in rows:
        n = len(cut.pieces)
        ratio = (n / least) ** 2 if least else 0.0
        table.append([name, n, n**2, n**2, ratio, cut.vocab_size, cut.vocab_size * found.d_model])
    head = [
        _("tokenizer"),
        _("tokens n"),
        _("cells n²"),
        "",
        _("times the fewest"),
        _("vocabulary V"),
        _("numbers in E: V × {d_model}", d_model=found.d_model),
    ]
    st.html(listing.to_html(head, table, bar=3))
    st.caption(_("Counted without the special tokens that a model puts around the text."))


def counted(row: tuple[Piece, ...]) -> str:
    unknown = sum(piece.unknown for piece in row)
    if len(row) == 1:
        return _("1 token, unknown") if unknown else _("1 token")
    if unknown:
        return _("{n} tokens, {unknown} of them unknown", n=len(row), unknown=unknown)
    return _("{n} tokens", n=len(row))


def cell(piece: Piece) -> cuts.Cut:
    hint = _("id {id}, vocabulary entry {piece}", id=piece.id, piece=piece.entry)
    continues = piece.entry.startswith("##") and len(piece.entry) > 2
    return cuts.Cut(piece.text, piece.start, piece.end, hint, piece.unknown, continues)


def pieces_question(subject: Subject) -> lesson.Choice | None:
    """How many times as many cells an attention map has for bytes as for characters."""
    schemes = computations.cuts(subject).schemes
    n_bytes, n_characters = len(schemes["byte"].pieces), len(schemes["character"].pieces)
    if not n_characters:
        return None
    ratio = round((n_bytes / n_characters) ** 2, 1)
    ratios = sorted({1.0, 3.0, 9.0, 27.0, ratio})
    return lesson.Choice(
        "tokens",
        "pieces",
        _(
            "An attention map has a cell for every pair of tokens. A model that reads your sentence as bytes instead of "
            "characters: how many times as many cells?"
        ),
        [_("{ratio} times as many", ratio=f"{value:g}") if value != 1 else _("just as many") for value in ratios],
        ratios.index(ratio),
        _(
            "{bytes} bytes, {characters} characters: {bytes}² = {byte_cells} cells against {characters}² = {cells}. In "
            "UTF-8 a letter of English is 1 byte and a Chinese character is 3.",
            bytes=n_bytes,
            characters=n_characters,
            byte_cells=n_bytes**2,
            cells=n_characters**2,
        ),
        about=subject.text,
    )

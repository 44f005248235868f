"""Names of places in the model and of tokens, in words."""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vizformer.components.table import Number
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message
from vizformer.text.pieces import piece_bytes
from vizformer.text.pieces import told_apart as told_apart
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.components.tokens import Token as Chip
    from vizformer.text import Token

POSITIONS: dict[str, Message] = {
    "learned": N_("learned positions"),
    "sinusoidal": N_("sine-wave positions"),
    "rope": N_("RoPE"),
    "alibi": N_("ALiBi"),
    "relative": N_("relative position buckets"),
    "none": N_("no positions"),
}
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))

if TYPE_CHECKING:
    from vizformer.components.tokens import Token as Chip
    from vizformer.text import Token


def kind_label(kind: str) -> str:
    """The name of a kind of attention (`vizformer.analysis.Kind`)."""
    return {
        "encoder": _("Encoder self-attention"),
        "decoder": _("Decoder self-attention"),
        "cross": _("Cross-attention"),
    }[kind]


def kind_button(kind: str) -> str:
    """The name of a kind of attention on a button beside the others: three of them fit in a line of a phone."""
    return {"encoder": _("Encoder self"), "decoder": _("Decoder self"), "cross": _("Cross")}[kind]


def stacks(kind: str) -> tuple[str, str]:
    """The stacks whose tokens are the queries and the keys."""
    return {"encoder": ("encoder", "encoder"), "decoder": ("decoder", "decoder"), "cross": ("decoder", "encoder")}[kind]


def texts(tokens: "Sequence[Token]") -> list[str]:
    return [token.text for token in tokens]


def numbered(tokens: "Sequence[Token]") -> list[str]:
    """Token texts with their positions, for lists in which the same token may occur twice."""
    return [f"{index} · {token.text}" for index, token in enumerate(tokens)]


def positions(kind: str) -> str:
    return translate(POSITIONS[kind])


def places(config: ModelConfig) -> str:
    """The positional encoding of a model in words, with relative biases where its scores have them."""
    first = positions(config.positions)
    return _("{first}, and {second}", first=first, second=positions("relative")) if config.relative_bias else first


def bytes_said(texts: Sequence[str]) -> str:
    """What ⟨97⟩ means, where one of these labels shows bytes; else empty."""
    shown = next((found[0] for text in texts if (found := re.search("⟨[0-9A-F ]+⟩", text))), None)
    if shown is None:
        return ""
    return _(
        "{shown}: bytes of UTF-8, in hexadecimal. The model has no token for the whole character, so it "
        "reads the bytes; most Chinese characters have three.",
        shown=shown,
    )


def chips(tokens: "Sequence[Token]") -> "list[Chip]":
    """Tokens for the token strip, with what a hover says about them."""
    return [
        {
            "text": token.text,
            "special": token.special,
            "hover": _("id {id}, vocabulary entry {piece}", id=token.id, piece=entry(token.piece)),
        }
        for token in tokens
    ]


def entry(piece: str) -> str:
    """A vocabulary entry, and what its tokenizer's marks mean where it has some: Ġ and ▁, ##, letters for bytes."""
    mark = next((mark for mark in ("Ġ", "▁") if mark in piece), "")
    if mark:
        said = _("{mark} is a space", mark=mark)
    elif piece.startswith("##") and len(piece) > 2:
        said = _("## continues a word")
    elif not piece.isascii() and _is_bytes(piece):
        said = _("a letter for each byte")
    else:
        return piece
    return _("{piece} ({meaning})", piece=piece, meaning=said)


def _is_bytes(piece: str) -> bool:
    """Whether an entry is a text as byte-level BPE writes it: "æĪĳ" is 我."""
    raw = piece_bytes(piece, "byte-level")
    try:
        return raw != piece.encode() and bool(raw.decode())
    except UnicodeDecodeError:
        return False


def percent(probability: float) -> str:
    """A probability with one digit; what would round to nothing is said to be small, not to be zero."""
    if not math.isfinite(probability):
        return _("not finite")
    return "<0.1%" if 0 < probability < 0.0005 else f"{probability:.1%}"


def size(nbytes: int) -> str:
    """A number of bytes in the largest unit that it reaches."""
    for unit, name in _UNITS:
        if nbytes >= unit:
            return f"{nbytes / unit:.1f} {name}"
    return f"{nbytes} B"


def share(probability: float) -> Number:
    """A cell with a probability, or with another share of 1."""
    return Number(float(probability), percent(float(probability)).replace("-", "−"))

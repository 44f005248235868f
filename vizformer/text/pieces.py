"""Vocabulary entries made readable: byte-level letters, word-start and continuation markers.

Byte-level BPE (GPT-2) writes every byte as a printable letter, so that 我 becomes "æĪĳ" and a space "Ġ";
SentencePiece writes a space as "▁"; WordPiece marks what continues a word with "##".  On screen we want 我, "cat"
and "ing" - and where a token holds only part of a character, the bytes it holds.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal
from unicodedata import category

if TYPE_CHECKING:
    from vizformer.text.tokenizer import Token, Tokenizer

Spelling = Literal["byte-level", "metaspace", "wordpiece", "plain"]

SPACE, NEWLINE, TAB = "␣", "⏎", "⇥"

HAN, LATIN = "CJK", "LATIN"
LOOKED_AT = 2000  # characters of a text, which take 5 ms
SAMPLED = 500  # tokens of a vocabulary, which take 10 ms
_SIGN_BY_SIGN = (HAN, "HIRAGANA", "KATAKANA", "HANGUL")  # scripts without words between spaces, or of syllables
_NAME = re.compile(r"(?:(?:FULL|HALF)WIDTH )?(?!MODIFIER)([A-Z]+)[ -](?:.* )?(?:LETTER|SYLLABLE|IDEOGRAPH|CHARACTER)\b")
"""Unicode's name of a letter, which begins with the script."""


@cache
def byte_letters() -> dict[str, int]:
    """GPT-2's table: printable Latin-1 letters stand for themselves, the other bytes for letters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(0x100 + index): byte for index, byte in enumerate(others)}


def piece_bytes(piece: str, spelling: Spelling) -> bytes:
    """The UTF-8 bytes that a vocabulary entry stands for, its leading space included.

    >>> piece_bytes("Ġcat", "byte-level"), piece_bytes("##ing", "wordpiece"), piece_bytes("<0xE6>", "metaspace")
    (b' cat', b'ing', b'\\xe6')
    """
    if spelling == "byte-level":
        letters = byte_letters()
        if all(letter in letters for letter in piece):
            return bytes(letters[letter] for letter in piece)
    elif spelling == "wordpiece" and piece.startswith("##") and len(piece) > 2:
        return piece[2:].encode()
    elif spelling == "metaspace":
        if byte := re.fullmatch("<0x([0-9A-F]{2})>", piece):  # byte fallback
            return bytes.fromhex(byte[1])
        return piece.replace("▁", " ").encode()
    return piece.encode()


def readable(piece: str, spelling: Spelling) -> str:
    """A vocabulary entry as readable text: without the space that begins a word, with invisible characters spelled out.

    >>> readable("Ġcat", "byte-level"), readable("æĪĳ", "byte-level"), readable("æĪ", "byte-level")
    ('cat', '我', '⟨E6 88⟩')
    >>> readable("Ġ", "byte-level"), readable("▁cat", "metaspace"), readable("é", "wordpiece")
    ('␣', 'cat', 'é')
    """
    raw = piece_bytes(piece, spelling)
    return _visible(raw[1:] if raw.startswith(b" ") and len(raw) > 1 else raw)


def _visible(raw: bytes) -> str:
    """UTF-8 as text; bytes that do not form a character, and control characters, as hexadecimal."""
    try:
        return "".join(map(_visible_character, raw.decode()))
    except UnicodeDecodeError as error:
        whole, broken, rest = raw[: error.start], raw[error.start : error.end], raw[error.end :]
        return _visible(whole) + _hexadecimal(broken) + _visible(rest)


def _visible_character(char: str) -> str:
    if char in (" ", "\n", "\t"):
        return {" ": SPACE, "\n": NEWLINE, "\t": TAB}[char]
    return char if char.isprintable() else _hexadecimal(char.encode())


def _hexadecimal(raw: bytes) -> str:
    return f"⟨{raw.hex(' ').upper()}⟩"


def spelled_out(tokens: Sequence[str]) -> tuple[str, ...]:
    """Vocabulary entries of a text as text, with the space before a word, where a byte-level tokenizer wrote them.

    That is known by what they say together: letters of GPT-2's table alone, some of which no keyboard writes, that spell
    UTF-8 without control characters.  Entries such as <|endoftext|> and [CLS] stay as they are, and so does other text.

    >>> spelled_out(["<s>", "ĠæĪĳ", "æľī", "Ċ"])
    ('<s>', ' 我', '有', '\\n')
    """
    letters = byte_letters()
    special = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
    raw, said = bytearray(), False
    for token in tokens:
        if special.fullmatch(token):
            raw += b" "
        elif all(letter in letters for letter in token):
            raw += bytes(letters[letter] for letter in token)
            said = said or any(letter > "\u0100" for letter in token)
        else:
            return tuple(tokens)
    if not said:
        return tuple(tokens)
    whole = raw.decode("utf-8", "replace").strip("\ufffd")  # (a window of a text may begin or end within a character)
    if "\ufffd" in whole or any(category(one) == "Cc" and one not in "\n\r\t" for one in whole):
        return tuple(tokens)
    spelled = (token if special.fullmatch(token) else _text(bytes(letters[one] for one in token)) for token in tokens)
    return tuple(spelled)


def unturned(text: str) -> str:
    """A text without the characters that turn the direction of all that follows them: their bytes stand in their place.

    >>> unturned("a\\u202eb")
    'a⟨E2 80 AE⟩b'
    """
    return re.sub("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", lambda found: _hexadecimal(found[0].encode()), text)


def _text(raw: bytes) -> str:
    """UTF-8 as text; bytes that do not form a character as hexadecimal."""
    pieces: list[str] = []
    while raw:
        try:
            return "".join((*pieces, raw.decode()))
        except UnicodeDecodeError as error:
            pieces += [raw[: error.start].decode(), _hexadecimal(raw[error.start : error.end])]
            raw = raw[error.end :]
    return "".join(pieces)


def told_apart(tokens: "Sequence[Token]") -> list[str]:
    """Token texts of a list of candidates: where several read the same, with the space before them, or else their ids."""
    names = {token.id: token.text for token in tokens}
    alike = Counter(names.values())
    for token in tokens:
        if alike[token.text] > 1 and token.piece.startswith(("Ġ", "▁")):
            names[token.id] = "␣" + token.text
    alike = Counter(names.values())
    return [f"{name} #{token.id}" if alike[name] > 1 else name for token in tokens for name in [names[token.id]]]


# The scripts that a text and a vocabulary are in, as Unicode calls them.
def script(text: str) -> str:
    """The script that most of a text's beginning is in, as Unicode calls it; empty where two are as frequent, or none is.

    A Chinese character or a syllable counts as much as a word of letters.
    """
    found: Counter[str] = Counter()
    before = ""
    for sign in text[:LOOKED_AT]:
        if unicodedata.category(sign).startswith("M"):  # an accent or a vowel, which belongs to the letter before it
            continue
        letter = _NAME.match(unicodedata.name(sign, "")) if sign.isalpha() else None
        now = letter[1] if letter else ""
        if now and (now != before or now in _SIGN_BY_SIGN):
            found[now] += 1
        before = now
    ((first, most), (_second, less)) = [*found.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > less else ""


def scripts_of(vocabulary: "Tokenizer") -> Mapping[str, float]:
    """The share of each script among the tokens that hold a letter, the largest first; estimated from every n-th token.

    Nothing where no token holds a letter, as where texts are token ids.
    """
    step = max(1, vocabulary.vocab_size // SAMPLED)
    found = Counter(filter(None, (script(vocabulary.decode([id])) for id in range(0, vocabulary.vocab_size, step))))
    return {name: n / found.total() for name, n in found.most_common()}


def called(name: str) -> str:
    """The name of a script for readers: "Han" for CJK, any other in title case."""
    return "Han" if name == HAN else name.title()

"""Six tokenizers into tokens, side by side: words, characters, BPE, WordPiece, Unigram, bytes.

All but the bytes were learned from the same sentences (assets/lessons/tokens/README.md), the three subword schemes to
the same size, from the same words, so that what differs on screen is the scheme.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import Literal, get_args

from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from vizformer.assets import asset
from vizformer.text.pieces import SPACE
from vizformer.text.tokenizer import Token, Tokenizer

Scheme = Literal["word", "character", "bpe", "wordpiece", "unigram", "byte"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
LEARNED: tuple[Scheme, ...] = ("word", "character", "bpe", "wordpiece", "unigram")

UNKNOWN = "[UNK]"


@dataclass(frozen=True)
class Piece:
    id: int  # its number in the vocabulary
    # the stretch of the text it stands for, spaces visible; for part of a character, its bytes in hexadecimal
    text: str
    entry: str  # the vocabulary entry itself
    # start, end: the bytes of the text (in UTF-8) that it covers
    start: int
    end: int
    unknown: bool = False  # whether the vocabulary has nothing for it: the text is lost


@cache
def scheme_tokenizer(scheme: Scheme) -> Tokenizer:
    """The tokenizer of a scheme; the learned ones come from assets/lessons/tokens."""
    if scheme != "byte":
        return Tokenizer.from_file(asset("lessons", "tokens", f"{scheme}.json"))
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    backend = Backend(models.BPE(vocab=letters, merges=[]))  # nothing is ever merged: 256 tokens
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return Tokenizer(backend)


def pre_tokenizer(scheme: Scheme) -> pre_tokenizers.PreTokenizer:
    """The pre-tokenizer of a scheme. It cuts a text into words; no token reaches across these cuts.

    Words end at spaces and punctuation.  BPE and Unigram keep the space, at the beginning of the word it precedes
    (written ▁, Kudo & Richardson 2018); WordPiece drops it and marks what continues a word with ##.
    """
    if scheme == "character":
        return pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    if scheme in ("word", "wordpiece"):
        return pre_tokenizers.BertPreTokenizer()
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(prepend_scheme="never"), pre_tokenizers.Punctuation(behavior="isolated")]
    )


def cut(scheme: Scheme, text: str) -> tuple[Piece, ...]:
    """The tokens of `text` under a scheme, in order."""
    return pieces(text, scheme_tokenizer(scheme))


def pieces(text: str, tokenizer: Tokenizer) -> tuple[Piece, ...]:
    """The tokens of `text` without special ones around it, with the bytes of the text that they cover.

    Several tokens may share a character (the bytes of 我 one by one): then each gets its own bytes of it, where the
    vocabulary says how many, and an equal part where a normaliser has changed their number.
    """
    ends = [0, *accumulate(len(character.encode()) for character in text)]  # characters -> bytes
    found: list[Piece] = []
    for group in _overlapping(tokenizer.encode(text, special=False)):
        start, end = ends[min(token.start for token in group)], ends[max(token.end for token in group)]
        for token, (first, last) in zip(group, _share(group, start, end, tokenizer), strict=True):
            unknown = token.special and token.piece.strip("<>[]").lower() in ("unk", "unknown")
            found.append(Piece(token.id, _seen(text, first, last), token.piece, first, last, unknown))
    return tuple(found)


def _overlapping(tokens: Sequence[Token]) -> list[list[Token]]:
    """Groups of consecutive tokens whose character spans overlap."""
    groups: list[list[Token]] = []
    reached = -1
    for token in tokens:
        if groups and token.start < reached:
            groups[-1].append(token)
        else:
            groups.append([token])
        reached = max(reached, token.end)
    return groups


def _share(group: Sequence[Token], start: int, end: int, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """The byte span of each token in a group that covers the bytes from `start` to `end`."""
    if len(group) == 1:
        return [(start, end)]
    lengths = [len(tokenizer.bytes_of(token.id)) for token in group]
    if sum(lengths) == end - start:
        cuts = [start, *(start + total for total in accumulate(lengths))]
    else:
        cuts = [start + (end - start) * i // len(group) for i in range(len(group) + 1)]
    return list(pairwise(cuts))


def _seen(text: str, first: int, last: int) -> str:
    raw = text.encode()[first:last]
    try:
        return raw.decode().replace(" ", SPACE)
    except UnicodeDecodeError:
        return raw.hex(" ").upper()

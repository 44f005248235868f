"""Six tokenizers into tokens, side by side: words, characters, BPE, WordPiece, Unigram, bytes.

All but the bytes were learned from the same sentences (assets/lessons/tokens/README.md), the three subword schemes to
the same size, from the same words, so that what differs on screen is the scheme.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

Pair = tuple[str, str]
Word = tuple[str, ...]

PAPER: Mapping[Word, int] = {
    ("l", "o", "w", "</w>"): 5,
    ("l", "o", "w", "e", "r", "</w>"): 2,
    ("n", "e", "w", "e", "s", "t", "</w>"): 6,
    ("w", "i", "d", "e", "s", "t", "</w>"): 3,
}
"""The word counts of the paper's algorithm 1, each word with its end mark."""


@dataclass(frozen=True)
class Learned:
    """One step of learning: the most frequent pair, the counts of all pairs before the merge, and the words after it."""

    pair: Pair
    counts: tuple[tuple[Pair, int], ...]
    words: tuple[tuple[Word, int], ...]


@dataclass(frozen=True)
class Applied:
    pair: Pair  # of all pairs of adjacent symbols the one that was learned first
    rank: int  # its line in the table, from 0
    count: int | None  # how often the pair occurred when it was learned
    words: tuple[Word, ...]  # the words of the text after the merge


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


# Byte-pair encoding one merge at a time: learning a table of merges, and applying one to a text.
#
# Source: Sennrich, Haddow & Birch 2016, "Neural Machine Translation of Rare Words with Subword Units", section 3.2
# and algorithm 1.
def merge(word: Sequence[str], pair: Pair) -> Word:
    """The word with each occurrence of `pair`, from left to right, as one symbol.

    >>> merge(("n", "e", "w", "e", "s", "t"), ("e", "s"))
    ('n', 'e', 'w', 'es', 't')
    """
    merged: list[str] = []
    i = 0
    while i < len(word):
        if tuple(word[i : i + 2]) == pair:
            merged.append(pair[0] + pair[1])
            i += 2
        else:
            merged.append(word[i])
            i += 1
    return tuple(merged)


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a text as BPE begins with them: cut at spaces and punctuation, each a row of characters."""
    return tuple(tuple(word) for word, __ in pre_tokenizer("bpe").pre_tokenize_str(text))


def pair_counts(words: Iterable[tuple[Word, int]]) -> Counter[Pair]:
    """How often each pair of adjacent symbols occurs inside words; equal counts keep the order of the text."""
    counts: Counter[Pair] = Counter()
    for word, times in words:
        for pair in itertools.pairwise(word):
            counts[pair] += times
    return counts


def learn(words: Mapping[Word, int], merges: int) -> tuple[Learned, ...]:
    """Learns up to `merges` merges: count the pairs, merge the most frequent one, begin again.

    Ties go to the pair that is met first.  A pair that occurs once is not merged.  Every step counts everything anew, so
    this is for small texts.
    """
    now = list(words.items())
    steps: list[Learned] = []
    while len(steps) < merges:
        counts = pair_counts(now).most_common()  # equal counts stay in the order in which they were met
        if not counts or counts[0][1] < 2:
            break
        pair = counts[0][0]
        now = [(merge(word, pair), times) for word, times in now]
        steps.append(Learned(pair, tuple(counts), tuple(now)))
    return tuple(steps)


def apply(words: Sequence[Word], table: Sequence[Pair], counts: Sequence[int] = ()) -> tuple[Applied, ...]:
    """Cuts words with a learned table: of the pairs that are there, merge the one learned first, until none is left."""
    ranks = {pair: rank for rank, pair in enumerate(table)}
    now = tuple(words)
    steps: list[Applied] = []
    while True:
        there = [ranks[pair] for word in now for pair in itertools.pairwise(word) if pair in ranks]
        if not there:
            return tuple(steps)
        rank = min(there)
        now = tuple(merge(word, table[rank]) for word in now)
        steps.append(Applied(table[rank], rank, counts[rank] if rank < len(counts) else None, now))


@cache
def bundled_table() -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """The merges of the lesson's BPE tokenizer in the order in which they were learned, and the count of each."""
    model = json.loads(scheme_tokenizer("bpe").to_json())["model"]
    counts = json.loads(asset("lessons", "tokens", "bpe-counts.json").read_text(encoding="utf-8"))
    return tuple((left, right) for left, right in model["merges"]), tuple(counts)

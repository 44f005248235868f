"""Bounds on the text that a tokenizer makes of its input, and the patterns by which it cuts.

A tokenizer is a row of parts, each of which makes something of what the one before it has made.  What each part can
make of one character, at most, is known without running it; the product says what a text can grow to.  A file in which
that product or a pattern is too large is refused by name.

Source: the parts of github.com/huggingface/tokenizers, by the names that its files give them.
"""

import base64
import binascii
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from vizformer.errors import TokenizerError

MOST_PARTS, _DEEPEST = 48, 6
LONGEST_TEXT = 64  # characters that a part may insert at once
_MOST_GROWTH = 4096
_CHARSMAP = 2**21  # bytes; SentencePiece's own has 240,000
MOST_CHARACTERS = 2**19  # the most characters that a text may become
_QUADRATIC = 8  # counts as growth by this factor: each of at most 2**16 characters may start a pass over the rest
_UNICODE = 3  # beyond what NFKD makes of a text: lower case, spaces around Chinese characters

Cost = Literal["linear", "quadratic"]

LONGEST = 2000  # characters of a pattern

_ESCAPE = r"\\(?:[pP]\{\^?\w+\}|[sSdDwWhHnrtfv]|u[0-9A-Fa-f]{4}|x\{[0-9A-Fa-f]+\}|[^A-Za-z0-9])"
_INNER = r"\[(?!:|\^\])(?:\\.|[^\[\]\\])+\]"  # a class in a class; [:names:] have rules of their own
_CLASS = rf"\[(?!\^\])(?:\\.|[^\[\]\\]|{_INNER})+\]"
_ONE = rf"(?:{_ESCAPE}|{_CLASS}|[^\\\[\](){{}}*+?|^$])"  # matches one character
_WORDS = rf"\((?:\?i?:)?{_ONE}{{1,8}}(?:\|{_ONE}{{1,8}}){{0,15}}\)"
_FEW = rf"(?:{_ONE}\?\+?)?{_ONE}{{0,64}}(?:{_WORDS})?"
_RUN = rf"{_ONE}(?:[*+]\+?|\{{(?:\d{{1,2}}(?:,\d{{0,4}})?|,\d{{1,4}})\}})"
_LINEAR = re.compile(rf"\^?{_FEW}\$?|{_FEW}{_RUN}(?:{_ONE}[*?]\+?){{0,4}}(?:{_WORDS}\?)?", re.DOTALL)
_AT_MOST_QUADRATIC = re.compile(rf"\^?{_FEW}{_RUN}{_ONE}{{0,64}}\$?", re.DOTALL)
_ALTERNATIVE = re.compile(rf"((?:{_CLASS}|\\.|\((?:{_CLASS}|\\.|[^()\[\\])*\)|[^|\[\\(])+)(?:\||\Z)", re.DOTALL)

_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_PUBLISHED = frozenset(  # of GPT-2, GPT-4, GPT-4o, Kimi: runs that a later alternative of the same pattern takes whole
    {r"\s+(?!\S)", r"\s*[\r\n]+", r"\s*[\r\n]", r"(\s+)"}
    | {
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}{but}]{first}[{_LOWER}{but}]{then}{end}"
        for but in ("", r"&&[^\p{Han}]")
        for first, then in ("*+", "+*")
        for end in ("", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?")
    }
)


class PatternError(TokenizerError):
    """A pattern of a tokenizer that may backtrack for too long."""


class BoundsError(TokenizerError):
    """A tokenizer that asks for too much; says which part does."""


def allows(text: str, factor: int) -> bool:
    """Whether `text` is short enough for a tokenizer that multiplies its length by at most `factor`."""
    if factor <= 4:
        return True  # texts of any length: the work is linear in it
    length = len(text) if text.isascii() else len(unicodedata.normalize("NFKD", text[: MOST_CHARACTERS + 1]))
    return length * factor <= MOST_CHARACTERS


def growth(normalizer: object, pre_tokenizer: object) -> int:
    """The largest number of characters that normaliser and pre-tokenizer make of one, beyond its compatibility
    decomposition (NFKD). A pattern whose steps grow with the square of the text counts as growth too.

    Raises:
        BoundsError: the growth is too large, or not known.
    """
    return _product((*parts(normalizer), *parts(pre_tokenizer)), _grown)


def decoded(decoder: object) -> int:
    """The largest number of characters that a decoder makes of one character of a token.

    Raises:
        BoundsError: the growth is too large, or not known.
    """
    return _product(parts(decoder), _decoded)


def _product(row: Iterable[Mapping[str, Any]], of_one: Callable[[Mapping[str, Any]], int]) -> int:
    found = 1
    for part in row:
        found *= of_one(part)
        if found > _MOST_GROWTH:
            raise BoundsError(
                "a text could become {factor} times as long in {part}", factor=f"{found:,}", part=called(part)
            )
    return found


_SAME = {
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "StripAccents",
    "Strip",
    "Nmt",
    "Whitespace",
    "WhitespaceSplit",
    "Punctuation",
    "Digits",
    "UnicodeScripts",
    "BertPreTokenizer",
}


def _grown(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    if kind in _SAME:
        return 1
    if kind in ("Lowercase", "BertNormalizer"):
        return _UNICODE
    if kind == "ByteLevel":  # a letter for each byte; as a normalizer it says nothing else, and ¼ may become 1, /, 4
        return 12 if len(part) == 1 else 4
    if kind in ("Prepend", "Metaspace"):  # in front of each piece, of which there may be one a character
        text = _text(part, "prepend" if kind == "Prepend" else "replacement")
        return 1 + len(unicodedata.normalize("NFKD", text))
    if kind == "Replace":
        return _replaced(part)
    if kind == "Precompiled":
        return _longest_replacement(part)
    if kind == "Split" and part.get("pattern") in ({"String": ""}, {"Regex": ""}):  # between any two characters
        return 1
    if kind == "Split":
        pattern = _pattern(part)
        return _steps(pattern["Regex"]) if "Regex" in pattern else 1
    if kind == "CharDelimiterSplit":
        _text(part, "delimiter")
        return 1
    if kind == "FixedLength":
        if type(part.get("length")) is not int or part["length"] < 1:
            raise BoundsError("FixedLength has no length")
        return 1
    raise BoundsError("{part} is not known", part=called(part))


def _decoded(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    if kind in ("ByteLevel", "ByteFallback", "Fuse", "Strip", "CTC"):
        for name in ("pad_token", "word_delimiter_token", "content"):
            if name in part:
                _text(part, name)
        return 1
    if kind == "WordPiece":
        _text(part, "prefix")
        return 2
    if kind == "BPEDecoder":
        _text(part, "suffix")
        return 2
    if kind == "Metaspace":
        return 1 + len(_text(part, "replacement"))
    if kind == "Replace":
        return _replaced(part)
    raise BoundsError("{part} is not known", part=called(part))


def _replaced(part: Mapping[str, Any]) -> int:
    content, pattern = _text(part, "content"), _pattern(part)
    put = len(unicodedata.normalize("NFKD", content))
    if "Regex" in pattern:
        return _steps(pattern["Regex"]) * (1 + put if put > 1 else 2 - (put == 0))
    return max(1, math.ceil(put / len(pattern["String"])))


def _steps(pattern: str) -> int:
    try:
        return _QUADRATIC if cost(pattern) == "quadratic" else 1
    except PatternError as error:
        raise BoundsError(error.message) from error


def _pattern(part: Mapping[str, Any]) -> dict[str, str]:
    pattern = part.get("pattern")
    if isinstance(pattern, dict) and len(pattern) == 1:
        ((kind, text),) = pattern.items()
        if kind in ("String", "Regex") and isinstance(text, str) and text and (kind == "Regex" or len(text) <= 1024):
            return {kind: text}
    raise BoundsError("{part} has an invalid pattern", part=called(part))


def _text(part: Mapping[str, Any], name: str) -> str:
    text = part.get(name)
    if text is None and name in ("prefix", "suffix"):
        return ""
    if not isinstance(text, str):
        raise BoundsError("{part} has no {name}", part=called(part), name=name)
    if len(text) > LONGEST_TEXT:
        raise BoundsError(
            "{part} adds {n} characters to a text; at most {most} are allowed",
            part=called(part),
            n=f"{len(text):,}",
            most=LONGEST_TEXT,
        )
    return text


def _longest_replacement(part: Mapping[str, Any]) -> int:
    """The length of the longest replacement in SentencePiece's table. The replacements follow its trie, each ended by a
    zero byte.
    """
    packed = part.get("precompiled_charsmap")
    if not isinstance(packed, str) or len(packed) > 4 * _CHARSMAP // 3 + 4:
        raise BoundsError("Precompiled has no table, or one that is too large")
    try:
        table = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BoundsError("Precompiled has an invalid table") from error
    texts = table[4 + int.from_bytes(table[:4], "little") :]
    made = unicodedata.normalize("NFKD", texts.decode("utf-8", "replace"))
    longest = max(map(len, made.split("\0")))
    if longest > LONGEST_TEXT:
        raise BoundsError(
            "Precompiled adds {longest} characters to a text; at most {most} are allowed",
            longest=f"{longest:,}",
            most=LONGEST_TEXT,
        )
    return max(1, longest)


def parts(part: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The parts in order, including those inside a Sequence."""
    if part is None or part == {}:
        return
    if not isinstance(part, dict) or depth > _DEEPEST:
        raise BoundsError("one of its parts is invalid")
    if part.get("type") != "Sequence":
        yield part
        return
    inner = [part[name] for name in ("normalizers", "pretokenizers", "processors", "decoders") if name in part]
    if len(inner) != 1 or not isinstance(inner[0], list) or len(inner[0]) > MOST_PARTS:
        raise BoundsError("a Sequence has no parts, or more than {most}", most=MOST_PARTS)
    for one in inner[0]:
        yield from parts(one, depth + 1)


def shown(value: object, most: int) -> str:
    """The beginning of a value from a file, without characters that would turn or break the line that quotes it."""
    return "".join(one if one.isprintable() else "\ufffd" for one in str(value)[:most])


def called(part: Mapping[str, Any]) -> str:
    return shown(part.get("type"), 40)


# The regular expressions of tokenizers that are accepted: those whose backtracking is at most quadratic.
#
# Oniguruma, with which the `tokenizers` library cuts texts, tries every way to match: (a+)+$ takes 2^n steps for n
# letters. So each alternative of a pattern, what stands between two of its bars, must have one of two forms: a few
# characters or classes, one repetition, and then nothing that must match (linear: there is no reason to go back); or
# something that must (quadratic: the repetition may be gone through from each of its characters). The alternatives
# of published tokenizers that have neither form are listed.
#
# Source: github.com/kkos/oniguruma, doc/RE; Davis et al. 2018, "The Impact of Regular Expression Denial of Service".
def cost(pattern: str) -> Cost:
    """How the steps of matching grow with the length of the text: linearly or quadratically.

    Raises:
        PatternError: they grow faster than quadratically, or the growth is not known.
    """
    place = 0
    found: Cost = "linear"
    while len(pattern) <= LONGEST and (alternative := _ALTERNATIVE.match(pattern, place)):
        text = alternative[1]
        if text not in _PUBLISHED and not _LINEAR.fullmatch(text):
            if not _AT_MOST_QUADRATIC.fullmatch(text):
                break
            found = "quadratic"
        place = alternative.end()
        if place == len(pattern) and alternative[0] == text:  # no further alternative
            return found
    raise PatternError(
        "the pattern {pattern} may take for ever. A pattern may have at most {most} characters and, between two bars, "
        "one repetition of a character or class, or an alternative of GPT-2, GPT-4, GPT-4o or Kimi. Remove the "
        "tokenizer's files to type token ids instead",
        pattern="".join(one if one.isprintable() else "\ufffd" for one in pattern[place : place + 60]),
        most=f"{LONGEST:,}",
    )

"""What a tokenizer.json may ask for: how long texts may become in it, and by which patterns they are cut.

A tokenizer is a row of parts, each of which makes something of what the one before it has made.  What each part can
make of one character, at most, is known without running it; the product says what a text can grow to.  A file in which
that product, a pattern, a part or a token is too large is refused by name.

Source: the parts of github.com/huggingface/tokenizers, by the names that its files give them.
"""

import base64
import binascii
import math
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vizformer.errors import TokenizerError
from vizformer.messages import N_
from vizformer.text.patterns import PatternError, cost

MOST_ENTRIES = 2**20  # tokens and merges; the largest vocabularies in use have 900,000
MOST_IDS = 2**22
MOST_ADDED = 2**16
LONGEST_TOKEN = 1024  # characters
MOST_PARTS, _DEEPEST = 48, 6
_LONGEST_TEXT = 64  # characters that a part may put somewhere
_MOST_GROWTH = 4096
_CHARSMAP = 2**21  # bytes; SentencePiece's own has 240,000
MOST_CHARACTERS, MOST_QUADRATIC = 2**19, 2**16  # that a text may become
_UNICODE = 3  # beyond what NFKD makes of a text: lower case, spaces around Chinese characters


class BoundsError(TokenizerError):
    """A tokenizer that asks for too much; says which part does."""


@dataclass(frozen=True)
class Growth:
    """How many characters are made of one, at most, beyond its compatibility decomposition (NFKD).

    Attributes:
        factor: of each character.
        quadratic: whether a pattern takes a number of steps that grows with the square of the text.
    """

    factor: int = 1
    quadratic: bool = False

    def __mul__(self, other: "Growth") -> "Growth":
        return Growth(self.factor * other.factor, self.quadratic or other.quadratic)

    def allows(self, text: str) -> bool:
        """Whether a text stays within bounds, whatever it becomes."""
        if self.factor <= 4 and not self.quadratic:
            return True  # texts as long as anybody likes: what is done to them is in proportion
        length = len(text) if text.isascii() else len(unicodedata.normalize("NFKD", text[: MOST_CHARACTERS + 1]))
        return length * self.factor <= (MOST_QUADRATIC if self.quadratic else MOST_CHARACTERS)


def check(content: object, rows: int | None = None) -> None:
    """Looks at a whole file.

    Args:
        content: the file's JSON.
        rows: of the largest table in the weights, where they are known: ids above it cannot be this model's.

    Raises:
        BoundsError: something in it is too large, too many, or of a kind that is not known.
    """
    if not isinstance(content, dict):
        raise BoundsError(N_("it is no object with fields"))
    parts = [content.get(name) for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
    if sum(1 for part in parts for __ in _parts(part)) > MOST_PARTS:
        raise BoundsError(N_("it has more than {most} parts", most=MOST_PARTS))
    growth(parts[0], parts[1])
    decoded(parts[3])
    _check_marks(parts[2])
    _check_added(content.get("added_tokens"), rows)
    _check_model(content.get("model"), rows)


def growth(normalizer: object, pre_tokenizer: object) -> Growth:
    """What a text can become before it is cut into tokens.

    Raises:
        BoundsError: too much, or nobody knows.
    """
    found = Growth()
    for part in (*_parts(normalizer), *_parts(pre_tokenizer)):
        found *= _grown(part)
        if found.factor > _MOST_GROWTH:
            raise BoundsError(
                N_(
                    "a text could become {factor} times as long in {part}",
                    factor=f"{found.factor:,}",
                    part=_called(part),
                )
            )
    return found


def decoded(decoder: object) -> Growth:
    """What tokens can become when they are turned into a text.

    Raises:
        BoundsError: too much, or nobody knows.
    """
    found = Growth()
    for part in _parts(decoder):
        found *= _decoded(part)
        if found.factor > _MOST_GROWTH:
            raise BoundsError(
                N_(
                    "a text could become {factor} times as long in {part}",
                    factor=f"{found.factor:,}",
                    part=_called(part),
                )
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


def _grown(part: Mapping[str, Any]) -> Growth:
    kind = part.get("type")
    if kind in _SAME:
        return Growth()
    if kind in ("Lowercase", "BertNormalizer"):
        return Growth(_UNICODE)
    if kind == "ByteLevel":  # a letter for each byte; as a normalizer it says nothing else, and ¼ may become 1, /, 4
        return Growth(12 if len(part) == 1 else 4)
    if kind in ("Prepend", "Metaspace"):  # in front of each piece, of which there may be one a character
        text = _text(part, "prepend" if kind == "Prepend" else "replacement")
        return Growth(1 + len(unicodedata.normalize("NFKD", text)))
    if kind == "Replace":
        return _replaced(part)
    if kind == "Precompiled":
        return Growth(_longest_replacement(part))
    if kind == "Split":
        pattern = _pattern(part)
        return Growth(1, quadratic="Regex" in pattern and _cost(pattern["Regex"]))
    if kind == "CharDelimiterSplit":
        _text(part, "delimiter")
        return Growth()
    if kind == "FixedLength":
        if type(part.get("length")) is not int or part["length"] < 1:
            raise BoundsError(N_("FixedLength has no length"))
        return Growth()
    raise BoundsError(N_("{part} is not known", part=_called(part)))


def _decoded(part: Mapping[str, Any]) -> Growth:
    kind = part.get("type")
    if kind in ("ByteLevel", "ByteFallback", "Fuse", "Strip", "CTC"):
        for name in ("pad_token", "word_delimiter_token", "content"):
            if name in part:
                _text(part, name)
        return Growth()
    if kind == "WordPiece":
        _text(part, "prefix")
        return Growth(2)
    if kind == "BPEDecoder":
        _text(part, "suffix")
        return Growth(2)
    if kind == "Metaspace":
        return Growth(1 + len(_text(part, "replacement")))
    if kind == "Replace":
        return _replaced(part)
    raise BoundsError(N_("{part} is not known", part=_called(part)))


def _replaced(part: Mapping[str, Any]) -> Growth:
    content, pattern = _text(part, "content"), _pattern(part)
    put = len(unicodedata.normalize("NFKD", content))
    if "Regex" in pattern:
        slow = _cost(pattern["Regex"])
        return Growth(1 + put if put > 1 else 2 - (put == 0), slow)
    return Growth(max(1, math.ceil(put / len(pattern["String"]))))


def _cost(pattern: str) -> bool:
    """Whether a pattern takes steps with the square of the text."""
    try:
        return cost(pattern) == "quadratic"
    except PatternError as error:
        raise BoundsError(
            N_("the pattern {pattern} may take for ever: {error}", pattern=shown(pattern, 60), error=error.message)
        ) from error


def _pattern(part: Mapping[str, Any]) -> dict[str, str]:
    pattern = part.get("pattern")
    if isinstance(pattern, dict) and len(pattern) == 1:
        ((kind, text),) = pattern.items()
        if kind in ("String", "Regex") and isinstance(text, str) and text and (kind == "Regex" or len(text) <= 1024):
            return {kind: text}
    raise BoundsError(N_("{part} has a pattern that is none", part=_called(part)))


def _text(part: Mapping[str, Any], name: str) -> str:
    text = part.get(name)
    if text is None and name in ("prefix", "suffix"):
        return ""
    if not isinstance(text, str):
        raise BoundsError(N_("{part} has no {name}", part=_called(part), name=name))
    if len(text) > _LONGEST_TEXT:
        raise BoundsError(
            N_(
                "{part} puts {n} characters into texts; at most {most} are read",
                part=_called(part),
                n=f"{len(text):,}",
                most=_LONGEST_TEXT,
            )
        )
    return text


def _longest_replacement(part: Mapping[str, Any]) -> int:
    """Of SentencePiece's table: what stands behind its trie, each ended by a zero byte."""
    packed = part.get("precompiled_charsmap")
    if not isinstance(packed, str) or len(packed) > 4 * _CHARSMAP // 3 + 4:
        raise BoundsError(N_("Precompiled has no table, or one that is too large"))
    try:
        table = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BoundsError(N_("Precompiled has a table that is none")) from error
    texts = table[4 + int.from_bytes(table[:4], "little") :]
    made = unicodedata.normalize("NFKD", texts.decode("utf-8", "replace"))
    longest = max(map(len, made.split("\0")))
    if longest > _LONGEST_TEXT:
        raise BoundsError(
            N_(
                "Precompiled puts {longest} characters into texts; at most {most} are read",
                longest=f"{longest:,}",
                most=_LONGEST_TEXT,
            )
        )
    return max(1, longest)


def _check_marks(post_processor: object) -> None:
    for part in _parts(post_processor):
        kind = part.get("type")
        if kind == "TemplateProcessing":
            for name in ("single", "pair"):
                items = part.get(name)
                if not isinstance(items, list) or len(items) > 32:
                    raise BoundsError(
                        N_("TemplateProcessing puts more than 32 things around a text ({name})", name=name)
                    )
                if sum(isinstance(item, dict) and "Sequence" in item for item in items) > 2:
                    raise BoundsError(N_("TemplateProcessing repeats a text"))
            special = part.get("special_tokens")
            if not isinstance(special, dict) or len(special) > 64 or not all(map(_is_short, special.values())):
                raise BoundsError(N_("TemplateProcessing has too many special tokens"))
        elif kind not in ("BertProcessing", "RobertaProcessing", "ByteLevel"):
            raise BoundsError(N_("{part} is not known", part=_called(part)))


def _is_short(token: object) -> bool:
    lists = [token.get("ids"), token.get("tokens")] if isinstance(token, dict) else [None]
    return all(isinstance(items, list) and len(items) <= 16 for items in lists)


def _check_added(tokens: object, rows: int | None) -> None:
    if tokens is None:
        return
    if not isinstance(tokens, list) or len(tokens) > MOST_ADDED:
        raise BoundsError(N_("it adds more than {most} tokens to its vocabulary", most=f"{MOST_ADDED:,}"))
    for token in tokens:
        content, id = (token.get("content"), token.get("id")) if isinstance(token, dict) else (None, None)
        if not isinstance(content, str) or not content or len(content) > LONGEST_TOKEN:
            raise BoundsError(
                N_("an added token is empty, or longer than {most} characters", most=f"{LONGEST_TOKEN:,}")
            )
        _check_id(id, rows)


def _check_id(id: object, rows: int | None) -> None:
    if type(id) is not int or not 0 <= id < MOST_IDS:
        said = f"{id:,}" if type(id) is int and abs(id) < 2**64 else type(id).__name__
        raise BoundsError(
            N_("a token has the id {id}; they go up to {most} at most", id=said, most=f"{MOST_IDS - 1:,}")
        )
    if rows is not None and id >= rows:
        raise BoundsError(
            N_(
                "it has token ids up to {id}, the weights {rows} rows: they belong to different models",
                id=f"{id:,}",
                rows=f"{rows:,}",
            )
        )


def _check_model(model: object, rows: int | None) -> None:
    if not isinstance(model, dict):
        raise BoundsError(N_("it has no model"))
    if model.get("type", "BPE") not in ("BPE", "Unigram", "WordPiece", "WordLevel"):
        raise BoundsError(N_("{part} is not known", part=_called(model)))
    vocabulary, merges = model.get("vocab"), model.get("merges") or []
    if not isinstance(vocabulary, (dict, list)) or not isinstance(merges, list):
        raise BoundsError(N_("it has no vocabulary"))
    if len(vocabulary) > MOST_ENTRIES or len(merges) > min(MOST_ENTRIES, 4 * len(vocabulary)):
        raise BoundsError(
            N_(
                "{tokens} tokens and {merges} merges; at most {most} are read",
                tokens=f"{len(vocabulary):,}",
                merges=f"{len(merges):,}",
                most=f"{MOST_ENTRIES:,}",
            )
        )
    if isinstance(vocabulary, dict):
        if vocabulary:
            ids = vocabulary.values()
            if any(type(id) is not int for id in ids) or min(ids) < 0:
                raise BoundsError(N_("a token has an id that is none"))
            _check_id(max(ids), rows)
        longest = max(map(len, vocabulary), default=0)
    else:
        if vocabulary:
            _check_id(len(vocabulary) - 1, rows)
        for item in vocabulary:
            if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
                raise BoundsError(N_("a token has no score"))
            if not isinstance(item[1], (int, float)) or not abs(item[1]) < 1e9:
                raise BoundsError(
                    N_("the token {token} has the score {score}", token=shown(item[0], 16), score=shown(item[1], 20))
                )
        longest = max((len(item[0]) for item in vocabulary), default=0)
    if longest > LONGEST_TOKEN:
        raise BoundsError(
            N_(
                "a token has {longest} characters; at most {most} are read",
                longest=f"{longest:,}",
                most=f"{LONGEST_TOKEN:,}",
            )
        )
    for name in ("continuing_subword_prefix", "end_of_word_suffix", "unk_token"):
        if isinstance(text := model.get(name), str) and len(text) > _LONGEST_TEXT:
            raise BoundsError(
                N_(
                    "its {name} has {n} characters; at most {most} are read",
                    name=name,
                    n=f"{len(text):,}",
                    most=_LONGEST_TEXT,
                )
            )
    if (longest_word := model.get("max_input_chars_per_word", 100)) and (
        type(longest_word) is not int or not 0 < longest_word <= 512
    ):
        raise BoundsError(N_("words of more than 512 characters are looked up (max_input_chars_per_word)"))


def _parts(part: object, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The parts one after the other, those inside a Sequence too."""
    if part is None or part == {}:
        return
    if not isinstance(part, dict) or depth > _DEEPEST:
        raise BoundsError(N_("a part of it is none"))
    if part.get("type") != "Sequence":
        yield part
        return
    inner = [part[name] for name in ("normalizers", "pretokenizers", "processors", "decoders") if name in part]
    if len(inner) != 1 or not isinstance(inner[0], list) or len(inner[0]) > MOST_PARTS:
        raise BoundsError(N_("a Sequence has no parts, or more than {most}", most=MOST_PARTS))
    for one in inner[0]:
        yield from _parts(one, depth + 1)


def shown(value: object, most: int) -> str:
    """The beginning of something from a file, without what would turn or break the line that quotes it."""
    return "".join(one if one.isprintable() else "\ufffd" for one in str(value)[:most])


def _called(part: Mapping[str, Any]) -> str:
    return shown(part.get("type"), 40)

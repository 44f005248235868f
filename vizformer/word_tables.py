"""Tables that stand beside the code: the texts of a folder in its `words.toml`, the data of a module in a file of its own.

A `words.toml` has a table for each module, and in it a text for each name; every one is a text to translate.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO


def words_of(file: str) -> dict[str, Any]:
    """The table of a module: its texts in English by name, or further tables of them.

    Args:
        file: its `__file__`.
    """
    found: dict[str, Any] = _tables(Path(file).with_name("words.toml"))[Path(file).stem]
    return found


@cache
def _tables(path: Path) -> dict[str, Any]:
    """The parsed TOML file. It is cached, because every module of a folder reads the same file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


_translated: Callable[[Mapping[str, str]], Mapping[str, str]] = dict


def speak(translated: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
    """Has figures and components say their texts as `translated` gives them, by the same names; until then in English."""
    global _translated
    _translated = translated


def spoken(english: Mapping[str, str]) -> dict[str, str]:
    """The texts of a figure or a component, by name, in the reader's language."""
    return {**english, **_translated(english)}


def data_of(file: str) -> dict[str, Any]:
    """The content of the TOML file that has the name of a module: sentences, programs and other data that are not
    translated.

    Args:
        file: its `__file__`.
    """
    return tomllib.loads(Path(file).with_suffix(".toml").read_text(encoding="utf-8"))


def extract(file: BinaryIO, *_: object, **__: object) -> Iterator[tuple[int, None, str, list[str]]]:
    """The texts of a `words.toml` for the translation catalogues, as `babel.messages.extract` takes them from a method."""
    return ((0, None, text, []) for text in _texts(tomllib.load(file)))


def _texts(table: Mapping[str, Any]) -> Iterator[str]:
    for value in table.values():
        yield from _texts(value) if isinstance(value, Mapping) else [value]

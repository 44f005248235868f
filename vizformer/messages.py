"""Texts a person will read, kept apart from the language they will be read in.

Stations behind the pages (config, model, explain, ...) must not know which language the reader
has chosen, and their results are cached across readers.  They therefore hand out a `Message`: the
English source text and the values that go into it.  `vizformer.web.words.i18n.translate` renders it in the
reader's language; `str(message)` renders it in English.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Message:
    """An English source text (`str.format` placeholders) and its values.

    A value may itself be a `Message`, or a tuple of them (shown with "; " between): they are rendered in the
    same language as their host.
    """

    text: str
    values: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.values:
            return self.text  # braces may then stand for themselves
        return self.text.format(**{name: _english(value) for name, value in self.values.items()})


def N_(text: str, /, **values: object) -> Message:
    """Marks `text` for the translation catalogues (the extractor looks for this name)."""
    return Message(text, values)


def as_message(said: Message | str, values: Mapping[str, object]) -> Message:
    """`said` itself if it is a message, else a message of this text and these values."""
    return said if isinstance(said, Message) else Message(said, values)


def messages_of(texts: Mapping[str, str]) -> dict[str, Message]:
    """The texts of a table (`vizformer.word_tables`) as messages, by the same names."""
    return {name: Message(text) for name, text in texts.items()}


def ranges(numbers: Iterable[int]) -> str:
    """Rising numbers as text, the same in every language: "0, 2–5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("–".join(map(str, run)) for run in runs)


def _english(value: object) -> object:
    if isinstance(value, tuple) and value and all(isinstance(item, Message) for item in value):
        return "; ".join(map(str, value))
    return str(value) if isinstance(value, Message) else value

"""Texts a person will read, kept apart from the language they will be read in.

Stations behind the pages (config, model, explain, ...) must not know which language the reader
has chosen, and their results are cached across readers.  They therefore hand out a `Message`: the
English source text and the values that go into it.  `vizformer.web.i18n.translate` renders it in the
reader's language; `str(message)` renders it in English.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Message:
    """An English source text (`str.format` placeholders) and its values.

    A value may itself be a `Message`, or a tuple of them (shown with "; " between): they are rendered in the
    same language as their host.
    """

    text: str
    values: Mapping[str, object] = field(default_factory=dict)

    def render(self, gettext: Callable[[str], str]) -> str:
        """The text in the language of `gettext`; a text without values may contain braces."""
        text = gettext(self.text)
        return (
            text.format(**{name: _value(value, gettext) for name, value in self.values.items()})
            if self.values
            else text
        )

    def __str__(self) -> str:
        return self.render(lambda text: text)


def N_(text: str, **values: object) -> Message:
    """Marks `text` for the translation catalogues (the extractor looks for this name)."""
    return Message(text, values)


def _value(value: object, gettext: Callable[[str], str]) -> object:
    if isinstance(value, Message):
        return value.render(gettext)
    if isinstance(value, tuple) and value and all(isinstance(item, Message) for item in value):
        return "; ".join(item.render(gettext) for item in value)
    return value

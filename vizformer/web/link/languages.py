"""The languages of the app and their catalogues (no Streamlit in here).

Another language is one line in `LANGUAGES` and one catalogue,
assets/locale/<code>/LC_MESSAGES/vizformer.po. `make messages` keeps the catalogues up to date.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from gettext import c2py
from string import Formatter
from types import MappingProxyType
from typing import TYPE_CHECKING

from vizformer.assets import asset
from vizformer.messages import Message

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog
    from babel.messages.catalog import Message as Entry

SOURCE = "en"  # the language of the source texts; it needs no catalogue

# code in links and folders -> the language's name in that language
LANGUAGES = MappingProxyType({"en": "English", "zh_CN": "简体中文"})


@lru_cache(maxsize=64)
def match(tag: str | None) -> str | None:
    """The language that a tag such as "zh-CN", "zh_Hans_SG" or "en-GB" asks for; None if we have nothing near."""
    wanted = (tag or "").replace("-", "_").lower().split("_")
    for code in LANGUAGES:
        if code.lower() == "_".join(wanted):
            return code
    return next((code for code in LANGUAGES if code.lower().split("_")[0] == wanted[0]), None)


@cache
def catalogue(code: str) -> dict[str, str]:
    """English text -> text in the language `code`. Fuzzy and empty entries are left out: English shows instead."""
    found = _read(code)
    return {} if found is None else {str(e.id): str(e.string) for e in found if _is_used(e) and not e.pluralizable}


@cache
def plurals(code: str) -> tuple[dict[str, tuple[str, ...]], Callable[[int], int]]:
    """English singular -> the forms in the language `code`, and which of them a number has."""
    found = _read(code)
    if found is None:
        return {}, lambda n: n != 1
    return {e.id[0]: tuple(e.string or ()) for e in found if _is_used(e) and e.pluralizable}, c2py(found.plural_expr)


def render(message: Message, code: str, quote: Callable[[str], str] = str) -> str:
    """`message` in the language `code`; what its values say passes through `quote`, as in `i18n.translate`."""
    found = catalogue(code).get(message.text, message.text)
    if not message.values:
        return found
    values = {name: _value(value, code, quote) for name, value in message.values.items()}
    return _Quoting(quote).vformat(found, (), values)


def _value(value: object, code: str, quote: Callable[[str], str]) -> object:
    if isinstance(value, Message):
        return _Ready(render(value, code, quote))
    if isinstance(value, tuple) and value and all(isinstance(item, Message) for item in value):
        return _Ready(render(Message("; "), code).join(render(item, code, quote) for item in value))
    return value


class _Ready(str):
    """A text that has been quoted already."""


class _Quoting(Formatter):
    """`str.format`, quoting what replaces a placeholder last of all: after `!r`, which would undo an escape."""

    def __init__(self, quote: Callable[[str], str]) -> None:
        self.quote = quote

    def format_field(self, value: object, format_spec: str) -> str:
        text: str = super().format_field(value, format_spec)
        return text if isinstance(value, (_Ready, int, float)) else self.quote(text)


@cache
def _read(code: str) -> "Catalog | None":
    path = asset("locale", code, "LC_MESSAGES", "vizformer.po")
    if code == SOURCE or not path.is_file():
        return None
    from babel.messages.pofile import read_po  # a tenth of a second that English readers do not wait for

    with path.open("rb") as file:
        return read_po(file, locale=code)


def _is_used(entry: "Entry") -> bool:
    forms = entry.string if isinstance(entry.string, tuple) else (entry.string,)
    return bool(entry.id) and all(forms) and not entry.fuzzy

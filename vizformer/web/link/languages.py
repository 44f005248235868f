"""The languages of the app and their catalogues (no Streamlit in here).

Another language is one line in `LANGUAGES` and one catalogue,
assets/locale/<code>/LC_MESSAGES/vizformer.po. `make messages` keeps the catalogues up to date.
"""

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache
from gettext import c2py
from types import MappingProxyType

from vizformer.assets import asset

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
    entries = _used(code)
    return {entry["msgid"]: entry["msgstr"] for entry in entries if entry.get("msgstr") and entry["msgid"]}


@cache
def plurals(code: str) -> tuple[dict[str, tuple[str, ...]], Callable[[int], int]]:
    """English singular -> the forms in the language `code`, and which of them a number has."""
    entries = _used(code)
    if not entries:
        return {}, lambda n: n != 1
    forms = {
        entry["msgid"]: tuple(form for name, form in entry.items() if name.startswith("msgstr["))
        for entry in entries
        if "msgid_plural" in entry
    }
    expression = next(_PLURAL.search(entry["msgstr"]) for entry in entries if not entry["msgid"])
    return {text: found for text, found in forms.items() if all(found)}, c2py(expression[1] if expression else "n != 1")


_FIELD = re.compile(r'^(msg[\w\[\]]+) ((?:".*"\n?)+)', re.MULTILINE)
_FUZZY = re.compile(r"^#,.*\bfuzzy\b", re.MULTILINE)
_PLURAL = re.compile(r"plural=([^;]+);")


@cache
def _used(code: str) -> list[dict[str, str]]:
    """The entries of a catalogue as Babel writes it, by the names of their fields, without those that are fuzzy.

    Babel's own reader takes ten times as long, which the first visitor of a server waits for.
    """
    path = asset("locale", code, "LC_MESSAGES", "vizformer.po")
    if code == SOURCE or not path.is_file():
        return []
    entries = (entry for entry in path.read_text(encoding="utf-8").split("\n\n") if not _FUZZY.search(entry))
    read = ({name: _unquoted(lines) for name, lines in _FIELD.findall(entry)} for entry in entries)
    return [entry for entry in read if entry]  # (what is out of use is a comment)


def _unquoted(lines: str) -> str:
    text: str = json.loads(f'"{"".join(line[1:-1] for line in lines.splitlines())}"')
    return text

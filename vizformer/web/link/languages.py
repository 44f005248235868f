"""The languages of the app and their catalogues (no Streamlit in here).

Another language is one line in `LANGUAGES` and one catalogue,
assets/locale/<code>/LC_MESSAGES/vizformer.po. `make messages` keeps the catalogues up to date.
"""

from functools import cache, lru_cache
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
    path = asset("locale", code, "LC_MESSAGES", "vizformer.po")
    if code == SOURCE or not path.is_file():
        return {}
    from babel.messages.pofile import read_po  # a tenth of a second that English readers do not wait for

    with path.open("rb") as file:
        entries = read_po(file, locale=code)
    return {str(entry.id): str(entry.string) for entry in entries if entry.id and entry.string and not entry.fuzzy}

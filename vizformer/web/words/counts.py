"""How many of a thing there are, in the singular where it is one: for texts in which several numbers may be one."""

from vizformer.web.words.i18n import ngettext


def tokens(n: int) -> str:
    return ngettext("{n:,} token", "{n:,} tokens", n)


def heads(n: int) -> str:
    return ngettext("{n:,} head", "{n:,} heads", n)


def layers(n: int) -> str:
    return ngettext("{n:,} layer", "{n:,} layers", n)


def rows(n: int) -> str:
    return ngettext("{n:,} row", "{n:,} rows", n)


def symbols(n: int) -> str:
    return ngettext("{n:,} symbol", "{n:,} symbols", n)


def texts(n: int) -> str:
    return ngettext("{n:,} text", "{n:,} texts", n)


def words(n: int) -> str:
    return ngettext("{n:,} word", "{n:,} words", n)

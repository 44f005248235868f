"""What the reader sees, in the reader's language.

    _("Head {head}", head=3)          # a text written on a page
    ngettext("{n} head", "{n} heads", 3)
    show_text("Several keys.")        # the same, shown as it is; show_note: small, below what it is about
    translate(error.message)          # a Message made behind the pages

The language is the one the link asks for, else the browser's, else English.
"""

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar

import streamlit as st

from vizformer import word_tables
from vizformer.messages import Message
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import state
from vizformer.web.link.languages import SOURCE, catalogue, match, plurals, render
from vizformer.web.words.plain_text import quoted
from vizformer.web.words.terms import marked

SPEAKING: ContextVar[str] = ContextVar("speaking", default="")
"""The language in which files are made outside of a page, for a reader who was on one."""


class _Run(threading.local):
    """What the browser of this thread's run asks for: hundreds of texts are shown in a run."""

    context: object = None
    code = SOURCE


_RUN = _Run()


def language() -> str:
    """The code of the reader's language ("en", "zh_CN"). Outside a page there is no reader: English, or `SPEAKING`."""
    if code := SPEAKING.get():
        return code
    context = get_script_run_ctx(suppress_warning=True)
    if context is None:
        return SOURCE
    if code := state.view().lang:
        return code
    if context is not _RUN.context:
        _RUN.context, _RUN.code = context, match(st.context.locale) or SOURCE
    return _RUN.code


def _(text: str, /, **values: object) -> str:
    """`text` in the reader's language, with its `str.format` placeholders filled from `values`.

    Without values nothing is formatted: braces may then stand for themselves.
    """
    found = catalogue(language()).get(text, text)
    return found.format(**values) if values else found


def show_text(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language, as it is."""
    st.text(_(text, **values))


def _quoting(text: str, values: Mapping[str, object]) -> str:
    """`text`, which may have Markdown, in the reader's language; what its values say is shown as it stands."""
    return _(text, **{name: quoted(value) for name, value in values.items()})


def _marked(text: str, values: Mapping[str, object]) -> str:
    """`text` in the reader's language with its values quoted and its terms `marked`."""
    found = marked(catalogue(language()).get(text, text), language())
    return found.format(**{name: quoted(value) for name, value in values.items()}) if values else found


def show_markdown(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language, terms `marked`; it may have Markdown, its values have none (see `Markup`)."""
    st.markdown(_marked(text, values))


def show_info(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language, in a box of what there is to know; as `show_markdown`."""
    st.info(_quoting(text, values))


def show_warning(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language in a warning box; its values are quoted."""
    st.warning(_quoting(text, values))


def show_error(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language in an error box; its values are quoted."""
    st.error(_quoting(text, values))


def show_note(text: str, /, **values: object) -> None:
    """Shows `text` in the reader's language, small, below what it is about; as `show_markdown`."""
    st.caption(_marked(text, values))


def ngettext(one: str, many: str, n: int, /) -> str:
    """How many of a thing there are, in the reader's language: `one` is for 1 in English, {n} is the number."""
    forms, form = plurals(language())
    found = forms[one][form(n)] if one in forms else one if n == 1 else many
    return found.format(n=n)


def translate(message: Message, quote: Callable[[str], str] = str) -> str:
    """`message` in the reader's language; what its values say passes through `quote`, its own words do not.

    Args:
        message: What to say. A value that is itself a `Message`, or a tuple of them, is translated too.
        quote: Makes a text from outside safe for the place it is going to (`plain` for Markdown).
    """
    return render(message, language(), quote)


def words(english: Mapping[str, str]) -> dict[str, str]:
    """Translates a table of texts; the names and the placeholders stay."""
    found = catalogue(language())
    return {name: found.get(text, text) for name, text in english.items()}


word_tables.speak(words)

"""What the reader sees, in the reader's language.

    _("Head {head}", head=3)          # a text written on a page
    ngettext("{n} head", "{n} heads", 3)
    show_text("Several keys.")        # the same, shown as it is; show_note: small, below what it is about
    translate(error.message)          # a Message made behind the pages

The language is the one the link asks for, else the browser's, else English.
"""

import re
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache

import streamlit as st

from vizformer import word_tables
from vizformer.messages import Message
from vizformer.web.inside_streamlit import get_script_run_ctx
from vizformer.web.link import state
from vizformer.web.link.languages import SOURCE, catalogue, match, plurals, render
from vizformer.web.words.terms import marked

# Texts from outside in Markdown: shown as they stand.

QUOTED = 400  # characters of a quoted text: enough to recognise it by

# Streamlit looks for its own codes (:red[..], :smile:, arrows such as ->) and for bare links after Markdown's escapes
# are gone. There an invisible word joiner keeps the characters apart.
_APART = re.compile(r"(?<=:)(?=\S)|(?<=[-<>=~])(?=[-<>=~])|(?=@)|(?<=www)(?=\.)", re.IGNORECASE)
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")  # and what turns text around
_PLAIN_ALREADY = re.compile(
    r"""(?!\s|\d+[.)]\s|\+\s)(?!.*www)(?:[A-Za-z0-9 .,;?'"%+()/]|[^\x00-\x7f]|(?<=[^\W_])[_-](?=[^\W_]))*""",
    re.IGNORECASE,
)


class Markup(str):
    """A text of ours that may have Markdown, among the values of a notice."""

    __slots__ = ()


def plain(text: str) -> str:
    """`text` so that Streamlit's Markdown shows it as it stands (no markup, maths, emoji codes, links or new lines).

    Longer texts are cut to `QUOTED` characters; control characters are shown as "�".
    """
    shown = " ".join(text.split()) if any(c in text for c in "\r\n\t") else text
    shown = shown.strip(" ")  # (four spaces before it make it code)
    shown = shown if len(shown) <= QUOTED else shown[: QUOTED - 1] + "…"
    shown = _APART.sub("\u2060", _UNSEEN.sub("�", shown))
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", shown)  # CommonMark: any ASCII punctuation may be escaped


def quoted(value: object) -> object:
    """A value of a notice: `plain` where it is a text that Markdown might read otherwise, as it is where it is `Markup`."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    known = len(value) <= QUOTED and _PLAIN_ALREADY.fullmatch(value) and not _UNSEEN.search(value)
    return value if known else plain(value)


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


@lru_cache(maxsize=2048)
def _with_terms(text: str, code: str) -> str:
    """A text of ours in the language `code`, terms `marked`."""
    return marked(catalogue(code).get(text, text), code)


def _marked(text: str, values: Mapping[str, object]) -> str:
    """`text` in the reader's language with its values quoted and its terms `marked`."""
    found = _with_terms(text, language())
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

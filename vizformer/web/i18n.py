"""What the reader sees, in the reader's language.

    _("Head {head}", head=3)          # a text written on a page
    translate(error.message)          # a Message made behind the pages

The language is the one the link asks for, else the browser's, else English.
"""

from collections.abc import Callable

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from vizformer.messages import Message
from vizformer.web import state
from vizformer.web.languages import SOURCE, catalogue, match


def language() -> str:
    """The code of the reader's language ("en", "zh_CN"). Outside a page there is no reader: English."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return SOURCE
    return state.view().lang or match(st.context.locale) or SOURCE


def _(text: str, **values: object) -> str:
    """`text` in the reader's language, with its `str.format` placeholders filled from `values`.

    Without values nothing is formatted: braces may then stand for themselves.
    """
    found = catalogue(language()).get(text, text)
    return found.format(**values) if values else found


def translate(message: Message, quote: Callable[[str], str] = str) -> str:
    """`message` in the reader's language; every text among its values passes through `quote` first.

    Args:
        message: What to say. A value that is itself a `Message` is translated too.
        quote: Makes a text from outside safe for the place it is going to (`errors.plain` for Markdown).
    """

    def value(item: object) -> object:
        if isinstance(item, Message):
            return translate(item, quote)
        return quote(item) if isinstance(item, str) else item

    return catalogue(language()).get(message.text, message.text).format(
        **{name: value(item) for name, item in message.values.items()}
    )

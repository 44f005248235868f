"""Texts from outside in Markdown: shown as they stand."""

import re

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

"""Lines of a text that is too long for lines of all its tokens: a part of it at a time, with the weights of the whole."""

from dataclasses import dataclass, replace
from math import isqrt

import streamlit as st

from vizformer.analysis import Kind
from vizformer.components import lines
from vizformer.components.packing import pack_lines
from vizformer.components.payload import LIMIT_BYTES, HeadsPayload
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import line_settings, state
from vizformer.web.link.view import Without
from vizformer.web.words.i18n import _, show_note

TOKENS = 400  # of a part; fewer where a layer has very many heads
_START = "attention.lines.start"


@dataclass(frozen=True)
class Part:
    """The queries and keys that are shown, by their numbers in the text."""

    queries: range
    keys: range

    def inside(self, pin: lines.Pin | None) -> lines.Pin | None:
        """A token of the text by its place in the part; None where it is not in it."""
        if pin is None or pin.index not in self._of(pin.side):
            return None
        return replace(pin, index=pin.index - self._of(pin.side).start)

    def in_text(self, pin: lines.Pin | None) -> lines.Pin | None:
        """A token of the part by its number in the text."""
        return pin if pin is None else replace(pin, index=pin.index + self._of(pin.side).start)

    def _of(self, side: str) -> range:
        return self.queries if side == "query" else self.keys


def choose(shape: tuple[int, int, int, int], query: int) -> Part:
    """The part that the link says, or that the reader moves to, else that around the query; all of a short text."""
    __, heads, n_queries, n_keys = shape
    if lines.fits((1, *shape[1:]), scored=False):
        return Part(range(n_queries), range(n_keys))
    tokens = min(TOKENS, isqrt(LIMIT_BYTES // (2 * heads)))
    longest = max(n_queries, n_keys)
    said = line_settings.read(state.view().lines).start
    start = max(0, min(longest - tokens, query - tokens // 2 if said is None else said))
    st.session_state[_START] = start
    st.slider(
        _("The text is too long for all of its lines: show a part of it, from token"),
        0,
        longest - tokens,
        step=1,
        key=_START,
        on_change=_move,
    )
    show_note(
        "Tokens {first} to {last} of {n}. The weights are those of the whole text; lines to tokens outside of this "
        "part are not drawn.",
        first=start,
        last=start + tokens - 1,
        n=f"{longest:,}",
    )
    return Part(*(_within(n, start, tokens) for n in (n_queries, n_keys)))


def _within(n: int, start: int, tokens: int) -> range:
    first = max(0, min(start, n - tokens))
    return range(first, min(n, first + tokens))


def _move() -> None:
    settings = line_settings.read(state.view().lines)
    state.update(lines=line_settings.write(replace(settings, start=st.session_state[_START])))


@cached
def packed(subject: Subject, kind: Kind, layer: int, part: Part, without: Without) -> HeadsPayload:
    """The weights of one layer's heads between the tokens of a part."""
    heads = subject_cache.numbers(subject, kind, without)
    return pack_lines(heads, layer=layer, queries=part.queries, keys=part.keys)

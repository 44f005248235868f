"""What a page opens on where nobody has chosen a head: the one that the numbers of this sentence single out, and why.

Of a model that the reader opened, pages that would begin with a head by another measure begin with this one too, so that
whoever comes from the page Attention finds the same head: What each head does, Where does the answer come from?, What if,
and Side by side, of two texts.
"""

from contextlib import suppress

from vizformer.analysis import Kind
from vizformer.analysis.heads.telling_head import TellingHead, find_telling_head
from vizformer.errors import VizformerError
from vizformer.text import Token
from vizformer.web.catalogue.long_forward import is_long
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.link.view import View
from vizformer.web.widgets import model_suggestions
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _

head = of_trace(find_telling_head)


def usual_head(subject: Subject, kind: Kind) -> tuple[int, int]:
    found = (
        None if subject.edited else head(subject, kind, View().query_of(subject.trace.tokens[labels.stacks(kind)[0]]))
    )
    return (0, 0) if found is None else (found.layer, found.head)


def open_on_a_head(subject: Subject, kind: Kind) -> str:
    """Shows that head where nobody has chosen one, or a row or a cell of it; why, in a sentence (Markdown)."""
    found = _suggested(subject, kind)
    return "" if found is None else why(*found)


def place_elsewhere(subject: Subject, kind: Kind) -> tuple[int, int] | None:
    """The layer and the head that the page Attention shows of a model that the reader opened; None of any other model."""
    if not subject.model.is_from_elsewhere or subject.edited:
        return None
    state.fit(layer=subject.shape.layers_of(kind), head=subject.shape.n_heads)
    open_on_a_head(subject, kind)
    return state.view().layer, state.view().head


def open_elsewhere(model: ModelRef, kind: Kind) -> str:
    """`open_on_a_head` of a model that the reader opened, on a page that reads other texts than the reader's."""
    if not model.is_from_elsewhere:
        return ""
    model_suggestions.fit_text(model)
    view = state.view()
    subject = Subject(model, view.text, view.target)
    with suppress(VizformerError):  # a text that it does not read: then the page has a head of its own
        return "" if is_long(subject) else open_on_a_head(subject, kind)
    return ""


def open_on_a_layer(subject: Subject, kind: Kind) -> str:
    """Shows the layer of that head, on a page that shows a layer as a whole; why, in a sentence (Markdown)."""
    if (suggested := _suggested(subject, kind)) is None:
        return ""
    found, query, key = suggested
    if found.resting:
        return _(
            "Shown: layer {layer}. Of the heads that do not rest on one token, its head {head} gives “{query}” "
            "the largest weight on another word, “{key}” ({weight}).",
            **_values(found, query, key),
        )
    return _(
        "Shown: layer {layer}. Of all heads, its head {head} gives “{query}” the largest weight on another "
        "word, “{key}” ({weight}).",
        **_values(found, query, key),
    )


def _suggested(subject: Subject, kind: Kind) -> tuple[TellingHead, Token, Token] | None:
    """The telling head, its query and its key, where it is shown because nobody has chosen a head; else None."""
    view = state.view()
    if subject.edited or view.query is not None or view.key is not None or view.lines:
        return None
    queries, keys = (subject.trace.tokens[stack] for stack in labels.stacks(kind))
    query = view.query_of(queries)
    found = head(subject, kind, query)
    if found is None or not state.suggest(layer=found.layer, head=found.head):
        return None
    return found, queries[query], keys[found.key]


def why(found: TellingHead, query: Token, key: Token) -> str:
    """Why a page opens on a head: what its row of `query` looks at (Markdown)."""
    if found.resting:
        return _(
            "Shown: layer {layer}, head {head}. Of the heads that do not rest on one token its row “{query}” has "
            "the largest weight on another word, “{key}” ({weight}).",
            **_values(found, query, key),
        )
    return _(
        "Shown: layer {layer}, head {head}. Of all heads its row “{query}” has the largest weight on another "
        "word, “{key}” ({weight}).",
        **_values(found, query, key),
    )


def _values(found: TellingHead, query: Token, key: Token) -> dict[str, object]:
    texts = {"query": plain(query.text), "key": plain(key.text)}
    return {"layer": found.layer, "head": found.head, **texts, "weight": f"{found.weight:.2f}"}

"""The whole model as one picture, live for the typed sentence: on the first page, and as the drawing of The map."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import streamlit as st

from vizformer.analysis import Kind
from vizformer.analysis.one_forward.picture_numbers import Attention, ForwardPicture, forward_picture, look_of
from vizformer.components import whole_model_picture
from vizformer.components.whole_model_picture import Candidate, Lane, Maps, Picture, Press
from vizformer.config import ModelConfig
from vizformer.figures.tables import Cell, Table
from vizformer.web.catalogue import head_files, model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import head_routes, sitemap
from vizformer.web.frame.sitemap import Entry
from vizformer.web.link import state
from vizformer.web.widgets import chart, head_downloads, model_suggestions
from vizformer.web.widgets.chart import take_away
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, language

WRITTEN = "picture.written"
"""Where it is kept what was written token by token, and for which sentence."""
_MORE = "picture.more"


@cached
def numbers(
    subject: Subject, layer: int = 0, whole: tuple[Kind, int] | None = None, *, every: bool = False
) -> ForwardPicture:
    """What the picture shows, computed once for everybody; `every`: all heads of all layers."""
    predicts = model_cache.predicts(subject.model)
    how: dict[str, Any] = {"layer": layer, "whole": whole, "every": every, "predicts": predicts}
    return forward_picture(subject.checkpoint, subject.trace, **how)


def draw_whole_model(
    subject: Subject, *, key: str = "picture", reports: bool = False, kind: Kind | None = None
) -> Press | None:
    """Shows the picture and does what is pressed in it; where it `reports`, the box or the head that was opened, once.

    `kind`: of the head that is enlarged, where that is another one.
    """
    press = whole_model_picture.pressed(key)
    if press is not None and press.does in ("layer", "all"):
        _draw_more(press, subject)
    elif press is not None and press.does == "own":
        state.update(target="")
        st.rerun()
    elif press is not None and press.does == "write":
        view = state.update(**written(subject, press.row, press.token))
        st.session_state[WRITTEN] = view.text, view.target
        st.rerun()
    elif press is not None and press.does != "opened":
        entry, changes = leads_to(press, subject)
        state.update(**changes)
        st.switch_page(entry.file)
    whole_model_picture.mount(drawn(subject, *_more(subject), reports=reports, kind=kind), key=key)
    return press if press is not None and press.does == "opened" else None


def _draw_more(press: Press, subject: Subject) -> None:
    """Keeps which layer, and of which attention all heads, the reader has asked for of this model."""
    layer, whole = _more(subject)
    found = (press.layer, whole) if press.does == "layer" else (layer, (press.kind, press.layer))
    st.session_state[_MORE] = subject.model, found


def _more(subject: Subject) -> tuple[int, tuple[Kind, int] | None]:
    model, found = st.session_state.get(_MORE, (None, (0, None)))
    return found if model == subject.model else (0, None)


@st.fragment
@guarded()
def draw_away(subject: Subject, page: Callable[..., str], key: str = "picture") -> None:
    """The picture to be taken away as a `page` without a server (`saved_page.html`), its numbers, the map of its head."""
    first = language()
    look = numbers(subject).look
    one = _every(subject)[look.attention]
    queries, keys = (labels.texts(subject.trace.tokens[stack]) for stack in labels.stacks(one.kind))
    take_away(
        chart.Picture(
            "model",
            chart.caption(),
            more={(_("Save as a page"), "html"): lambda: page([subject], first=first).encode()},
            told=lambda: told(subject),
        ),
        head_downloads.one_head(subject, one.kind, one.layer, one.heads[look.head], queries, keys),
        key=key,
    )


def told(subject: Subject) -> tuple[str, Table]:
    """What the picture begins with, in a sentence; its row of weights, and the tokens that may follow, as a table."""
    found = numbers(subject)
    one, (__, head, query, key) = _every(subject)[found.look.attention], _look(found)
    queries, keys = (labels.texts(subject.trace.tokens[stack]) for stack in labels.stacks(one.kind))
    name, weight, probability = labels.kind_label(one.kind), _("weight"), _("probability")
    rows: list[tuple[Cell, ...]] = [
        (name, f"{queries[query]} → {keys[j]}", weight, float(value))
        for j, value in enumerate(one.weights[head, query])
        if not one.reasons[query, j]
    ]
    rows += [
        (queries[i], c.token.text, probability, float(c.probability))
        for i, row in enumerate(found.candidates)
        for c in row
    ]
    said = _(
        "In head {head} of layer {layer} ({kind}), “{query}” attends to “{key}” with weight {weight}.",
        head=one.heads[head],
        layer=one.layer,
        kind=name,
        query=queries[query],
        key=keys[key],
        weight=f"{one.weights[head, query, key]:.3f}",
    )
    return said, Table((_("row"), _("token"), _("what"), _("value")), rows, len(rows))


def _every(subject: Subject) -> list[Attention]:
    return [one for lane in numbers(subject).lanes for one in lane.attention]


def _look(found: ForwardPicture, kind: Kind | None = None) -> tuple[int, int, int, int]:
    """The cell that is enlarged at first: the picture's own, or one of another `kind` that is wanted."""
    own = [one.kind for lane in found.lanes for one in lane.attention][found.look.attention]
    look = (kind and kind != own and look_of(found.lanes, kind)) or found.look
    return look.attention, look.head, look.query, look.key


def drawn(
    subject: Subject,
    layer: int = 0,
    whole: tuple[Kind, int] | None = None,
    *,
    every: bool = False,
    reports: bool = False,
    kind: Kind | None = None,
) -> Picture:
    """What the component draws."""
    found, config = numbers(subject, layer, whole, every=every), subject.config
    kinds: list[Kind] = sorted({one.kind for lane in found.lanes for one in lane.attention})
    base = head_routes.base()
    proposed = not subject.target and subject.text in model_suggestions.PROPOSED
    return Picture(
        lanes=[
            Lane(
                lane.stack,
                labels.texts(lane.tokens),
                lane.count,
                lane.layers,
                lane.embedded,
                lane.added,
                [_maps(one) for one in lane.attention],
                model_suggestions.glosses(labels.texts(lane.tokens)) if proposed else [],
            )
            for lane in found.lanes
        ],
        candidates=[
            [
                Candidate(name, c.token.id, c.probability if isfinite(c.probability) else 0.0, c.token.special)
                for c, name in zip(row, labels.told_apart([c.token for c in row]), strict=True)
            ]
            for row in found.candidates
        ],
        written=found.written,
        look=_look(found, kind),
        name=repr(subject),
        positions=labels.places(config),
        norm=config.norm,
        norm_order=config.norm_order,
        own=not subject.target,
        reports=reports,
        addresses={kind: head_files.packed(subject, kind, "none", base).address or "" for kind in kinds},
    )


def _maps(one: Attention) -> Maps:
    return Maps(
        one.kind,
        one.layer,
        one.heads,
        one.n_heads,
        one.scale,
        one.plain,
        one.weights,
        one.scores,
        one.reasons,
        one.totals,
        [None if rest is None else (rest.key, round(rest.share, 2)) for rest in one.rests],
    )


def written(subject: Subject, row: int, token: int) -> dict[str, str]:
    """What the view becomes when the token is written after the row, or in its place where a blank is filled."""
    decode = subject.checkpoint.tokenizer.decode
    config, tokens = subject.config, subject.trace.tokens
    if config.architecture == "encoder-only":
        gap = subject.tokens[min(row, len(subject.tokens) - 1)]
        return {"text": f"{subject.text[: gap.start]}{decode([token]).strip()}{subject.text[gap.end :]}"}
    ids = [one.id for one in tokens["decoder"][: row + 1]]
    text = decode([*ids, token]).strip()
    return {"target" if config.architecture == "encoder-decoder" else "text": text}


def positions_part(config: ModelConfig) -> str:
    """The part of Positions that is about what this model does: waves, or one of the other schemes."""
    return "waves" if config.positions == "sinusoidal" else "options"


def leads_to(press: Press, subject: Subject) -> tuple[Entry, dict[str, Any]]:
    """The page that takes further what was pressed, and what it is to show: the same layer, head and query."""
    config: ModelConfig = subject.config
    looked = {"kind": press.kind, "layer": press.layer, "head": press.head, "query": press.query}
    pages: dict[str, tuple[Entry, dict[str, Any]]] = {
        "heads": (sitemap.ATTENTION, looked),
        "embedding": (sitemap.TOKENS, {"part": "lookup"}),
        "positions": (sitemap.POSITIONS, {"part": positions_part(config)}),
        "norm": (sitemap.BLOCK, {"part": "stream"}),
        "feedforward": (sitemap.BLOCK, {"part": ""}),
        "output": (sitemap.BLANKS, {})
        if config.architecture == "encoder-only"
        else (sitemap.DECODING, {"part": "ways"}),
    }
    return pages[press.does]

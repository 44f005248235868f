"""The laboratory FlashAttention: the softmax of one row worked out tile by tile, with a running maximum and sum."""

import streamlit as st

from vizformer.components import table
from vizformer.components.matrix import number
from vizformer.components.table import Number, Row
from vizformer.explain import Step
from vizformer.explain.softmax_in_blocks import OnlineSoftmax, tile_sizes
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import computations
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, proof_badge, step_view
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

ASKED = 2  # keys in a tile of the question


@laboratory
def flash(subject: Subject) -> None:
    """The tiles of the chosen row, then each of them step by step."""
    st.html(table.style())
    attention_selector.choose(subject)
    site, head, query = attention_selector.site(), state.view().head, attention_selector.query(subject)
    asked = factor_question(subject, state.view().kind, site, head)
    if asked is None:
        st.info(_("This text is too short for two tiles. Type some more words."))
    lesson.ask(asked)
    keys = labels.texts(subject.trace.tokens[labels.stacks(state.view().kind)[1]])
    sizes = tile_sizes(len(keys))
    usual = min(sizes, key=lambda size: abs(size - 4))
    tile = usual
    if len(sizes) > 1:
        with st.popover(_("Keys in a tile")):
            tile = st.select_slider(_("Keys in a tile"), sizes, **lesson.setting("costs.tile", usual, sizes))
    found = computations.online_softmax(subject, site, head, query, tile)
    _tiles(found, keys)
    proof_badge.show(
        found.plain,
        _(
            "Equal to the softmax of the whole row at once, to {difference}.",
            difference=f"{found.plain.difference:.1g}",
        ),
    )
    proof_badge.show(found.fused, edited=bool(subject.edited))
    st.caption(
        _(
            "Held at any time: the {tile} scores of a tile, m, l and o, {numbers} numbers. The plain way holds all "
            "{n} weights of the row, {squared} of the whole map.",
            tile=tile,
            numbers=f"{tile + 2 + len(found.z):,}",
            n=f"{len(keys):,}",
            squared=f"{len(keys) ** 2:,}",
        )
    )
    steps = computations.online_softmax_steps(subject, site, head, query, tile)

    def names(step: Step) -> step_view.Labels:
        if not step.key.startswith("tile"):
            return {}
        at = found.tiles[int(step.key.removeprefix("tile"))]
        return {"keys": keys[at.first : at.last]}

    step_view.walk(steps, names)


def _tiles(found: OnlineSoftmax, keys: list[str]) -> None:
    rows = [
        Row(
            (
                " ".join(keys[tile.first : tile.last]),
                "−" if tile.skipped else number(float(tile.scores.max())),
                "−" if tile.skipped else number(tile.factor),
                number(tile.largest),
                Number(tile.total, number(tile.total)),
                number(float(tile.output[0])),
            ),
            "faint" if tile.skipped else "",
        )
        for tile in found.tiles
    ]
    rows.append(Row(("z = o / l", "", "", "", "", number(float(found.z[0]))), "sum"))
    columns = (_("tile"), _("its largest score"), _("factor c"), "m", "l", _("o, first number"))
    caption = _("One row of the map, tile by tile; tiles that the mask blocks are left out")
    st.html(table.to_html(columns, rows, caption=caption))


def factor_question(subject: Subject, kind: str, site: str, head: int) -> lesson.Number | None:
    """What becomes of the first tile's sum when the second one comes?"""
    last = len(subject.trace.tokens[labels.stacks(kind)[0]]) - 1
    tiles = computations.online_softmax(subject, site, head, last, ASKED).tiles
    if len(tiles) < 2:
        return None
    first, second = (float(tile.scores.max()) for tile in tiles[:2])
    return lesson.Number(
        "costs",
        "factor",
        _(
            "Tiles of two keys, the row of token {query}. The largest score of the first tile is {first}, that of the "
            "second {second}. By which factor is the sum of the first tile multiplied when the second one comes?",
            query=last,
            first=f"{first:.3f}".replace("-", "−"),
            second=f"{second:.3f}".replace("-", "−"),
        ),
        tiles[1].factor,
        _(
            "c = e^(m − m'), with m' the larger of the two: {factor}. Where the new tile has nothing larger, m stays "
            "and the factor is 1.",
            factor=f"{tiles[1].factor:.3f}",
        ),
        tolerance=0.02,
        written="{:.3f}".format,
        about=f"{subject} {site} {head}",
    )

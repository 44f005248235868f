"""The laboratory FlashAttention: the softmax of one row worked out tile by tile, with a running maximum and sum."""

import math

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import kinds, site_name
from vizformer.components import table
from vizformer.components.matrix import number
from vizformer.components.table import Number, Row
from vizformer.explain import Step, softmax_in_blocks
from vizformer.explain.softmax_in_blocks import OnlineSoftmax, tile_sizes
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, proof_badge, step_view
from vizformer.web.widgets.lab import Laboratory, aside
from vizformer.web.widgets.questions import near
from vizformer.web.words import labels

lab = Laboratory("costs", "flash")
ASKED = 2  # keys in a tile of the question


@cached
def online_softmax(subject: Subject, site: str, head: int, query: int, tile: int) -> OnlineSoftmax:
    return softmax_in_blocks.online_softmax(subject.trace[site], head, query, tile)


@cached
def online_softmax_steps(subject: Subject, site: str, head: int, query: int, tile: int) -> list[Step]:
    return softmax_in_blocks.online_softmax_steps(online_softmax(subject, site, head, query, tile))


@lab.draws
def draw_flash_attention(subject: Subject) -> None:
    why = attention_selector.choose(subject)
    site, head, query = attention_selector.site(), state.view().head, attention_selector.query(subject)
    asked = factor(subject, site, head)
    if asked is None:
        st.info(lab.text("short"))
    lesson.ask(asked)
    keys = labels.texts(subject.trace.tokens[labels.stacks(state.view().kind)[1]])
    sizes = tile_sizes(len(keys))
    tile = usual = min(sizes, key=lambda size: abs(size - 4))
    if len(sizes) > 1:
        with st.popover(lab.text("tile")):
            tile = lab.steps("tile", sizes, usual)
    found = online_softmax(subject, site, head, query, tile)
    _tiles(found, keys)
    aside(why)
    proof_badge.show(found.plain, lab.text("equal", difference=f"{found.plain.difference:.1g}"))
    proof_badge.show(found.fused, edited=bool(subject.edited))
    n = len(keys)
    lab.note("held", tile=tile, numbers=f"{tile + 2 + len(found.z):,}", n=f"{n:,}", squared=f"{n**2:,}")

    def names(step: Step) -> step_view.Labels:
        if not step.key.startswith("tile"):
            return {}
        at = found.tiles[int(step.key.removeprefix("tile"))]
        return {"keys": keys[at.first : at.last]}

    step_view.walk(online_softmax_steps(subject, site, head, query, tile), names)


@lab.asks("factor")
def factor(subject: Subject, site: str = "", head: int = 0) -> lesson.Number | None:
    if not site:
        kind = kinds(subject.trace)[0]
        layer, head = attention_selector.usual_head(subject, kind)
        site = site_name(kind, layer)
    last = subject.trace[site].q.shape[1] - 1
    tiles = online_softmax(subject, site, head, last, ASKED).tiles
    if len(tiles) < 2:
        return None
    first, second = (f"{float(tile.scores.max()):.3f}".replace("-", "−") for tile in tiles[:2])
    values = {"query": last, "first": first, "second": second, "factor": f"{tiles[1].factor:.3f}"}
    gap = float(tiles[0].scores.max()) - float(tiles[1].scores.max())
    wrong = {"turned": math.exp(min(gap, 0.0) - gap), "gap": gap, "exponent": math.exp(-min(gap, 0.0))}
    said = lab.asked("factor", subject, site, head, wrong=wrong, **values)
    return lesson.Number(
        answer=tiles[1].factor, tolerance=near(tiles[1].factor, 0.02, 0.001), written="{:.3f}".format, **said
    )


def _tiles(found: OnlineSoftmax, keys: list[str]) -> None:
    rows = [
        Row(
            " ".join(keys[tile.first : tile.last]),
            "−" if tile.skipped else number(float(tile.scores.max())),
            "−" if tile.skipped else number(tile.factor),
            number(tile.largest),
            Number(tile.total, number(tile.total)),
            number(float(tile.output[0])),
            kind="faint" if tile.skipped else "",
        )
        for tile in found.tiles
    ]
    rows.append(Row("z = o / l", "", "", "", "", number(float(found.z[0])), kind="sum"))
    tile, largest, factor, output = lab.columns("tile", "largest", "factor", "output")
    columns = (tile, largest, factor, "m", "l", output)
    chart.show(
        figures.line_curves(
            np.arange(1, len(found.tiles) + 1),
            {"m": np.array([one.largest for one in found.tiles]), "l": np.array([one.total for one in found.tiles])},
            place_title=tile,
            title=lab.text("row"),
        ).update_traces(mode="lines+markers"),
        key="costs.tiles",
    )
    st.html(table.style() + table.to_html(columns, rows))

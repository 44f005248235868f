"""Past the trained length, in the lesson Positions: six trained models, read further than they learned."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.options.positions import Positions
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.lessons.positions.schemes import names
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.i18n import _


@laboratory
def longer(subject: Subject) -> None:
    """The loss by position of six trained models, on held-out text and on the reader's own."""
    notes, titles = computations.measured(), _titles()
    lesson.ask(longer_question(subject.text))
    past = st.toggle(_("Show what happens past the trained length"), **lesson.setting("positions.past", False))
    end = None if past else notes["trained"]
    held = {"book": _("a held-out book"), "chinese": _("held-out Chinese sentences")}
    text = st.segmented_control(
        _("Measured on"),
        list(held),
        format_func=held.__getitem__,
        required=True,
        **lesson.setting("positions.text", "book", held),
    )
    curves = {titles[scheme]: curve[:end] for scheme, curve in computations.held_out_losses(text).items()}
    _chart(curves, notes["trained"], _("Loss by position: {text}", text=held[text]), "positions.heldout")
    st.caption(
        _(
            "Mean over {n} windows of 256 bytes; running mean over 9 positions, before and after the dashed line "
            "separately. The windows stand 64 bytes apart, so that every position is measured on the same bytes, but for "
            "the edges of the text.",
            n=f"{notes['windows'][text]:,}",
        )
    )
    if past:
        _table(notes["loss"][text])
    rests = {
        "book": _("then held-out English"),
        "chinese": _("then held-out Chinese"),
        "repeat": _("again and again"),
    }
    rest = st.segmented_control(
        _("Your text, then until 256 bytes"),
        list(rests),
        format_func=rests.__getitem__,
        required=True,
        **lesson.setting("positions.rest", alike(subject.text), rests),
    )
    smoothed = {titles[scheme]: curve[:end] for scheme, curve in computations.own_curves(subject.text, rest).items()}
    _chart(smoothed, notes["trained"], _("Loss by position: your own text"), "positions.own")
    st.caption(
        _(
            "One window only: running mean over 33 positions, before and after the dashed line separately. A token is a "
            "byte of UTF-8 here; your text has {n}.",
            n=len(subject.text.encode()),
        )
    )


def alike(text: str) -> str:
    """The held-out text ("book", "chinese") that goes on in the script of this one."""
    return "chinese" if 2 * sum(ord(character) > 0x2E7F for character in text) > len(text) else "book"


def _titles() -> dict[Positions, str]:
    """What the schemes are called where they stand alone: "none" could mean none of them."""
    return {**names(), "none": _("no positions")}


def _chart(curves: dict[str, np.ndarray], trained: int, title: str, key: str) -> None:
    chart.show(
        figures.line_curves(
            np.arange(256),
            curves,
            place_title=_("position in the window, in bytes"),
            value_title=_("loss, nats per byte"),
            hover=_("{name}: {value} nats at position {place}"),
            mark=(trained - 0.5, _("training ended here")),
            title=title,
            height=380,
            value_range=(0.0, 1.05 * max(float(curve.max()) for curve in curves.values())),
        ),
        key=key,
    )


def _table(measured: dict[Positions, list[float]]) -> None:
    """Mean losses just before the trained length, just behind it, and far behind it."""
    spans = ((32, 64), (64, 96), (224, 256))
    heads = [_("positions {first} to {last}", first=first, last=last - 1) for first, last in spans]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(spans)]
    for scheme, title in _titles().items():
        curve = measured[scheme]
        cells = [
            f"{sum(curve[first:last]) / (last - first):.3f}" if len(curve) >= last else _("no such rows")
            for first, last in spans
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    st.markdown("\n".join(lines))


def longer_question(text: str) -> lesson.Choice:
    """Which scheme suffers most past the trained length, on the reader's text?"""
    behind, titles = computations.losses_behind(text, alike(text)), _titles()
    read = list(behind)
    best = min(read, key=behind.__getitem__)
    shown = _("; ").join(f"{titles[scheme]} {behind[scheme]:.2f}" for scheme in sorted(read, key=behind.__getitem__))
    return lesson.Choice(
        "positions",
        "longer",
        _(
            "Your text, followed by a held-out one, makes 256 bytes. All models were trained on {n} at a time. Which one "
            "predicts bytes {n} to 255 best?",
            n=computations.measured()["trained"],
        ),
        [titles[scheme] for scheme in read],
        read.index(best),
        _(
            "Mean loss there, in nats per byte: {losses}. The learned table has no rows to read them with.",
            losses=shown,
        ),
        about=text,
    )

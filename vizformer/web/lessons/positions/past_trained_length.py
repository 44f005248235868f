"""A laboratory of the lesson Positions: six trained models that read further than they learned."""

from typing import Any

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer import figures
from vizformer.analysis.positions import running_mean
from vizformer.assets import asset
from vizformer.options import Positions
from vizformer.training import lengths
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.sinusoid import SCHEMES, tiny
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words.i18n import _

lab = Laboratory("positions", "longer")
HELD_OUT = ("book", "chinese")
WIDTHS = 9, 33  # positions of a running mean: over many windows, over one
SPANS = ((32, 64), (64, 96), (224, 256))  # positions whose mean losses are in the table
Losses = dict[Positions, Float[np.ndarray, " length"]]


@cached
def measured() -> dict[str, Any]:
    """What was measured when the models were trained (`vizformer.training.lengths.measured`)."""
    return lengths.measured(asset("lessons", "positions"))


@cached
def own_losses(text: str, rest: str) -> Losses:
    """Loss by position of each trained model on the reader's text, continued to 257 bytes by a held-out passage ("book",
    "chinese") or again and again ("repeat").
    """
    data = lengths.continued(text, None if rest == "repeat" else measured()["passages"][rest])
    return {scheme: lengths.byte_losses(tiny(scheme).model, data) for scheme in SCHEMES}


@cached
def curves(text: str, rest: str | None = None) -> Losses:
    """Losses smoothed for a picture: the reader's with a `rest`, otherwise those of the held-out `text`."""
    losses, width = (measured()["loss"][text], WIDTHS[0]) if rest is None else (own_losses(text, rest), WIDTHS[1])
    return {scheme: running_mean(np.array(losses[scheme]), width, measured()["trained"]) for scheme in SCHEMES}


@lab.draws
def draw_past_trained_length(subject: Subject) -> None:
    notes = measured()
    lesson.ask(past_trained_length_question(subject))
    with controls():
        past, text = lab.toggle("past"), lab.buttons("text", HELD_OUT)
    end = None if past else notes["trained"]
    _chart(curves(text), end, lab.text("by_position", text=lab.text(f"text.{text}")), "positions.heldout")
    lab.note("windows", n=f"{notes['windows'][text]:,}")
    if past:
        _table(notes["loss"][text])
    with controls():
        rest = lab.buttons("rest", (*HELD_OUT, "repeat"), _alike(subject.text))
    _chart(curves(subject.text, rest), end, lab.text("own"), "positions.own")
    lab.note("window", n=len(subject.text.encode()))


@lab.asks("longer")
def past_trained_length_question(subject: Subject) -> lesson.Choice:
    trained, titles = measured()["trained"], _titles()
    means = {
        scheme: lengths.mean_from(losses, trained)
        for scheme, losses in own_losses(subject.text, _alike(subject.text)).items()
    }
    behind = {scheme: mean for scheme, mean in means.items() if mean is not None}  # of the models that read as far
    ordered = sorted(behind, key=behind.__getitem__)
    losses = _("; ").join(f"{titles[scheme]} {behind[scheme]:.2f}" for scheme in ordered)
    best, names = ordered[0], list(behind)
    values = {"best": titles[best], "best_loss": f"{behind[best]:.2f}", "n": trained, "losses": losses}
    wrong = [
        lab.mistake("longer", scheme, index, loss=f"{behind[scheme]:.2f}", **values)
        for index, scheme in enumerate(names)
        if scheme != best
    ]
    said = lab.asked("longer", subject.text, wrong=wrong, **values)
    return lesson.Choice(choices=[titles[scheme] for scheme in behind], answer=list(behind).index(ordered[0]), **said)


def _alike(text: str) -> str:
    """The held-out text that goes on in the script of this one."""
    return "chinese" if 2 * sum(ord(character) > 0x2E7F for character in text) > len(text) else "book"


def _titles() -> dict[Positions, str]:
    """The names of the schemes in titles, where "none" alone could mean none of the schemes."""
    return {**lab.texts("scheme", SCHEMES), "none": lab.text("without")}


def _chart(found: Losses, end: int | None, title: str, key: str) -> None:
    titles = _titles()
    shown = {titles[scheme]: curve[:end] for scheme, curve in found.items()}
    chart.show(
        figures.line_curves(
            np.arange(lengths.LONGEST),
            shown,
            place_title=lab.text("place"),
            value_title=lab.text("loss"),
            hover=lab.text("hover"),
            mark=(measured()["trained"] - 0.5, lab.text("ended")),
            title=title,
            value_range=(0.0, 1.05 * max(float(curve.max()) for curve in shown.values())),
        ),
        key=key,
    )


def _table(losses: dict[Positions, list[float]]) -> None:
    """Mean losses just before the trained length, just behind it, and far behind it."""
    heads = [lab.text("span", first=first, last=last - 1) for first, last in SPANS]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(SPANS)]
    for scheme, title in _titles().items():
        curve = losses[scheme]
        cells = [
            f"{sum(curve[first:last]) / (last - first):.3f}" if len(curve) >= last else lab.text("no_rows")
            for first, last in SPANS
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    st.markdown("\n".join(lines))

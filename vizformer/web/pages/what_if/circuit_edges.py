"""A circuit for a set of prompts: how well the model answers with few edges, beside drawn ones, and which these are."""

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import Edge, EdgeScores, Faithfulness, PromptSet, edge_scores, faithfulness, measured_edges
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.asked_prompts import MOST_TOKENS
from vizformer.analysis.causes.edge_attribution import STEPS
from vizformer.analysis.causes.model_graph import ModelGraph
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.errors import TraceError
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson, watched_work
from vizformer.web.widgets.choices import BESIDE
from vizformer.web.words import part_names
from vizformer.web.words.i18n import _, show_markdown, show_note, show_warning
from vizformer.web.words.part_names import signed

MOST_PROMPTS, DRAWS, MOST_LISTED = 12, 3, 40
"""Prompts of a set that are read here; drawn circuits of each size; edges in the table."""
MOST_SIZES = 12
DOUBLED = 3  # how many times as many steps are expected, where they are doubled once: 5 + 10

MOST_COUNTED = 100_000  # characters of a set whose tokens are counted while somebody waits: half a second at most
SPECIAL = 4  # tokens beside those of the characters: marks of both stacks
OF_ROW = 1.5e8  # multiplications that take as long as what is done for a prompt beside its runs, 15 ms


@dataclass(frozen=True)
class Circuits:
    """The edges of a model for a set: their scores, the curve, and what the strongest are measured to be."""

    scores: EdgeScores
    curve: Faithfulness | None  # None where the scores mean nothing, `EdgeScores.holds`
    listed: tuple[Edge, ...]
    measured: np.ndarray


@cached
def circuits(model: Subject, prompts: PromptSet) -> Circuits:
    """The circuits for a set of prompts; of the subject `model` only its model is used."""
    told, checkpoint = HEARD.get(), model.checkpoint
    rows = len(prompts.rows)

    def part(first: float, share: float, done: int, of: int) -> None:
        if told is not None:
            told(int(1000 * rows * (first + share * done / of)), 1000 * rows)

    scores = edge_scores(checkpoint, prompts, heard=lambda done, of: part(0.0, 0.2, done, of))
    if not scores.holds:
        return Circuits(scores, None, (), np.zeros(0))
    curve = faithfulness(checkpoint, prompts, scores, draws=DRAWS, heard=lambda done, of: part(0.2, 0.4, done, of))
    listed = scores.strongest(MOST_LISTED)
    measured = measured_edges(checkpoint, prompts, listed, heard=lambda done, of: part(0.6, 0.4, done, of))
    return Circuits(scores, curve, listed, measured)


def has_edges(subject: Subject) -> bool:
    """Whether the stream of a model is a plain sum, so that its edges can be followed."""
    try:
        ModelGraph(subject.checkpoint)
    except TraceError:
        return False
    return True


def draw_circuit(subject: Subject, model: Subject, prompts: PromptSet) -> None:
    """The curve of faithfulness, how many edges are enough, and the strongest edges with their measurement beside."""
    few = PromptSet(prompts.name, prompts.rows[:MOST_PROMPTS])
    found = measured(subject, model, few)
    if found is None:
        return
    if found.curve is None:
        show_warning(
            "The edges out of the embedding should sum to 1 for each prompt, and sum to {sums} with {steps} steps of the "
            "integral: a softmax of this model is too sharp for the estimate, which would be wrong. Choose other prompts or "
            "another model.",
            sums=sums(found.scores),
            steps=found.scores.steps,
        )
        return
    sizes, picture, beside = list(found.curve.sizes), *st.columns(BESIDE, gap="medium")
    with picture:
        chart.show(
            figures.line_curves(
                np.array(sizes),
                {
                    _("the strongest edges"): found.curve.circuit,
                    _("random edges, joined like these, mean of {n}", n=DRAWS): found.curve.random.mean(1),
                },
                place_title=_("edges"),
                value_title=_("faithfulness"),
                hover=_("{name}: {place} edges, faithfulness {value}"),
                title=_("Share of the answer with so many edges alone"),
            )
            .update_traces(mode="lines+markers")
            .update_xaxes(type="log"),
            key="what_if.circuit.curve",
            title_above=True,
        )
    with beside:
        enough = next((at for at, share in enumerate(found.curve.circuit) if share > 0.8), len(sizes) - 1)
        show_markdown(
            "Of {all} edges, **{n}** keep {share} of the difference between the prompts; as many random ones "
            "keep {drawn}.",
            all=f"{sizes[-1]:,}",
            n=f"{sizes[enough]:,}",
            share=f"{found.curve.circuit[enough]:.0%}",
            drawn=f"{round(found.curve.random[enough].mean(), 2) + 0.0:.0%}",
        )
        show_note(
            "An edge leads from the output of one part to an input of another: the query, the key or the value "
            "of a head, a feed-forward network, or the logits. All edges outside of the circuit carry the "
            "numbers of the corrupted prompts (EAP-IG and faithfulness: Hanna et al. 2024)."
        )
        show_note(
            "The edges out of the embedding sum to {sums} for each prompt, with {steps} steps of the integral; 1 would be "
            "exact.",
            sums=sums(found.scores),
            steps=found.scores.steps,
        )
        if len(few.rows) < len(prompts.rows):
            show_note("The first {n} prompts of the set are read.", n=len(few.rows))
    edges(found)


def sums(scores: EdgeScores) -> str:
    """The range of the sums of edge scores over the prompts, as text."""
    least, most = (f"{value:.3f}".replace("-", "−") for value in (scores.sums.min(), scores.sums.max()))
    return least if least == most else f"{least} … {most}"


def measured(subject: Subject, model: Subject, prompts: PromptSet) -> Circuits | None:
    """The circuits; None until they are wanted, or where they take too long."""
    of_row = 3 * DOUBLED * STEPS + MOST_SIZES * (1 + DRAWS) + MOST_LISTED
    runs = len(prompts.rows) * of_row
    return watched_work.bounded(
        circuits,
        (model, prompts),
        cost=3 * cost(model, prompts, of_row),  # each head has a row of its own to project
        too_long=_(
            "Following the edges takes too long here ({n} runs): choose a smaller model. In Python: "
            "vf.analysis.edge_scores.",
            n=f"{runs:,}",
        ),
        runs=1000 * len(prompts.rows),
        begin=_("Follow the edges"),
        key="what_if.circuit",
        said=lambda done, n: f"{done / n:.0%}",
        takes=_("That takes {n} runs of the model. You can stop them.", n=f"{runs:,}"),
    )


def edges(found: Circuits) -> None:
    """The strongest edges, as many as the slider says."""
    most = len(found.listed)
    options = range(min(5, most), most + 1)
    usual = min(10, most)
    st.slider(_("Edges in the table"), options[0], most, **lesson.setting("whatif.edges", usual, options))
    shown = lesson.value("whatif.edges", usual, options)
    rows = [
        Row(
            name(edge.writer),
            name(edge.reader),
            Number(found.scores.of(edge), signed(found.scores.of(edge))),
            Number(float(share), signed(float(share))),
        )
        for edge, share in list(zip(found.listed, found.measured, strict=True))[:shown]
    ]
    columns = (_("written by"), _("read by"), _("share, estimated (EAP-IG)"), _("share, measured (this edge cut)"))
    st.html(table.to_html(columns, rows, caption=_("The edges that carry most")))


def name(place: str) -> str:
    """A writer or a reader in words."""
    if place in ("embedding", "logits"):
        return _("the embedding") if place == "embedding" else _("the logits")
    parts = place.split(".")
    if parts[2] == "feedforward":
        return part_names.name(Part(place))
    head = Part(".".join(parts[:3]), int(parts[3]))
    return part_names.name(head) if len(parts) == 4 else part_names.operand(head, parts[4])


# What it costs to run a model on every prompt of a set, before any of them is run.
def cost(model: Subject, prompts: PromptSet, of_row: int) -> float:
    """Multiplications of `of_row` runs of every prompt of a set, and of two more with which it is read."""
    rows = len(prompts.rows)
    others = watched_work.beside(model, (of_row + 2) * (rows - 1))
    return watched_work.cost(model, of_row + 2, tokens(model, prompts)) + others + OF_ROW * rows


@cached
def tokens(model: Subject, prompts: PromptSet) -> int:
    """How many tokens, or more, a model reads of all prompts of a set, both stacks together; of `model` only the model
    counts.

    They are counted as far as MOST_COUNTED characters; after that each character may be one.
    """
    checkpoint, left, found = model.checkpoint, MOST_COUNTED, 0
    for row in prompts.rows:
        characters = len(row.clean) + len(row.target)
        left, n = left - characters, characters + SPECIAL
        if left >= 0:
            with suppress(TraceError):  # more than the model's positions hold
                n = len(checkpoint.encode(row.clean)) + (len(checkpoint.encode_target(row.target)) if row.target else 0)
        found += min(n, MOST_TOKENS)
    return found

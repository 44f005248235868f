"""One head of the report: what it does in a sentence, and its map on the text where the measure is strongest."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.corpus_heads import Corpus, HeadReport, KindReport
from vizformer.analysis.corpus_heads.report import LEAST_COMPARED
from vizformer.figures import head_report as head_figures
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.head_report import computations, wording
from vizformer.web.widgets import chart
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, show_note, show_text, translate
from vizformer.web.words.signed_roles import role_said

SHOWN = 64  # tokens of a text, around which a map is still read


def in_words(report: HeadReport, found: KindReport, measure: str, place: tuple[int, int]) -> DeltaGenerator:
    """What it does; the place for what it does to logits."""
    layer, head = place
    st.subheader(_("Layer {layer}, head {head}", layer=layer, head=head), anchor=False)
    st.text(wording.sentence(found, layer, head, report.texts))
    nearest, n_heads = int(found.nearest[place]), found.shape[1]
    if sign := int(found.sign[place]):
        st.text(translate(wording.SIGN_SENTENCES[sign]))
    slot = st.empty()  # filled when all else stands: it is a second's work
    said = f"{wording.title(measure)}: {wording.number(measure, float(found.mean[measure][place]))}"
    if nearest >= 0:
        said += " · " + _(
            "most like layer {layer}, head {head} (cosine {value})",
            layer=nearest // n_heads,
            head=nearest % n_heads,
            value=f"{float(found.mean['redundancy'][place]):.2f}",
        )
    elif found.mean["beside_sinks"][place] < LEAST_COMPARED:
        said += " · " + _("too little attention outside the sinks to be compared with other heads")
    st.caption(said)
    return slot


def to_logits(slot: DeltaGenerator, model: ModelRef, corpus: Corpus, kind: Kind, place: tuple[int, int]) -> None:
    """What the head does to the logits of what it looks at, in the place that `in_words` has left for it."""
    if (done := computations.role_over(model, corpus, kind, place)) is not None:
        slot.text(role_said(done))


def its_map(model: ModelRef, corpus: Corpus, found: KindReport, measure: str, place: tuple[int, int]) -> None:
    """The chosen head on the text where the measure is strongest."""
    layer, head = place
    number = int(found.strongest[measure][place]) if measure in found.strongest else -1
    if number < 0:
        return
    passage = corpus.passages[number]
    shown = computations.on_passage(model, passage, found.kind, layer, head, measure)
    rows, keys = slice(0, SHOWN), slice(0, SHOWN)
    figure = figures.marked_map(
        shown.pattern[rows, keys],
        labels.texts(shown.queries)[rows],
        labels.texts(shown.keys)[keys],
        shown.marked[rows, keys],
        reasons=shown.reasons[rows, keys],
        words=words(head_figures.ENGLISH),
    )
    show_text("Text {number}, where this is strongest:", number=number + 1)
    st.text(passage.text if not passage.target else f"{passage.text}  →  {passage.target}")
    chart.show(figure, key="head_report.map")
    if max(len(shown.queries), len(shown.keys)) > SHOWN:
        show_note("The first {n} tokens. The squares are the cells that the measure counts.", n=SHOWN)
    else:
        show_note("The squares are the cells that the measure counts.")
    if presses.button(
        "→ " + _("This head on this text, on the page Attention"), type="tertiary", key="head_report.open"
    ):
        state.update(
            text=passage.text,
            target=passage.target,
            layer=layer,
            head=head,
            kind=found.kind,
            edits="",
            query=None,
            picture="map",
        )
        st.switch_page(sitemap.ATTENTION.file)

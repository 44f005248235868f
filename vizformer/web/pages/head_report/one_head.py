"""One head of the report: what it does in a sentence, on texts where it does more or less of it, and over all of them."""

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import Kind
from vizformer.analysis.corpus_heads import Corpus, HeadReport, KindReport
from vizformer.analysis.corpus_heads.report import LEAST_COMPARED
from vizformer.analysis.vectors.embeddings import project
from vizformer.figures.head_report import Measure
from vizformer.messages import N_, Message, messages_of
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.head_report import computations
from vizformer.web.widgets import chart, data_table, lesson
from vizformer.web.widgets.choices import one_of
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, show_note, translate
from vizformer.web.words.part_names import role_said
from vizformer.word_tables import words_of

STRONGEST = "strongest"
SHOWN = 64  # tokens of a text, around which a map is still read

_WORDS = {name: messages_of(texts) for name, texts in words_of(__file__).items()}
TITLES = _WORDS["titles"]  # in the order in which they are offered
MEANINGS, DOES = _WORDS["meanings"], _WORDS["does"]
BY_HAND = "induction-by-hand"
WHY: tuple[Message, ...] = tuple(_WORDS["why"].values())
SIGNS: dict[int, Message] = {1: N_("copying"), -1: N_("anti-copying")}
"""What a head does with what it looks at, by the sign of its OV where that is clear."""
SIGN_SENTENCES: dict[int, Message] = {
    1: N_("By its weights alone it copies: its OV raises the logit of the token to which it attends."),
    -1: N_("By its weights alone it anti-copies: its OV lowers the logit of the token to which it attends."),
}
HABIT = 0.5  # of the rows: below it a head has no habit
_MANY = 0.02  # of the most rows that any target has: fewer say little

SHARES = frozenset((*DOES, "induction_repeated", "positional", "content", "beside_sinks"))
"""The measures that are shares of 1."""
UNITS = _WORDS["units"]
SIGNED = ("copying", "logit_effect")
LAYER = "layer"


def in_words(report: HeadReport, found: KindReport, measure: str, place: tuple[int, int]) -> DeltaGenerator:
    """Says what the head does; returns the place for its effect on logits."""
    layer, head = place
    st.subheader(_("Layer {layer}, head {head}", layer=layer, head=head), anchor=False)
    st.text(sentence(found, layer, head, report.texts))
    nearest, n_heads = int(found.nearest[place]), found.shape[1]
    if sign := int(found.sign[place]):
        st.text(translate(SIGN_SENTENCES[sign]))
    slot = st.empty()  # filled when all else stands: it is a second's work
    said = f"{title(measure)}: {number(measure, float(found.mean[measure][place]))}"
    if nearest >= 0:
        said += " · " + _(
            "most similar to layer {layer}, head {head} (cosine {value})",
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


def on_a_text(model: ModelRef, corpus: Corpus, found: KindReport, measure: str, place: tuple[int, int]) -> None:
    """The chosen head on one of the texts, chosen by what the measure is there."""
    layer, head = place
    measure, number = a_text(found, measure, place, ask=True)
    if number < 0 or not (passage := corpus.passages[number]).text:
        return
    st.text(passage.text if not passage.target else f"{passage.text}  →  {passage.target}")
    shown = computations.on_passage(model, passage, found.kind, layer, head, measure)
    rows, keys = slice(0, SHOWN), slice(0, SHOWN)
    figure = figures.marked_map(
        shown.pattern[rows, keys],
        labels.texts(shown.queries)[rows],
        labels.texts(shown.keys)[keys],
        shown.marked[rows, keys],
        reasons=shown.reasons[rows, keys],
    )
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


def a_text(found: KindReport, measure: str, place: tuple[int, int], *, ask: bool = False) -> tuple[str, int]:
    """The number of the text on which the head is shown, and by which measure; -1 where there is none.

    Measures of all texts together have none: then it is the entropy.

    `ask`: draws the choice: the strongest, or the one in the middle of each tenth.
    """
    measure = measure if measure in found.strongest else "entropy"
    values = found.tenth_values[measure][place]
    names = {STRONGEST: _("strongest")}
    if found.tenths[measure][place][0] >= 0:
        shown = [number(measure, float(value)) for value in values]
        names |= {str(tenth + 1): f"{tenth + 1} · {shown[tenth]}" for tenth in reversed(range(len(values)))}
    label = _("A text from each tenth of all, by “{measure}”", measure=title(measure))
    if ask:
        chosen = one_of(label, "headreport.text", names)
    else:
        chosen = lesson.value("headreport.text", STRONGEST, list(names))
    if chosen == STRONGEST:
        return measure, int(found.strongest[measure][place])
    return measure, int(found.tenths[measure][place][int(chosen) - 1])


def over_the_texts(found: KindReport, place: tuple[int, int]) -> None:
    """How large the largest weights of its queries are, and the tokens that pick one key and that are picked."""
    tokens = {name: values[place] for name, values in found.tokens.items()}
    bars, keys, queries = st.columns([4, 3, 4], gap="medium")
    with bars:
        st.markdown("**" + _("How concentrated its attention is") + "**")
        figure = figures.weight_histogram(found.largest[place])
        chart.show(figure, key="head_report.largest")
    picks, rows = int(found.picks[place]), max(int(found.largest[place].sum()), 1)
    n_keys, n_queries = (int((tokens[f"{name}_count"] > 0).sum()) for name in ("key", "query"))
    with keys:
        if n_keys:
            st.markdown("**" + _("Keys that it picks") + "**")
            counts = tokens["key_count"][:n_keys]
            shares = [f"{n / picks:.1%}" for n in counts]
            said = {_("Key"): tokens["key"][:n_keys], _("Times"): counts, _("Share of its picks"): shares}
            data_table.show(said, hide_index=True)
    with queries:
        if n_queries:
            st.markdown("**" + _("Queries that pick") + "**")
            counts = tokens["query_count"][:n_queries]
            shares = [f"{n / of:.1%}" for n, of in zip(counts, tokens["query_rows"], strict=False)]
            said = {_("Query"): tokens["query"][:n_queries], _("Times"): counts}
            data_table.show(said | {_("Share of this token's queries"): shares}, hide_index=True)
    show_note(
        "The head picks a key where a query gives it more than half of the attention, the first token and the tokenizer's "
        "marks aside: {picks} of {rows} queries ({share}). On the right: the tokens that pick more often than that.",
        picks=f"{picks:,}",
        rows=f"{rows:,}",
        share=f"{picks / rows:.1%}",
    )


def vectors(model: ModelRef, corpus: Corpus, found: KindReport, measure: str, place: tuple[int, int]) -> None:
    """The head's vectors of the tokens of the text that is shown, each kind on the plane of its two main directions."""
    measure, number = a_text(found, measure, place)
    if number < 0 or not (passage := corpus.passages[number]).text:
        return
    shown = computations.on_passage(model, passage, found.kind, *place, measure)
    names = {"Q": _("Queries"), "K": _("Keys"), "V": _("Values"), "O": _("Outputs")}
    places = [*st.columns(2, gap="medium"), *st.columns(2, gap="medium")]  # on a phone in this order too
    for at, (name, rows) in enumerate(shown.vectors.items()):
        tokens = labels.numbered(shown.keys if name in "KV" else shown.queries)[:SHOWN]
        if not np.isfinite(rows[:SHOWN]).all():
            continue
        found_plane = project(rows[:SHOWN])
        figure = figures.embedding_map(
            found_plane.points,
            tokens,
            [0] * len(tokens),
            (float(found_plane.explained[0]), float(found_plane.explained[1])),
            title=names[name],
        )
        with places[at]:
            chart.show(figure, key=f"head_report.vectors.{name}")
    show_note(
        "At most the first {n} tokens of the text above. Queries and keys are those of the scores: where "
        "the model has rotary positions, after the rotation. Outputs are weighted sums of values. Each "
        "picture has its own two directions, those of largest variance (PCA).",
        n=SHOWN,
    )


# The measures of the head report in words, and what a head does in a sentence.
def title(measure: str) -> str:
    return translate(TITLES[measure])


def meaning(measure: str) -> str:
    return translate(MEANINGS[measure])


def axis(found: KindReport, name: str) -> Measure:
    """A measure, or the layer, as an axis or a colour of the scatter."""
    if name == LAYER:
        return Measure(_("Layer"), np.indices(found.shape)[0])
    unit = f" ({translate(UNITS[name])})" if name in UNITS else ""
    return Measure(title(name) + unit, found.mean[name], share=name in SHARES, signed=name in SIGNED)


def number(measure: str, value: float) -> str:
    if value != value:
        return "–"
    return f"{value:.1%}" if measure in SHARES else f"{value:.2f}"


def sentence(report: KindReport, layer: int, head: int, texts: int) -> str:
    """A sentence about a head: the target that gets most attention in most of its rows, or that there is none."""
    place = (layer, head)
    enough = _MANY * max(int(rows[place]) for rows in report.rows.values())
    known = [name for name in DOES if report.rows[name][place] > enough]
    best = max(known, key=lambda name: float(report.most[name][place]), default=None)
    if best is None or report.most[best][place] < HABIT:
        return _(
            "Layer {layer}, head {head} shows no dominant pattern over all {n:,} texts; the mean entropy of its rows is "
            "{entropy} nats.",
            layer=layer,
            head=head,
            n=texts,
            entropy=f"{float(report.mean['entropy'][place]):.2f}",
        )
    share = f"{float(report.most[best][place]):.0%}"
    values = {"layer": layer, "head": head, "share": share, "rows": int(report.rows[best][place]), "n": texts}
    return translate(Message(DOES[best].text, values))

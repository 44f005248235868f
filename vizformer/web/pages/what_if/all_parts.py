"""One part after the other taken out: a picture of all heads, and the parts that matter most."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vizformer import figures
from vizformer.analysis import Kind, Prediction, kinds, site_name
from vizformer.analysis.causes.ablation import Effect, Part, Stack, TokenEffects, Way, by_head, ways
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache, subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.what_if import computations
from vizformer.web.pages.what_if.computations import Instead, Mean
from vizformer.web.widgets import (
    attention_selector,
    chart,
    in_python,
    lesson,
    map_words,
    model_suggestions,
    position_choice,
    watched_work,
)
from vizformer.web.widgets.choices import BESIDE, kind_of_the_largest, more, one_of
from vizformer.web.widgets.position_choice import ask_why
from vizformer.web.words import labels, part_names
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_info, show_note, show_text
from vizformer.web.words.part_names import signed

# The row at which answers are compared, the token that is followed, and what stands in the place of a part.


@dataclass(frozen=True)
class Place:
    row: int  # of the output
    best: tuple[Prediction, ...]  # the model's own answers there, most probable first
    instead: Instead  # what takes the place of a part

    @property
    def token(self) -> int:
        """The token that is followed: the model's own answer."""
        return self.best[0].token.id


def choose(subject: Subject, instead: Instead = "zero") -> Place:
    """The strip of the rows, and the model's own answer at the chosen one."""
    row = position_choice.choose(subject, key="what_if.row", compared=True)
    best = subject_cache.predictions(subject, row)
    show_text(
        "The model's own answer there: “{token}”, {percent}.",
        token=best[0].token.text,
        percent=labels.percent(best[0].probability),
    )
    ask_why(best[0].token.text, row, key="what_if.why")
    return Place(row, best, instead)


def choose_instead(subject: Subject) -> Instead:
    names = {"zero": _("nothing (zero)"), "mean": _("its mean over other texts")}
    how = one_of(_("Replace the removed part with"), "whatif.instead", names)
    if how != "mean":
        return "zero"
    show_note(
        "Mean ablation: at every position the output of a head or a sublayer is replaced by its mean over "
        "all positions of other texts."
    )
    return Mean(computations.choose(subject))


LISTED = 10
MOST = 8  # parts that a link carries
NAME, NOTHING = "whatif.off", "none"
RUNS = 6  # of the model, that two answers and two texts take, about


def draw_all_parts(subject: Subject, settings: DeltaGenerator) -> None:
    """The sweep as a picture of the heads, with the part that matters most; where it takes long, it waits for a button."""
    with settings:
        kind_box = st.container(width="content")
        with more():
            instead = choose_instead(subject)
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        place = choose(subject, instead)
        matters = st.container()
        chosen = choose_parts(subject)
    with picture:
        effects = swept(subject, place)
    if effects is not None:
        first = max(effects, key=lambda one: one.divergence)
        with kind_box:
            kind = kind_of_the_largest(kinds(subject.trace), lambda kind: divergences(effects, kind))
        with matters:
            st.markdown(most_said(place, first))
        with picture:
            chart.show(
                figures.measure_of_heads(
                    divergences(effects, kind),
                    measure=_("KL, nats"),
                    title=_("Change of the answer without each head, {kind}", kind=labels.kind_label(kind)),
                ),
                key="what_if.heads",
                title_above=True,
            )
            map_words.say_pronoun(subject)
    if chosen:
        switched_off(subject, place, chosen)
    if effects is not None:
        strongest(subject, place, effects)


def divergences(effects: tuple[Effect, ...], kind: Kind) -> np.ndarray:
    """KL(P || P') of every head of one kind of attention, in nats [layers, heads]."""
    return by_head({one.part: one.divergence for one in effects}, kind)


def most_said(place: Place, first: Effect) -> str:
    """What the answer needs most, in a sentence (Markdown)."""
    return _(
        "The answer needs **{part}** most: without it the distribution changes by {value} nats (KL), and the "
        "probability of “{token}” by {points} percentage points.",
        part=part_names.name(first.part),
        value=matrix.number(first.divergence),
        token=plain(place.best[0].token.text),
        points=signed(100 * first.probability, 1),
    )


def swept(subject: Subject, place: Place) -> tuple[Effect, ...] | None:
    """The effects of all parts; None until they are wanted."""
    runs = len(computations.parts(subject))
    return watched_work.watched(
        computations.sweep,
        (subject, place.row, place.token, place.instead),
        quick=watched_work.cost(subject, runs) < watched_work.AT_ONCE,
        runs=runs,
        begin=_("Remove the parts one by one"),
        key="what_if.sweep",
    )


def strongest(subject: Subject, place: Place, effects: tuple[Effect, ...]) -> None:
    first = tuple(one.part for one in sorted(effects, key=lambda one: -one.divergence)[:LISTED])
    listed = computations.sweep(subject, place.row, place.token, place.instead, first)
    rows = [
        Row(
            part_names.name(one.part),
            Number(one.divergence, matrix.number(one.divergence)),
            Number(one.logit, signed(one.logit, 3)),
            Number(one.probability, signed(100 * one.probability, 1)),
            "−" if one.loss is None else Number(one.loss, signed(one.loss, 4)),
        )
        for one in listed
    ]
    token = place.best[0].token.text
    columns = (
        _("without"),
        _("KL, nats"),
        _("logit of “{token}”", token=token),
        _("change of its probability, percentage points"),
        _("loss of the text, nats per token"),
    )
    st.html(table.to_html(columns, rows, bar=1, caption=_("The parts without which the answer changes most")))
    show_note(
        "KL(own ‖ without): how far the distribution without the part is from the model's own at this "
        "row; 0 is no change. One part at a time: if two heads do the same, neither seems to matter, "
        "since the other one is still there."
    )


def choose_parts(subject: Subject) -> tuple[Part, ...]:
    """The box of parts; of a model that the reader opened it begins with the head of the page Attention."""
    known = computations.parts(subject)
    chosen = part_names.read(lesson.value(NAME, ""), known)
    answers = subject.shape.architecture == "encoder-only" or model_suggestions.writes(subject.model)
    if answers and not lesson.value(NAME, "") and watched_work.cost(subject, RUNS) < watched_work.AT_ONCE:
        kind = kinds(subject.trace)[0]
        place = attention_selector.place_elsewhere(subject, kind)
        chosen = () if place is None else (Part(site_name(kind, place[0]), place[1]),)
    key = "what_if.off"
    state.show(key, list(chosen))
    names = {part: part_names.name(part) for part in known}  # made now: the widget asks outside of a run too
    st.multiselect(
        _("Switch off"),
        known,
        format_func=names.__getitem__,
        max_selections=MOST,
        placeholder=_("Choose heads or sublayers") if subject.checkpoint.is_own else _("Choose heads"),
        key=key,
        on_change=_take,
    )
    return chosen


def switched_off(subject: Subject, place: Place, chosen: tuple[Part, ...]) -> None:
    """What becomes of the answer without these parts."""
    before, after = place.best, computations.without(subject, chosen, place.instead, place.row)
    found = computations.effect(subject, chosen, place.instead, place.row, place.token)
    rows = [
        Row(str(index + 1), one.token.text, _percent(one.probability), other.token.text, _percent(other.probability))
        for index, (one, other) in enumerate(zip(before[:5], after[:5], strict=False))
    ]
    columns = ("", _("as it is"), _("probability"), _("without them"), _("probability"))
    st.html(table.to_html(columns, rows, caption=_("The most probable answers at this row")))
    show_text("The distribution changes by {value} nats (KL).", value=matrix.number(found.divergence))
    if subject.shape.architecture != "encoder-only" and model_cache.predicts(subject.model):
        whole, less = (computations.written(subject.unedited, parts, place.instead) for parts in ((), chosen))
        show_text("The model writes: {text}", text=whole.strip())
        show_text("Without these parts it writes: {text}", text=less.strip())
    in_python.show(snippet(subject, chosen, place.instead))


def snippet(subject: Subject, chosen: tuple[Part, ...], instead: computations.Instead) -> list[str]:
    """The forward without the parts, in Python."""
    parts = ", ".join(f"Part({one.sublayer!r}{'' if one.head is None else f', {one.head}'})" for one in chosen)
    imports, lines, given = ["from vizformer.analysis.causes.ablation import Part, without"], list[str](), ""
    if instead != "zero":
        corpus, texts = computations.in_python(subject, instead.texts, computations.MEAN_TEXTS)
        imports += [*corpus, "from vizformer.analysis.causes.part_outputs import mean_outputs"]
        lines, given = [f"texts = {texts}", "means = mean_outputs(checkpoint, texts)"], ", means"
    lines += [
        f"other = without(checkpoint, trace, [{parts}]{given})",
        "print((other.logits - trace.logits).abs().max())",
    ]
    return [*in_python.opening(subject, *imports), *lines]


def _take() -> None:
    nothing = NOTHING if state.view().model.is_from_elsewhere else ""
    lesson.change(NAME, part_names.write(st.session_state["what_if.off"]) or nothing, "")


def _percent(probability: float) -> Number:
    return Number(probability, labels.percent(probability))


# The tokens of the input, taken out one after the other: how far the answer moves without each.
def draw_all_tokens(subject: Subject, settings: DeltaGenerator) -> None:
    """The stack, how a token is taken out (in the line of settings), and the table of all tokens."""
    stacks: list[Stack] = [stack for stack in ("encoder", "decoder") if stack in subject.trace.tokens]
    stack: Stack = stacks[0]
    with settings:
        if len(stacks) > 1:
            named = {"encoder": _("the sentence"), "decoder": _("what the decoder has read")}
            stack = one_of(_("Tokens of"), "whatif.stack", named, labelled=False)  # type: ignore[assignment]
        names = {
            "mask": _("the mask token in its place"),
            "unknown": _("the unknown token in its place"),
            "unseen": _("blocked as a key"),
        }
        possible = {str(way): names[way] for way in ways(subject.checkpoint, stack)}
        if possible:
            with more():
                way: Way = one_of(_("How to remove a token"), "whatif.tokenway", possible)  # type: ignore[assignment]
    if not possible:
        show_info(
            "VizFormer cannot remove a token here: this model has no mask token and no unknown token, and its "
            "own code accepts no mask for it. Remove heads, or choose another model."
        )
        model_suggestions.offer(_any, "what_if.tokens")
        return
    n = len(subject.trace.tokens[stack])
    picture, beside = st.columns(BESIDE, gap="medium")
    with beside:
        place = choose(subject)
        explained(way)
    with picture:
        effects = watched_work.watched(
            computations.tokens,
            (subject, stack, place.row, place.token, way),
            quick=watched_work.cost(subject, n) < watched_work.AT_ONCE,
            runs=n,
            begin=_("Remove the tokens one by one"),
            key="what_if.tokens",
        )
        if effects is not None:
            listed(subject, place, effects)
    in_python.show(code(subject, place, stack, way))


def _any(model: ModelRef) -> bool:
    return not model_cache.is_recorded(model)


def listed(subject: Subject, place: Place, effects: TokenEffects) -> None:
    """Every token in the order of the text; the one that matters most is marked."""
    most = max(effects, key=lambda one: one.divergence)
    rows = [
        Row(
            str(one.position),
            one.token.text,
            Number(one.divergence / max(most.divergence, 1e-12), matrix.number(one.divergence)),  # a bar: its share
            Number(one.logit, part_names.signed(one.logit)),
            Number(one.probability, part_names.signed(100 * one.probability, 1)),
            one.best.text,
            kind="marked" if one is most and one.divergence > 0 else "",
        )
        for one in effects
    ]
    columns = (
        _("position"),
        _("without the token"),
        _("KL, nats"),
        _("logit of “{token}”", token=place.best[0].token.text),
        _("change of its probability, percentage points"),
        _("most probable without it"),
    )
    st.html(table.to_html(columns, rows, bar=2, caption=_("Change of the answer without each token")))


def explained(way: Way) -> None:
    """What becomes of a token that is taken out."""
    if way == "unseen":
        show_note(
            "The token stays in its place, but the mask blocks it as a key for all positions, like padding. The "
            "row of the token itself still begins with its embedding, so an answer at that row still depends on "
            "it."
        )
    else:
        show_note(
            "Another token takes its place, so all positions stay the same. The model reads a sentence with a "
            "gap, which is not the sentence without the word."
        )


def code(subject: Subject, place: Place, stack: Stack, way: Way) -> list[str]:
    """The sweep in Python."""
    return [
        *in_python.opening(subject, "from vizformer.analysis.causes.ablation import token_sweep"),
        f"effects = token_sweep(checkpoint, trace, {stack!r}, row={place.row}, token={place.token}, way={way!r})",
        "print(effects.to_frame())",
    ]

"""Parts that the reader switches off together: the answer before and after, and the text that the model writes then."""

import streamlit as st

from vizformer.analysis import kinds, site_name
from vizformer.analysis.causes.ablation import Part
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.tools.what_if import computations, other_texts
from vizformer.web.tools.what_if.place import Place
from vizformer.web.widgets import in_python, lesson, model_suggestions, telling, watched_work
from vizformer.web.words import ablated_parts, labels
from vizformer.web.words.i18n import _, show_text

MOST = 8  # parts that a link carries
NAME, NOTHING = "whatif.off", "none"
RUNS = 6  # of the model, that two answers and two texts take, about


def choose_parts(subject: Subject) -> tuple[Part, ...]:
    """The box of parts; of a model that the reader opened it begins with the head of the page Attention."""
    known = computations.parts(subject)
    chosen = ablated_parts.read(lesson.value(NAME, ""), known)
    answers = subject.config.architecture == "encoder-only" or model_suggestions.writes(subject.model)
    if answers and not lesson.value(NAME, "") and watched_work.cost(subject, RUNS) < watched_work.AT_ONCE:
        kind = kinds(subject.trace)[0]
        place = telling.place_elsewhere(subject, kind)
        chosen = () if place is None else (Part(site_name(kind, place[0]), place[1]),)
    key = "what_if.off"
    state.show(key, list(chosen))
    names = {part: ablated_parts.name(part) for part in known}  # made now: the widget asks outside of a run too
    st.multiselect(
        _("Switch off"),
        known,
        format_func=names.__getitem__,
        max_selections=MOST,
        placeholder=_("Choose heads or sublayers"),
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
    show_text("The distribution has moved by {value} nats (KL).", value=matrix.number(found.divergence))
    if subject.config.architecture != "encoder-only" and model_cache.predicts(subject.model):
        write_anew(subject, chosen, place.instead)
    in_python.show(snippet(subject, chosen, place.instead))


def write_anew(subject: Subject, chosen: tuple[Part, ...], instead: computations.Instead) -> None:
    """What the model writes with these parts and without them."""
    whole, less = (computations.written(subject.unedited, parts, instead) for parts in ((), chosen))
    show_text("It writes, as it is: {text}", text=whole.strip())
    show_text("Without these parts: {text}", text=less.strip())


def snippet(subject: Subject, chosen: tuple[Part, ...], instead: computations.Instead) -> list[str]:
    """The forward without the parts, in Python."""
    parts = ", ".join(f"Part({one.sublayer!r}{'' if one.head is None else f', {one.head}'})" for one in chosen)
    imports, lines, given = ["from vizformer.analysis.causes.ablation import Part, without"], list[str](), ""
    if instead != "zero":
        corpus, texts = other_texts.in_python(subject, instead.texts, computations.MEAN_TEXTS)
        imports += [*corpus, "from vizformer.analysis.causes.part_outputs import mean_outputs"]
        lines, given = [f"texts = {texts}", "means = mean_outputs(checkpoint, texts)"], ", means"
    lines += [
        f"other = without(checkpoint, trace, [{parts}]{given})",
        "print((other.logits - trace.logits).abs().max())",
    ]
    return [*in_python.opening(subject, *imports), *lines]


def _take() -> None:
    nothing = NOTHING if state.view().model.is_from_elsewhere else ""
    lesson.change(NAME, ablated_parts.write(st.session_state["what_if.off"]) or nothing, "")


def _percent(probability: float) -> Number:
    return Number(probability, labels.percent(probability))

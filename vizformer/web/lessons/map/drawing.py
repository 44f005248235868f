"""The drawing, in the lesson The map: the whole model as boxes with live shapes, and what the chosen box is."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.model_boxes import Box
from vizformer.components import architecture
from vizformer.config import ModelConfig
from vizformer.figures.tables import Table
from vizformer.web.catalogue import model_cache, model_list, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.map import box_formulas, box_sentences, box_words, computations
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

_DRAWING, _SWITCH = "map.drawing", "map.switch"
MOST_TENSORS = 16  # of a box that are named; a mixture of experts can have hundreds


def drawing(subject: Subject) -> None:
    switch()  # another model: the whole page runs again
    boxes(subject)


@guarded()
def switch() -> None:
    """The three architectures, each as the first model on the shelf that has it."""
    names = {
        "encoder-decoder": _("Encoder-decoder"),
        "decoder-only": _("Decoder-only"),
        "encoder-only": _("Encoder-only"),
    }
    first: dict[str, ModelRef] = {}
    for model in model_list.that_open():
        first.setdefault(model_cache.options(model).architecture, model)
    now = state.view().model
    own = model_cache.options(now).architecture
    first[own] = now
    if st.session_state.get(_SWITCH) != own:
        st.session_state[_SWITCH] = own
    st.segmented_control(
        _("Architecture"),
        [name for name in names if name in first],
        required=True,
        key=_SWITCH,
        format_func=lambda name: f"{names[name]} · {sources.title(first[name])}",
        on_change=_take,
        args=(first,),
    )


def _take(first: dict[str, ModelRef]) -> None:
    if (chosen := st.session_state[_SWITCH]) in first:
        state.update(model=first[chosen], edits="")


@laboratory
def boxes(subject: Subject) -> None:
    """The drawing, and beside it what the chosen box is."""
    lesson.ask(share_question(subject), folded=True)  # first: the boxes below give it away
    config = subject.config
    n, target = computations.lengths(subject)
    found = {box.key: box for box in computations.boxes(subject.model, n, target)}
    headless = not any(box.section == "prediction" for box in found.values())
    default = next(box.key for box in found.values() if box.kind == "attention")
    now = lesson.value("map.box", default, found.keys())
    total = sum(box.parameters for box in found.values())
    boxes, texts = box_words.columns(list(found.values()), config), words(architecture.ENGLISH)
    left, right = st.columns([3, 2], gap="large")
    with left:
        chosen = architecture.mount(
            boxes,
            selected=now,
            words=texts,
            key=_DRAWING,
        )
        take_away(
            Picture(
                "model",
                caption(),
                lambda: figures.model_drawing(
                    boxes, {box.key: box.parameters for box in found.values()}, parameters_title=_("parameters")
                ),
                page=lambda: architecture.to_html(boxes, selected=now, words=texts),
                told=lambda: _told(list(found.values()), config),
            ),
            key=_DRAWING,
        )
        if target:
            st.caption(
                _(
                    "For your sentence: {read} read, {written} written so far. All boxes together: "
                    "{total:,} parameters.",
                    read=counts.tokens(n),
                    written=target,
                    total=total,
                )
            )
        else:
            st.caption(
                _(
                    "For your sentence: {tokens}. All boxes together: {total:,} parameters.",
                    tokens=counts.tokens(n),
                    total=total,
                )
            )
        if headless:
            st.caption(_("It ends with vectors: this model's files hold no head that predicts tokens."))
    if chosen is not None and chosen != now:
        lesson.change("map.box", chosen, default)
        now = chosen
    with right:
        detail(subject, found[now], total)


def _told(boxes: Sequence[Box], config: ModelConfig) -> tuple[str, Table]:
    """The box with most parameters in a sentence, and all boxes as a table."""
    largest = max(boxes, key=lambda box: box.parameters)
    said = _(
        "Boxes: {n}. Most parameters: {box}, {count:,}.",
        n=len(boxes),
        box=box_words.title(largest, config),
        count=largest.parameters,
    )
    rows = [
        (
            index,
            box_words.title(box, config),
            ", ".join(box_words.shape(one) for one in box.inputs),
            box_words.shape(box.output),
            box.parameters,
        )
        for index, box in enumerate(boxes)
    ]
    return said, Table((_("number"), _("box"), _("goes in"), _("comes out"), _("parameters")), rows, len(rows))


def share_question(subject: Subject) -> lesson.Choice:
    """Where are most of the parameters?"""
    found = computations.boxes(subject.model, *computations.lengths(subject))
    total = sum(box.parameters for box in found)
    kinds = {
        _("the tables of tokens and positions"): ("tokens", "embedding", "positions", "segments", "unembedding"),
        _("the attentions of all layers"): ("attention", "cross"),
        _("the feed-forward networks of all layers"): ("feedforward",),
        _("the norms"): ("norm", "add_norm"),
    }
    counts = {name: sum(box.parameters for box in found if box.kind in of) for name, of in kinds.items()}
    choices = list(counts)
    listed = _("; ").join(f"{name}: {count:,}" for name, count in counts.items())
    return lesson.Choice(
        "map",
        "share",
        _("This model has {total:,} parameters. Which of these holds most of them?", total=total),
        choices,
        choices.index(max(choices, key=counts.__getitem__)),
        _(
            "Counted over all layers: {counts}. Click the boxes to see where they come from. In large models the layers "
            "hold nearly everything; a small model with a table for thousands of tokens is another matter.",
            counts=listed,
        ),
        about=f"{subject.model}",
    )


def detail(subject: Subject, box: Box, total: int) -> None:
    """A box in words and numbers, and the lessons that take it apart."""
    config = subject.config
    st.subheader(box_words.title(box, config))
    st.markdown(box_sentences.about(box, config))
    if box.kind == "tokens":
        shown = subject.trace.tokens[box.section]
        st.text("  ".join(labels.numbered(shown)))
    st.markdown(shapes(box))
    if formula := box_formulas.formula(box, config):
        st.latex(formula)
    st.markdown(box_words.parameters(box, total))
    if box.tensors:
        named = [f"`{name} {box_words.shape(shape)}`" for name, shape in box.tensors[:MOST_TENSORS]]
        if len(box.tensors) > MOST_TENSORS:
            named.append(_("and {n} more", n=len(box.tensors) - MOST_TENSORS))
        st.markdown(" · ".join(named))
        st.caption(_("The same in PyTorch"))
        sizes = [tuple(shape) for __, shape in box.tensors]
        code = f"sum(math.prod(shape) for shape in {sizes})"
        if len(sizes) > MOST_TENSORS:  # experts: many of a few shapes
            code = f"sum(times * math.prod(shape) for shape, times in {dict(Counter(sizes))}.items())"
        st.code(lesson.pasteable(code, {}), language="python", wrap_lines=True)
    with st.container(horizontal=True):
        for entry in box_words.leads_to(box, config):
            st.page_link(entry.file, label=_("Take it apart: {page} →", page=translate(entry.title)))


def shapes(box: Box) -> str:
    """What goes in and what comes out; Markdown."""
    out = box_words.shape(box.output)
    if not box.inputs:
        return _("Out: **{shape}**", shape=out)
    into = _(" and ").join(box_words.shape(dims) for dims in box.inputs)
    if box.inside:
        return _("Works on **{shape}**", shape=out)
    return _("In: **{into}** · Out: **{out}**", into=into, out=out)

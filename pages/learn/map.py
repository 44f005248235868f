"""Lesson 1: the whole model as a drawing with live shapes, and why it is not an RNN."""

from typing import TYPE_CHECKING

import streamlit as st

from vizformer import figures
from vizformer.components import architecture
from vizformer.figures import reach as reach_figures
from vizformer.messages import N_
from vizformer.web.catalogue import model_cache, shelf, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.map import box_words, computed, gru, layer_types
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lesson import Part
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.analysis.architecture import Box
    from vizformer.analysis.layer_types import LayerType

_DRAWING, _SWITCH = "map.drawing", "map.switch"
WIDTHS_K, WIDTHS_R = range(2, 10), range(2, 33)


def page() -> None:
    lesson.show(
        sitemap.MAP,
        [
            Part("drawing", N_("The drawing"), drawing, wide=True),
            Part("rnn", N_("Why not an RNN"), rnn),
            Part("cost", N_("What a layer costs"), cost),
            Part("gru", N_("A GRU beside it"), gru.gru),
        ],
        terms=(
            "architecture",
            "encoder",
            "decoder",
            "layer",
            "parameter",
            "model-width",
            "residual-stream",
            "feed-forward",
            "self-attention",
            "rnn",
            "gru",
            "path-length",
            "dilated-convolution",
            "vanishing-gradient",
            "jacobian",
        ),
    )


# --- the drawing ------------------------------------------------------------------------------------------------------


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
    for model in shelf.that_open():
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


@st.fragment
@guarded()
def boxes(subject: Subject) -> None:
    """The drawing, and beside it what the chosen box is."""
    config = model_cache.options(subject.model)
    n, target = computed.lengths(subject)
    found = {box.key: box for box in computed.boxes(subject.model, n, target)}
    headless = not any(box.place == "prediction" for box in found.values())
    default = next(box.key for box in found.values() if box.kind == "attention")
    now = lesson.value("map.box", default, found.keys())
    total = sum(box.parameters for box in found.values())
    left, right = st.columns([3, 2], gap="large")
    with left:
        chosen = architecture.mount(
            box_words.columns(list(found.values()), config),
            selected=now,
            words=words(architecture.ENGLISH),
            key=_DRAWING,
        )
        if target:
            st.caption(
                _(
                    "For your sentence: n = {n} tokens read, {target} written so far. All boxes together: "
                    "{total:,} parameters.",
                    n=n,
                    target=target,
                    total=total,
                )
            )
        else:
            st.caption(
                _("For your sentence: n = {n} tokens. All boxes together: {total:,} parameters.", n=n, total=total)
            )
        if headless:
            st.caption(_("It ends with vectors: this model's files hold no head that predicts tokens."))
    if chosen is not None and chosen != now:
        lesson.turn("map.box", chosen, default)
        now = chosen
    with right:
        detail(subject, found[now], total)


def detail(subject: Subject, box: "Box", total: int) -> None:
    """A box in words and numbers, and the lessons that take it apart."""
    config = model_cache.options(subject.model)
    st.subheader(box_words.title(box, config))
    st.markdown(box_words.about(box, config))
    if box.kind == "tokens":
        shown = subject.trace.tokens[box.place]
        st.text("  ".join(labels.numbered(shown)))
    st.markdown(shapes(box))
    if formula := box_words.formula(box, config):
        st.latex(formula)
    st.markdown(box_words.parameters(box, total))
    if box.tensors:
        st.markdown(" · ".join(f"`{name} {box_words.shape(shape)}`" for name, shape in box.tensors))
        st.caption(_("The same in PyTorch"))
        sizes = [tuple(shape) for __, shape in box.tensors]
        st.code(lesson.pasteable(f"sum(math.prod(shape) for shape in {sizes})", {}), language="python", wrap_lines=True)
    with st.container(horizontal=True):
        for entry in box_words.leads_to(box, config):
            st.page_link(entry.file, label=_("Take it apart: {page} →", page=translate(entry.title)))


def shapes(box: "Box") -> str:
    """What goes in and what comes out; Markdown."""
    out = box_words.shape(box.output)
    if not box.inputs:
        return _("Out: **{shape}**", shape=out)
    into = _(" and ").join(box_words.shape(dims) for dims in box.inputs)
    if box.inside:
        return _("Works on **{shape}**", shape=out)
    return _("In: **{into}** · Out: **{out}**", into=into, out=out)


# --- why not an RNN ---------------------------------------------------------------------------------------------------


def widths() -> tuple[int, int]:
    """The sliders of kernel and window."""
    left, right = st.columns(2)
    k = left.slider(_("Kernel width k"), min(WIDTHS_K), max(WIDTHS_K), **lesson.dial("map.k", 3, WIDTHS_K))
    r = right.slider(_("Window r"), min(WIDTHS_R), max(WIDTHS_R), **lesson.dial("map.r", 8, WIDTHS_R))
    return k, r


@st.fragment
@guarded()
def rnn(subject: Subject) -> None:
    """How many steps lie between the first token and the last, in five kinds of layers."""
    tokens = labels.texts(computed.reading(subject))
    n = len(tokens)
    ask_path(subject, n)  # first: the table below gives it away
    titles = layer_types.names()
    kind: LayerType = st.segmented_control(
        _("Layer"),
        computed.KINDS,
        format_func=titles.__getitem__,
        required=True,
        **lesson.dial("map.kind", "recurrent", computed.KINDS),
    )
    k, r = widths()
    shown = tokens[: computed.DRAWN]
    path = computed.path(kind, len(shown), k, r)
    st.plotly_chart(
        figures.path_picture(
            shown,
            path.levels,
            path.edges,
            path.way,
            states=kind == "recurrent",
            title=_("The way from the first token to the last output"),
            words=words(reach_figures.ENGLISH),
        ),
        key="map.path",
        config={"displayModeBar": False},
    )
    if n > len(shown):
        st.caption(
            _(
                "The picture shows the first {shown} of {n} tokens; the numbers are for all of them.",
                shown=len(shown),
                n=n,
            )
        )
    st.markdown(layer_types.path_table(n, k, r))
    layer_types.path_formula(kind, n, k, r)


def ask_path(subject: Subject, n: int) -> None:
    if n < 2:  # nothing to be far from
        return
    choices = [
        _("recurrent {cells}, self-attention {layers}", cells=cells, layers=layers)
        for cells, layers in ((1, 1), (n, n), (n, 1), (n * n, n))
    ]
    lesson.ask(
        "map",
        "path",
        _(
            "Your sentence has {n} tokens. Through how many recurrent cells must what the model knows of the first token "
            "pass to reach the last output, and through how many layers of self-attention at the least?",
            n=n,
        ),
        choices,
        2,
        _(
            "The cell works once at each of the {n} positions, one after the other. In self-attention the last query "
            "multiplies with the first key directly, however far it is: one layer.",
            n=n,
        ),
        about=f"{subject.model} {subject.text}",
    )


# --- what a layer costs -----------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def cost(subject: Subject) -> None:
    """The multiplications of a layer against the number of tokens."""
    n, d = computed.lengths(subject)[0], model_cache.options(subject.model).d_model
    ask_cost(subject, n, d)  # first: the table below gives it away
    ways = {"table": _("the paper's table"), "products": _("every matrix product")}
    counted = st.segmented_control(
        _("Count"),
        list(ways),
        format_func=ways.__getitem__,
        required=True,
        **lesson.dial("map.count", "table", tuple(ways)),
    )
    k, r = widths()
    full = counted == "products"
    grid, curves = computed.cost_curves(d, k, r, full)
    titles = layer_types.names()
    st.plotly_chart(
        figures.cost_curves(
            grid,
            {titles[kind]: curve for kind, curve in curves.items()},
            here=n,
            crossing=(d, computed.cost("attention", d, d, k, r, full)),
            crossing_name=_("n = d = {d}", d=d),
            title=_("Multiplications of a layer that is d = {d} wide", d=d),
            words=words(reach_figures.ENGLISH),
        ),
        key="map.costs",
        config={"displayModeBar": False},
    )
    st.markdown(layer_types.cost_table(n, d, k, r, full))
    layer_types.cost_formula(n, d, full)


def ask_cost(subject: Subject, n: int, d: int) -> None:
    own = computed.cost("attention", n, d, 3, 8, full=False)  # (neither depends on kernel or window)
    other = computed.cost("recurrent", n, d, 3, 8, full=False)
    choices = [_("the self-attention layer"), _("the recurrent layer"), _("neither: both need the same")]
    lesson.ask(
        "map",
        "cost",
        _(
            "Your sentence has n = {n} tokens, the model is d = {d} wide. By the paper's table, which layer needs fewer "
            "multiplications?",
            n=n,
            d=d,
        ),
        choices,
        0 if own < other else 1 if own > other else 2,
        _(
            "Self-attention: n²d = {own:,}. Recurrent: nd² = {other:,}. They are equal where n = d, here at {d} tokens.",
            own=own,
            other=other,
            d=d,
        ),
        about=f"{subject.model} {subject.text}",
    )


page()

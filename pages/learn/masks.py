"""Masks: who may look at whom; painted by hand, written in four ways, got wrong in four ways, and leakage measured."""

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from vizformer.components import mask, matrix
from vizformer.messages import N_, ranges
from vizformer.web.catalogue import model_cache, shelf, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.masks import computed as masking
from vizformer.web.lessons.masks import leakage, mask_conventions, wording
from vizformer.web.lessons.masks.computed import Attention, Pattern
from vizformer.web.link import mask_bitmap, state
from vizformer.web.widgets import lesson, proof_badge, row_names
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _, translate

if TYPE_CHECKING:
    from vizformer.analysis.masked import Masked
    from vizformer.explain.step import Proof

_PANELS, _PAINT, _OTHER = "masks.panels", "masks.paint", "masks.other"


def page() -> None:
    lesson.show(
        sitemap.MASKS,
        [
            lesson.Part("kinds", N_("Six masks"), kinds, wide=True),
            lesson.Part("paint", N_("Paint one"), paint, wide=True),
            lesson.Part("conventions", N_("Four notations"), conventions, wide=True),
            lesson.Part("mistakes", N_("Four mistakes"), wrong, wide=True),
            lesson.Part("leak", N_("Leakage"), leak, wide=True),
        ],
        terms=(
            "mask",
            "additive-mask",
            "causal-mask",
            "padding",
            "cross-attention",
            "prefix-mask",
            "sliding-window",
            "bigbird",
            "softmax",
            "leakage",
        ),
    )


def place(subject: Subject, attention: Attention, *extra: float) -> list[st.delta_generator.DeltaGenerator]:
    """Boxes for the layer and the head, and further columns beside them."""
    from vizformer.analysis import n_layers

    config = model_cache.checkpoint(subject.model).model.config
    masking.place(subject, attention)
    layer, head, *others = st.columns([1, 1, *extra], vertical_alignment="bottom")
    layer.selectbox(_("Layer"), range(n_layers(subject.trace, attention)), **state.bind("layer"))
    head.selectbox(_("Head"), range(config.n_heads), **state.bind("head"))
    return others


# --- six masks --------------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def kinds(subject: Subject) -> None:
    """A mask of a kind over a head of the model: M, the scores and the weights side by side."""
    kind = st.segmented_control(
        _("Mask"),
        masking.KINDS,
        format_func=wording.kind_name,
        required=True,
        label_visibility="collapsed",
        **lesson.dial("masks.kind", "causal", masking.KINDS),
    )
    attention = masking.looks(subject, kind)
    if attention is None:
        other_model()
        return
    st.caption(_("On: {attention}", attention=labels.kind_label(attention)))
    place(subject, attention, 3)
    view, config = state.view(), model_cache.options(subject.model)
    window = config.sliding_window if attention == "decoder" and view.layer in config.windowed_layers else None
    own_mask(subject, attention)
    if kind in ("padding", "cross"):
        found = batch(subject, kind, attention)
        pattern = Pattern(kind)
    else:
        pattern = settings(kind, attention, len(masking.tokens(subject, attention)[0]), window)
        found = masking.laid(subject, attention, view.layer, view.head, pattern)
    masked = found.masked
    mask.mount(
        mask.MaskView(
            named(subject, attention, found),
            labels.texts(found.keys),
            masked.reasons,
            masked.scores,
            masked.weights,
            found.kept,
            found.unused,
        ),
        words=words(mask.ENGLISH),
        key=_PANELS,
    )
    only_first(max(masked.reasons.shape))
    proof(masked.proof, own=masked.own)
    if kind in ("window", "bigbird"):
        visible = int((masked.reasons == 0).sum())
        st.caption(
            _(
                "{visible} of {all} cells are open ({percent}): their number grows with n, that of all cells with n².",
                visible=visible,
                all=masked.reasons.size,
                percent=f"{visible / masked.reasons.size:.0%}",
            )
        )
    padded = kind == "padding" and attention == "decoder"  # on top of the model's own mask
    lines = wording.code(pattern, pattern.causal or padded, window if padded else None)
    is_padding = (masked.reasons == 1).any(axis=0)  # (`vizformer.model.masks.Reason`)
    given = wording.given(pattern, masked.scores, is_padding.tolist())
    left, right = st.columns(2, gap="large")
    with left:
        written = lines if kind == "causal" else ""
        lesson.formula(wording.formula(kind), live=wording.live_row(masked, found.unused), code=written, given=given)
    with right:
        if kind == "causal":
            count_question(subject, len(found.queries))
        else:
            st.caption(_("The same in PyTorch"))
            st.code(lesson.pasteable(lines, given), language="python", wrap_lines=True)


def named(subject: Subject, attention: Attention, found: masking.Laid) -> list[str]:
    """The labels of the rows: with what they choose, where they are those of the typed sentence."""
    own = subject.trace.tokens[labels.stacks(attention)[0]]
    given = row_names.queries(subject, attention)
    same = found.queries[: len(own)] == own  # (a batch may be longer, or show its other sentence)
    return given + labels.texts(found.queries[len(own) :]) if same else labels.texts(found.queries)


def own_mask(subject: Subject, attention: Attention) -> None:
    """Names the mask of the layer, where the model's layers have windows."""
    n = len(masking.tokens(subject, attention)[0])
    if said := wording.own_mask(model_cache.options(subject.model), attention, state.view().layer, n):
        st.caption(said)


def settings(kind: masking.MaskKind, attention: Attention, n: int, window: int | None) -> Pattern:
    """The sliders of a kind of mask; the widest window is 8 keys, or the model's own where that is wider."""
    if kind == "causal":
        return Pattern(kind)
    if kind == "prefix":
        if n < 2:
            return Pattern(kind, prefix=1)
        length = st.slider(_("Prefix length"), 0, n, **lesson.dial("masks.prefix", min(2, n), range(n + 1)))
        return Pattern(kind, prefix=length)
    first, second, third, fourth, last = st.columns(5, vertical_alignment="bottom")
    widest = max(8, min(window or 0, n) - 1)
    reach = first.slider(_("Window: keys on each side"), 0, widest, **lesson.dial("masks.reach", 1, range(widest + 1)))
    causal = last.toggle(_("And causal"), **lesson.dial("masks.causal", attention == "decoder"))
    if kind == "window":
        return Pattern(kind, reach=reach, causal=causal)
    n_global = second.slider(_("Global tokens"), 0, 4, **lesson.dial("masks.global", 1, range(5)))
    n_random = third.slider(_("Random keys"), 0, 4, **lesson.dial("masks.random", 1, range(5)))
    seed = fourth.slider(_("Seed"), 0, 9, **lesson.dial("masks.seed", 0, range(10)))
    return Pattern(kind, reach=reach, n_global=n_global, n_random=n_random, seed=seed, causal=causal)


def batch(subject: Subject, kind: masking.MaskKind, attention: Attention) -> masking.Laid:
    """The second sentence, the batch as a table, and which of its two sentences is shown."""
    chinese = any("\u4e00" <= character <= "\u9fff" for character in subject.text)
    key, example = _OTHER, "今天天气很好，我们去公园。" if chinese else "The cat sat on the chair and looked at me."
    if not model_cache.reads(subject.model, example):  # token ids are typed: those of the sentence twice are longer
        key, example = f"{_OTHER}.ids", f"{subject.text} {subject.text}"
    st.session_state.setdefault(key, example)
    typed, shown = st.columns([3, 2], vertical_alignment="bottom")
    other = typed.text_input(_("A second sentence, in the same batch"), key=key, persist_state="session")
    both = masking.batch(subject, other, False)
    stack = labels.stacks(attention)[1]
    default = "second" if both.padding[stack][1].any() else "typed"
    names = {"typed": _("the typed one"), "second": _("the second one")}
    choice = shown.segmented_control(
        _("Show"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.dial("masks.sentence", default, names),
    )
    rows = [labels.texts(both.tokens[stack]), labels.texts(both.other[stack])]
    st.html(matrix.style())
    title = _("The batch: two sentences, {n} places each", n=len(rows[0]))
    st.html(wording.table(title, [str(i) for i in range(len(rows[0]))], ["0", "1"], rows, both.padding[stack]))
    run = masking.batch(subject, other, choice == "second")
    st.caption(
        _(
            "Its outputs in this batch and alone differ by at most {difference}: padding changes nothing where the mask "
            "blocks it.",
            difference=f"{run.difference:.1g}",
        )
    )
    view = state.view()
    return masking.laid_batch(subject, other, choice == "second", attention, view.layer, view.head)


def other_model() -> None:
    """Says what cross-attention needs, and offers it."""
    st.info(_("This model has one stack: nothing to look across to. Cross-attention is in encoder-decoder models."))
    for model in shelf.that_open():
        if model_cache.reads_target(model) and st.button(
            _("Use the model {name}", name=sources.title(model)), key=f"masks.use.{model}"
        ):
            state.update(model=model)
            st.rerun()


def proof(found: "Proof", *, own: bool) -> None:
    """Whether an independent computation gives the same, and whether the model itself uses the mask."""
    values = {"difference": f"{found.difference:.1g}", "anchor": translate(found.anchor)}
    if not found.holds:
        said = _("Differs from the model: {anchor} is off by up to {difference}.", **values)
    elif own:
        said = _(
            "The model itself uses this mask here. Agrees with it to {difference}: compared with {anchor}.", **values
        )
    else:
        said = _(
            "The scores are the model's, the mask is laid over them here; it was not trained with it. Agrees with "
            "PyTorch to {difference}: compared with {anchor}.",
            **values,
        )
    (st.success if found.holds else st.error)(said + proof_badge.precision(found))


def only_first(n: int) -> None:
    if n > mask.LARGEST:
        st.caption(
            _("Drawn are the first {shown} of {n} positions; everything is computed with all.", shown=mask.LARGEST, n=n)
        )


def count_question(subject: Subject, n: int) -> None:
    right = n * (n - 1) // 2
    choices = sorted({right, n * (n + 1) // 2, n * n, max(n - 1, 0)})
    lesson.ask(
        "masks",
        "count",
        _("How many cells of its {n} × {n} map does the causal mask of your {n} tokens block?", n=n),
        [str(choice) for choice in choices],
        choices.index(right),
        _(
            "Row i blocks the n − 1 − i keys after it: {first} + … + 1 + 0 = n(n − 1)/2 = {right}. The diagonal stays "
            "open: every token sees itself.",
            first=n - 1,
            right=right,
        ),
        about=f"{subject.model} {subject.text} {subject.target}",
    )


# --- painted by hand --------------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def paint(subject: Subject) -> None:
    """Cells blocked and opened by hand; the model runs with that mask."""
    from vizformer.analysis import n_layers

    have = masking.attentions(subject)
    default = "decoder" if "decoder" in have else "encoder"
    attention: Attention = st.segmented_control(
        _("Attention"),
        have,
        format_func=labels.kind_label,
        required=True,
        label_visibility="collapsed",
        **lesson.dial("masks.on", default, have),
    )
    (buttons,) = place(subject, attention, 3)
    own_mask(subject, attention)
    layers = masking.alike(subject, attention, state.view().layer)
    if len(layers) < n_layers(subject.trace, attention):
        st.caption(
            _(
                "What you paint holds in the layers that have this mask ({layers}); the others keep theirs.",
                layers=ranges(layers),
            )
        )
    queries, keys = masking.tokens(subject, attention)
    rows, columns = min(len(queries), mask.LARGEST), min(len(keys), mask.LARGEST)
    kept = mask_bitmap.painted(rows, columns)
    flips = mask.peek(key=f"{_PAINT}.{attention}", selected=kept)
    flips = tuple((q, k) for q, k in flips if q < rows and k < columns)
    if flips != kept:
        mask_bitmap.keep(flips)
    view = state.view()
    masked, own = masking.painted_head(subject, attention, flips, view.layer, view.head)
    with buttons.container(horizontal=True):
        st.button(
            _("As the model has it"), on_click=mask_bitmap.keep, args=((),), disabled=not flips, key="masks.reset"
        )
        first = own[:rows, :columns] > 0
        for name, label, wanted in (
            ("open", _("Open everything"), np.zeros_like(first)),
            ("causal", _("Block the future"), ~np.tri(rows, columns, dtype=bool)),
        ):
            cells = tuple((int(q), int(k)) for q, k in np.argwhere(first != wanted))
            if cells:  # else it is the model's own mask
                st.button(label, on_click=mask_bitmap.keep, args=(cells,), key=f"masks.{name}")
    left, right = st.columns([3, 2], gap="large")
    with left:
        mask.mount(
            mask.MaskView(
                row_names.queries(subject, attention),
                labels.texts(keys),
                masked.reasons,
                weights=masked.weights,
                own=own,
            ),
            paintable=True,
            selected=flips,
            words=words(mask.ENGLISH),
            key=f"{_PAINT}.{attention}",
        )
        only_first(max(masked.reasons.shape))
        blind(masked, row_names.numbered(subject, attention))
        proof(masked.proof, own=True)
    with right:
        expected(subject, attention, flips, layers)


def blind(masked: "Masked", names: list[str]) -> None:
    """Says what becomes of rows in which everything is blocked."""
    rows = [names[i] for i in np.flatnonzero((masked.reasons > 0).all(axis=1))]
    if rows:
        st.warning(_("Everything is blocked for some queries:") + " " + mask_conventions.listed(rows))
        st.caption(
            _(
                "Their weights are 0, and so is what comes back: softmax of nothing but −∞ is 0/0, and the kernel "
                "gives 0 instead of NaN. The residual stream passes such a position by, so the model still predicts."
            )
        )


def expected(subject: Subject, attention: Attention, flips: mask_bitmap.Cells, layers: tuple[int, ...]) -> None:
    """What is predicted at every position, before and after painting in these layers."""
    if not model_cache.predicts(subject.model):
        st.caption(_("These weights came without a head that predicts tokens."))
        return
    stack = "decoder" if "decoder" in subject.trace.tokens else "encoder"
    names = labels.numbered(subject.trace.tokens[stack])[: mask.LARGEST]
    rows = masking.expectations(subject, attention, flips, layers)[: mask.LARGEST]
    cells = [
        [
            f"{row.before.text} {labels.percent(row.before_probability)}",
            f"{row.after.text} {labels.percent(row.after_probability)}",
            "0" if row.moved == 0 else f"{row.moved:.2g}",
        ]
        for row in rows
    ]
    st.html(matrix.style())
    st.html(
        wording.table(
            _("The most probable token at each position") if stack == "encoder" else _("The most probable next token"),
            [_("before"), _("after"), _("largest Δ")],
            names,
            cells,
        )
    )
    st.caption(_("Largest Δ: by how much a logit has moved at most; 0 is exactly 0."))


# --- notations and mistakes -------------------------------------------------------------------------------------------


@st.fragment
@guarded()
def conventions(subject: Subject) -> None:
    """The causal mask of the sentence in four notations, and what mixing them up does."""
    mask_conventions.four_notations(subject, lambda: place(subject, masking.looks(subject, "causal") or "encoder", 2))


@st.fragment
@guarded()
def wrong(subject: Subject) -> None:
    """Four ways to get it wrong, with the numbers of a head."""
    mask_conventions.four_mistakes(subject, lambda: place(subject, masking.looks(subject, "causal") or "encoder", 2))


@st.fragment
@guarded()
def leak(subject: Subject) -> None:
    """One token replaced: which outputs move, and layer by layer how the change spreads."""
    leakage.leak(subject)


page()

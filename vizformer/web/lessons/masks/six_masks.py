"""A laboratory of the lesson Masks: six kinds of mask, each laid over a head."""

import streamlit as st

from vizformer.analysis import Kind
from vizformer.components import mask, matrix
from vizformer.model.mask_recipe import KINDS, MaskKind, MaskRecipe
from vizformer.web.catalogue import model_cache, model_list, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import boxes, computations, snippets, wording
from vizformer.web.lessons.masks.which_attention import shown_on, tokens
from vizformer.web.link import state
from vizformer.web.widgets import head_downloads, lesson, row_names
from vizformer.web.widgets.downloads import take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.other_sentence import other_sentence
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

_PANELS = "masks.panels"


@laboratory
def six_masks(subject: Subject) -> None:
    """A mask of a kind over a head of the model: M, the scores and the weights side by side."""
    kind = st.segmented_control(
        _("Mask"),
        KINDS,
        format_func=wording.kind_name,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("masks.kind", "causal", KINDS),
    )
    attention = shown_on(subject, kind)
    if attention is None:
        _other_model()
        return
    st.caption(_("On: {attention}", attention=labels.kind_label(attention)))
    boxes.place(subject, attention, 3)
    view, config = state.view(), subject.config
    window = config.sliding_window if attention == "decoder" and view.layer in config.windowed_layers else None
    boxes.own_mask(subject, attention)
    if kind in ("padding", "cross"):
        found = _batch(subject, attention)
        recipe = MaskRecipe(kind)
    else:
        recipe = _settings(kind, attention, len(tokens(subject, attention)[0]), window)
        found = computations.laid(subject, attention, view.layer, view.head, recipe)
    masked = found.masked
    drawn, texts = (
        mask.MaskView(
            _named(subject, attention, found),
            labels.texts(found.keys),
            masked.reasons,
            masked.scores,
            masked.weights,
            found.kept,
            found.unused,
        ),
        words(mask.ENGLISH),
    )
    mask.mount(drawn, words=texts, key=_PANELS)
    told = " · ".join([head_downloads.head_name(attention, view.layer, view.head), wording.kind_name(kind)])
    take_away(*head_downloads.mask(drawn, told, texts), key=_PANELS)
    boxes.only_first(max(masked.reasons.shape))
    boxes.proof(masked.proof, own=masked.own)
    if kind in ("window", "bigbird"):
        st.caption(
            _(
                "{visible} of {all} cells are open ({percent}): their number grows with n, that of all cells with n².",
                visible=masked.n_open,
                all=masked.reasons.size,
                percent=f"{masked.n_open / masked.reasons.size:.0%}",
            )
        )
    padded = kind == "padding" and attention == "decoder"  # on top of the model's own mask
    lines = snippets.code(recipe, recipe.causal or padded, window if padded else None)
    given = snippets.given(recipe, masked.scores, masked.padding_keys)
    left, right = st.columns(2, gap="large")
    with left:
        written = lines if kind == "causal" else ""
        lesson.formula(wording.formula(kind), live=wording.live_row(masked, found.unused), code=written, given=given)
    with right:
        if kind == "causal":
            lesson.ask(count_question(subject, len(found.queries)))
        else:
            st.caption(_("The same in PyTorch"))
            st.code(lesson.pasteable(lines, given), language="python", wrap_lines=True)


def _named(subject: Subject, attention: Kind, found: computations.Laid) -> list[str]:
    """The labels of the rows: with what they choose, where they are those of the typed sentence."""
    own = subject.trace.tokens[labels.stacks(attention)[0]]
    given = row_names.queries(subject, attention)
    same = found.queries[: len(own)] == own  # (a batch may be longer, or show its other sentence)
    return given + labels.texts(found.queries[len(own) :]) if same else labels.texts(found.queries)


def _settings(kind: MaskKind, attention: Kind, n: int, window: int | None) -> MaskRecipe:
    """The sliders of a kind of mask; the widest window is 8 keys, or the model's own where that is wider."""
    if kind == "causal":
        return MaskRecipe(kind)
    if kind == "prefix":
        if n < 2:
            return MaskRecipe(kind, prefix=1)
        length = st.slider(_("Prefix length"), 0, n, **lesson.setting("masks.prefix", min(2, n), range(n + 1)))
        return MaskRecipe(kind, prefix=length)
    first, second, third, fourth, last = st.columns(5, vertical_alignment="bottom")
    widest = max(8, min(window or 0, n) - 1)
    reach = first.slider(
        _("Window: keys on each side"), 0, widest, **lesson.setting("masks.reach", 1, range(widest + 1))
    )
    causal = last.toggle(_("And causal"), **lesson.setting("masks.causal", attention == "decoder"))
    if kind == "window":
        return MaskRecipe(kind, reach=reach, causal=causal)
    n_global = second.slider(_("Global tokens"), 0, 4, **lesson.setting("masks.global", 1, range(5)))
    n_random = third.slider(_("Random keys"), 0, 4, **lesson.setting("masks.random", 1, range(5)))
    seed = fourth.slider(_("Seed"), 0, 9, **lesson.setting("masks.seed", 0, range(10)))
    return MaskRecipe(kind, reach=reach, n_global=n_global, n_random=n_random, seed=seed, causal=causal)


def _batch(subject: Subject, attention: Kind) -> computations.Laid:
    """The second sentence, the batch as a table, and which of its two sentences is shown."""
    chinese = any("\u4e00" <= character <= "\u9fff" for character in subject.text)
    example = "今天天气很好，我们去公园。" if chinese else "The cat sat on the chair and looked at me."
    if not model_cache.reads(subject.model, example):  # token ids are typed: those of the sentence twice are longer
        example = f"{subject.text} {subject.text}"
    typed, shown = st.columns([3, 2], vertical_alignment="bottom")
    other = other_sentence(_("A second sentence, in the same batch"), "batch", example, example, on=typed)
    both = computations.batch(subject, other, False)
    stack = labels.stacks(attention)[1]
    default = "second" if both.padding[stack][1].any() else "typed"
    names = {"typed": _("the typed one"), "second": _("the second one")}
    choice = shown.segmented_control(
        _("Show"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("masks.sentence", default, names),
    )
    rows = [labels.texts(both.tokens[stack]), labels.texts(both.other[stack])]
    st.html(matrix.style())
    title = _("The batch: two sentences, {n} places each", n=len(rows[0]))
    st.html(wording.table(title, [str(i) for i in range(len(rows[0]))], ["0", "1"], rows, both.padding[stack]))
    run = computations.batch(subject, other, choice == "second")
    st.caption(
        _(
            "Its outputs in this batch and alone differ by at most {difference}: padding changes nothing where the mask "
            "blocks it.",
            difference=f"{run.difference:.1g}",
        )
    )
    view = state.view()
    return computations.laid_batch(subject, other, choice == "second", attention, view.layer, view.head)


def _other_model() -> None:
    """Says what cross-attention needs, and offers it."""
    st.info(_("This model has one stack: nothing to look across to. Cross-attention is in encoder-decoder models."))
    for model in model_list.that_open():
        if model_cache.reads_target(model) and st.button(
            _("Use the model {name}", name=sources.title(model)), key=f"masks.use.{model}"
        ):
            state.update(model=model)
            st.rerun()


def count_question(subject: Subject, n: int) -> lesson.Choice:
    right = n * (n - 1) // 2
    choices = sorted({right, n * (n + 1) // 2, n * n, max(n - 1, 0)})
    return lesson.Choice(
        "masks",
        "count",
        _(
            "Your text has {tokens}. How many cells of its {n} × {n} map does the causal mask block?",
            tokens=counts.tokens(n),
            n=n,
        ),
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

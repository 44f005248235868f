"""A laboratory of the lesson Masks: one token replaced, and which outputs move."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.masks.leakage import RunMask, Stack
from vizformer.figures import leakage as figure_words
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.masks import computations, wording
from vizformer.web.widgets import chart, lesson, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def leakage(subject: Subject) -> None:
    """One token replaced: which outputs move, and layer by layer how the change spreads."""
    have: tuple[Stack, ...] = ("encoder", "decoder")
    stacks = [name for name in have if name in subject.trace.tokens]
    stack_names = {"encoder": _("Encoder"), "decoder": _("Decoder")}
    choose, run_box = st.columns([2, 3], vertical_alignment="bottom")
    stack = choose.segmented_control(
        _("Stack"),
        stacks,
        format_func=stack_names.__getitem__,
        required=True,
        **lesson.setting("masks.stack", stacks[-1], stacks),
    )
    runs: tuple[RunMask, ...] = ("own", "window", "open") if stack == "decoder" else ("own", "causal", "window")
    run = run_box.segmented_control(
        _("The model runs with"),
        runs,
        format_func=wording.run_name,
        required=True,
        **lesson.setting("masks.run", "own", runs),
    )
    row = subject.trace.tokens[stack]
    names = labels.numbered(row)
    where, what, wide = st.columns([2, 2, 1], vertical_alignment="bottom")
    position = where.selectbox(
        _("Token to replace"),
        range(len(row)),
        format_func=names.__getitem__,
        **lesson.setting("masks.at", len(row) // 2, range(len(row))),
    )
    offered = computations.replacements(subject, stack, position)
    texts = dict(zip([token.id for token in offered], labels.told_apart(offered), strict=True))
    token_id = what.selectbox(
        _("Put in its place"),
        list(texts),
        format_func=texts.__getitem__,
        **lesson.setting("masks.by", next(iter(texts)), texts),
    )
    reach = 1
    if run == "window":
        reach = wide.slider(_("Window: keys on each side"), 0, 8, **lesson.setting("masks.reach", 1, range(9)))
    lesson.ask(leak_question(subject, stacks[-1]))
    found = computations.leakage(subject, stack, position, token_id, run, reach)
    before, after = sum(i < position for i in found.moved), sum(i > position for i in found.moved)
    st.text(
        _(
            "Moved: {moved} of {n} outputs. Before the replaced token: {before}; after it: {after}.",
            moved=len(found.moved),
            n=len(row),
            before=before,
            after=after,
        )
    )
    outputs = row_names.queries(subject, stack)
    st.caption(_("How far each output moves"))
    chart.show(
        figures.change_bars(
            found.outputs.astype(np.float32),
            outputs,
            position,
            words=words(figure_words.ENGLISH),
        ),
        key="masks.bars",
    )
    st.caption(_("How the change spreads, layer by layer (grey: not moved at all)"))
    chart.show(
        figures.change_map(
            found.stream.astype(np.float32),
            outputs,
            words=words(figure_words.ENGLISH),
        ),
        key="masks.spread",
    )


def leak_question(subject: Subject, stack: Stack) -> lesson.Choice:
    n = len(subject.trace.tokens[stack])
    replacement = computations.replacements(subject, stack, n - 1)[0].id
    moved = len(computations.leakage(subject, stack, n - 1, replacement, "own", 1).moved)
    choices = sorted({0, 1, n - 1, n, moved})
    if stack == "decoder":
        question = _(
            "This model's own mask is causal. If only the last token is replaced, how many outputs move ({tokens})?",
            tokens=counts.tokens(n),
        )
        why = _(
            "Output i is made of tokens 0 to i. Only the last position sees the last token: {moved} of {n} outputs "
            "moved, measured just now; the others differ by exactly 0.",
            moved=moved,
            n=n,
        )
    else:
        question = _(
            "This model has no causal mask. If only the last token is replaced, how many outputs move ({tokens})?",
            tokens=counts.tokens(n),
        )
        why = _(
            "Every position sees every other one: {moved} of {n} outputs moved, measured just now. With a causal "
            "mask it would be 1.",
            moved=moved,
            n=n,
        )
    return lesson.Choice(
        "masks",
        "leak",
        question,
        [str(choice) for choice in choices],
        choices.index(moved),
        why,
        about=f"{subject.model} {subject.text} {subject.target}",
    )

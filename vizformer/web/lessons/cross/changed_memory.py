"""The laboratory Without the memory: it is emptied, exchanged or loses a row, and the translation is written anew."""

import numpy as np
import streamlit as st

from vizformer.analysis.decoding.changed_memory import Change, Written
from vizformer.components import table, tokens
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross import computations, links, other_model
from vizformer.web.widgets import lesson, proof_badge, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.widgets.other_sentence import other_sentence
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

EXAMPLES = ("他十分钟前离开了。", "我喜欢喝水。", "The cat sat on the chair.")


@laboratory
def without(subject: Subject) -> None:
    """The translation with another memory beside that with its own."""
    if not other_model.meets(subject, "without"):
        return
    st.html(table.style())
    lesson.ask(empty_question(subject))
    if not subject.config.start_ids:
        st.info(_("Nothing says with which token this model's target begins, so it cannot begin to write."))
        return
    source = subject.trace.tokens["encoder"]
    names: dict[Change, str] = {
        "without": _("Leave out a token"),
        "other": _("Another sentence's memory"),
        "zero": _("All zeros"),
        "own": _("Its own"),
    }
    if len(source) == 1:
        del names["without"]
    first = next(iter(names))
    change: Change = st.segmented_control(
        _("Memory"),
        list(names),
        format_func=names.__getitem__,
        required=True,
        **lesson.setting("cross.change", first, names),
    )
    other, token = "", 0
    if change == "without":
        token = _left_out(subject)
    elif change == "other":
        other = _other(subject)
        if not other:
            return
    before, after = computations.rewritten(subject, "own", "", 0), computations.rewritten(subject, change, other, token)
    left, right = st.columns(2)
    with left.container(border=True):
        _text(_("With its own memory"), before.written)
    with right.container(border=True):
        _text(names[change], after.written)
    _table(subject, before.probabilities, after.probabilities)
    _formula(subject)
    links.to(sitemap.GENERATION)


def _left_out(subject: Subject) -> int:
    source = subject.trace.tokens["encoder"]
    wanted = int(lesson.value("cross.token", 0, range(len(source))))
    found = tokens.mount(
        labels.chips(source),
        selected=wanted,
        label=_("The row that is taken out of the memory"),
        words=words(tokens.ENGLISH),
        key="cross.tokens",
    )
    found = wanted if found is None else found
    lesson.change("cross.token", found, 0)
    return found


def _other(subject: Subject) -> str:
    readable = [text for text in EXAMPLES if text != subject.text and model_cache.reads(subject.model, text)]
    proposed = readable[0] if readable else subject.text
    return other_sentence(_("The sentence whose memory it gets"), "memory", proposed, proposed)


def _text(title: str, found: Written) -> None:
    st.caption(title)
    st.text(found.text or _("(nothing: the end mark comes at once)"))
    if not found.ended:
        st.caption(_("It found no end; the first {n} tokens.", n=len(found.tokens)))


def _table(subject: Subject, before: np.ndarray, after: np.ndarray) -> None:
    names = [choice.next.text for choice in row_names.choices(subject)]
    rows = [
        Row(
            (name, Number(float(a), labels.percent(float(a))), Number(float(b), labels.percent(float(b)))),
            "marked" if float(b) < float(a) / 2 else "",
        )
        for name, a, b in zip(names, before, after, strict=False)
    ]
    columns = (_("token of the translation"), _("its probability with its own memory"), _("with this memory"))
    caption = _("The translation of this page, token by token, each with those before it given")
    st.html(table.to_html(columns, rows, bar=2, caption=caption))


def _formula(subject: Subject) -> None:
    layer = subject.config.n_decoder_layers - 1
    empty, record = computations.empty_memory(subject, layer), subject.trace[f"decoder.{layer}.cross"]
    n, d_head = record.k.shape[1], record.k.shape[2]
    proof_badge.show(
        empty.proof,
        _(
            "With a memory of zeros, layer {layer} adds the same vector to every row: its attention over zeros differs from "
            "the formula by at most {difference}.",
            layer=layer,
            difference=f"{empty.proof.difference:.1g}",
        ),
        edited=bool(subject.edited),
    )
    biased = subject.config.qkv_bias
    lesson.formula(
        r"M = 0 \;\Rightarrow\; K_j = b_K, \quad V_j = b_V, \quad a_{ij} = \tfrac{1}{n}, \quad z_i = b_V"
        if biased
        else r"M = 0 \;\Rightarrow\; K_j = 0, \quad V_j = 0, \quad a_{ij} = \tfrac{1}{n}, \quad z_i = 0",
        live=rf"a_{{ij}} = \tfrac{{1}}{{{n}}} = {empty.weight:.4f}, \qquad "
        rf"(b_V W_O + b_O)_0 = {float(empty.out[0]):.4f}",
        code=f"n, d_head = {n}, {d_head}\n"
        "q, b_K, b_V = torch.randn(4, d_head), torch.randn(d_head), torch.randn(d_head)\n"
        "k, v = torch.zeros(n, d_head) + b_K, torch.zeros(n, d_head) + b_V  # a memory of zeros\n"
        "weights = (q @ k.T / d_head**0.5).softmax(-1)  # 1 / n everywhere\n"
        "z = weights @ v  # b_V in every row, whatever was asked",
    )


def empty_question(subject: Subject) -> lesson.Choice:
    n = len(subject.trace.tokens["encoder"])
    choices = [
        _("all 0: nothing is looked at"),
        _("all 1 ÷ {n}", n=n),
        _("as before: they depend on the queries alone"),
        _("no numbers: softmax has nothing to divide by"),
    ]
    return lesson.Choice(
        "cross",
        "empty",
        _("Every number of the memory is set to 0. What do the weights of cross-attention become?"),
        choices,
        1,
        _(
            "All keys are then equal, so all scores of a row are equal, and softmax divides evenly: 1 ÷ {n} = {share}. "
            "Softmax cannot say “nobody”. What is fetched is the same for every row, and the decoder writes on from what it "
            "has written itself.",
            n=n,
            share=f"{1 / n:.4f}",
        ),
        about=f"{subject.model} {subject.text}",
    )

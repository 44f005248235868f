"""The laboratory Without the encoder output: emptied, exchanged or a row less, and the translation of it."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer.analysis.decoding.teacher_forcing import Change, Written, change_memory, probabilities, written
from vizformer.components import table, tokens
from vizformer.components.table import Row
from vizformer.explain import encoder_decoder
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.surroundings import has_two_stacks, meets, see_also
from vizformer.web.widgets import lesson, map_words, proof_badge
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.model_input import ask_other_sentence
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("cross", "without")
CHANGES: tuple[Change, ...] = ("without", "other", "zero", "own")
EXAMPLES = ("他十分钟前离开了。", "我喜欢喝水。", "The cat sat on the chair.")


@dataclass(frozen=True)
class Rewritten:
    """What is written from a memory, and the probability of each token of the target that is shown, with that memory."""

    written: Written
    probabilities: Float[np.ndarray, " n_target"]


@cached
def rewritten(subject: Subject, change: Change, other: str, token: int) -> Rewritten:
    """The generated text and the token probabilities with the encoder's output replaced."""
    loaded, trace = subject.checkpoint, subject.trace
    memory = change_memory(loaded, trace, change, other=other, token=token)
    return Rewritten(written(loaded, memory), probabilities(loaded, trace, memory))


empty_memory = of_run(encoder_decoder.empty_memory)


@lab.draws
def draw_changed_memory(subject: Subject) -> None:
    if not meets(lab, subject):
        return
    st.html(table.style())
    if not subject.config.start_ids:
        lesson.ask(changed_memory_question(subject))
        st.info(lab.text("unbegun"))
        return
    other, token = "", 0
    with controls():
        change = lab.buttons("change", CHANGES[len(subject.trace.tokens["encoder"]) == 1 :])
        if change == "other":
            other = _other(subject)
    if change == "without":
        token = _left_out(subject)
    if change == "other" and not other:
        return
    before, after = rewritten(subject, "own", "", 0), rewritten(subject, change, other, token)
    left, right = st.columns(2)
    with left.container(border=True):
        _text(lab.text("own"), before.written)
    with right.container(border=True):
        _text(lab.text(f"change.{change}"), after.written)
    _table(subject, before.probabilities, after.probabilities)
    lesson.ask(changed_memory_question(subject))
    _formula(subject)
    see_also(lab, sitemap.GENERATION)


@lab.asks("empty")
def changed_memory_question(subject: Subject) -> lesson.Choice | None:
    if not has_two_stacks(subject.model):
        return None
    n = len(subject.trace.tokens["encoder"])
    names = ("none", "even", "before", "nan")
    return lab.choice("empty", names, "even", subject, n=n, share=f"{1 / n:.4f}")


def _left_out(subject: Subject) -> int:
    source = subject.trace.tokens["encoder"]
    wanted = lesson.value("cross.token", 0, range(len(source)))
    found = tokens.mount(labels.chips(source), selected=wanted, label=lab.text("taken"), key="cross.tokens")
    found = wanted if found is None else found
    lesson.change("cross.token", found, 0)
    return found


def _other(subject: Subject) -> str:
    readable = [text for text in EXAMPLES if text != subject.text and model_cache.reads(subject.model, text)]
    proposed = readable[0] if readable else subject.text
    return ask_other_sentence(lab.text("other"), "memory", proposed, proposed)


def _text(title: str, found: Written) -> None:
    st.caption(title)
    st.text(found.text or lab.text("nothing"))
    if not found.ended:
        lab.note("endless", n=len(found.tokens))


def _table(subject: Subject, before: np.ndarray, after: np.ndarray) -> None:
    names = [choice.next.text for choice in map_words.choices(subject)]
    rows = [
        Row(name, share(a), share(b), kind="marked" if float(b) < float(a) / 2 else "")
        for name, a, b in zip(names, before, after, strict=False)
    ]
    columns = lab.columns("token", "own", "changed")
    st.html(table.to_html(columns, rows, bar=2, caption=lab.text("table")))


def _formula(subject: Subject) -> None:
    layer, biased = subject.config.n_decoder_layers - 1, subject.config.qkv_bias
    empty, record = empty_memory(subject, layer), subject.trace[f"decoder.{layer}.cross"]
    n, d_head = record.k.shape[1], record.k.shape[2]
    agrees = lab.text("zeros", layer=layer, difference=f"{empty.proof.difference:.1g}")
    proof_badge.show(empty.proof, agrees, edited=bool(subject.edited))
    key, value = ("b_K", "b_V") if biased else ("0", "0")
    lesson.formula(
        rf"M = 0 \;\Rightarrow\; K_j = {key}, \quad V_j = {value}, \quad a_{{ij}} = \tfrac{{1}}{{n}}, \quad z_i = {value}",
        live=rf"a_{{ij}} = \tfrac{{1}}{{{n}}} = {empty.weight:.4f}, \qquad "
        rf"(b_V W_O + b_O)_0 = {float(empty.out[0]):.4f}",
        code=f"n, d_head = {n}, {d_head}\n"
        "q, b_K, b_V = torch.randn(4, d_head), torch.randn(d_head), torch.randn(d_head)\n"
        "k, v = torch.zeros(n, d_head) + b_K, torch.zeros(n, d_head) + b_V  # a memory of zeros\n"
        "weights = (q @ k.T / d_head**0.5).softmax(-1)  # 1 / n everywhere\n"
        "z = weights @ v  # b_V in every row, whatever was asked",
    )

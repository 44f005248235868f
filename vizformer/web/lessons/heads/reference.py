"""The laboratory Who is "it"?: whether some head looks at the noun that a pronoun means, measured on pairs of sentences."""

import re
from dataclasses import replace

import streamlit as st

from vizformer import figures
from vizformer.analysis import SetEffects, bundled_set, over_prompts
from vizformer.analysis.causes.ablation import Part, parts_of
from vizformer.analysis.causes.asked_prompts import ask
from vizformer.analysis.heads.pronouns import ReferenceShift
from vizformer.components import table
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson, map_words, model_suggestions, strongest_parts, watched_work
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.map_words import PAIRS, Pronoun
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import translate

lab = Laboratory("heads", "reference")
CODE = """lead = w[:, :, 0] - w[:, :, 1]        # [pairs, sentences]: weight on the first noun less that on the second
shift = (lead[:, 0] - lead[:, 1]) / 2  # of one head, for each pair"""
SET = "reference.zh-en"
LISTED = 6  # heads


@lab.draws
def draw_pronoun_reference(subject: Subject) -> None:
    st.html(table.style())
    read = map_words.readable(subject.model)
    if not read:
        st.info(lab.text("unread"))
        lesson.ask(pronoun_reference_question(subject))
        return
    chinese = any("\u4e00" <= character <= "\u9fff" for character in subject.text)
    usual = next((name for name in read if name.startswith("ta") == chinese), read[0])
    with controls():
        pronoun = lab.buttons("pronoun", read, usual, label_visibility="collapsed")
    if pronoun == "it_noun":
        draw_noun(lab, subject)
    found = map_words.reference_shift(subject.model, pronoun)
    _picture(pronoun, found)
    _verdict(found)
    _open(subject, found)
    lesson.ask(pronoun_reference_question(subject))
    w = found.weights[..., found.layer, found.head]
    lesson.formula(
        r"\mathrm{shift} = \tfrac12 \big[(a_{1,A} - a_{1,B}) - (a_{2,A} - a_{2,B})\big]",
        live=rf"\tfrac12 \big[({w[0, 0, 0]:.3f} - {w[0, 0, 1]:.3f}) - ({w[0, 1, 0]:.3f} - {w[0, 1, 1]:.3f})\big] = "
        rf"{found.shifts[0, found.layer, found.head]:.3f}",
        code=CODE,
        given={"w": w.astype("float32")},
    )


@lab.asks("reader")
def pronoun_reference_question(subject: Subject) -> lesson.Choice:
    return lab.choice("reader", ("nothing", "little", "moved"), "nothing")


def _verdict(found: ReferenceShift) -> None:
    if found.never_moves:
        st.info(lab.text("still"))
        return
    n = len(found.sentences)
    measured = lab.text(
        "measured",
        layer=found.layer,
        head=found.head,
        points=f"{100 * found.mean:.1f}",
        right=found.right,
        n=n,
        found=found.found,
        sentences=2 * n,
        heads=counts.heads(found.shifts[0].size),
        chance=labels.percent(found.chance),
    )
    if found.chance > map_words.RARE:
        st.warning(f"{lab.text('verdict.luck')} {measured}")
    elif not map_words.is_shown(found):
        st.info(f"{lab.text('verdict.moves')} {measured}")
    else:
        st.success(f"{lab.text('verdict.shown')} {measured}")


def _picture(pronoun: Pronoun, found: ReferenceShift) -> None:
    """Two points for each pair: how much more weight the first noun has than the second one, with either word."""
    weights, unmarked = found.weights[..., found.layer, found.head], str.maketrans("", "", "[]{}")
    lead = 100 * (weights[..., 0] - weights[..., 1])
    nouns = [" · ".join(one.text[start:end] for start, end in one.spans[:2]) for one, __ in found.sentences]
    title = lab.text("weights", layer=found.layer, head=found.head)
    points = {lab.text("columns.first"): lead[:, 0], lab.text("columns.second"): lead[:, 1]}
    drawn = figures.changes(nouns, points, axis_title=lab.text("columns.lead"), title=title)
    drawn.update_traces(text=[figures.style.safe(written.translate(unmarked)) for written in PAIRS[pronoun]])
    chart.show(drawn, key="heads.reference")
    lab.note("moved")


def _open(subject: Subject, found: ReferenceShift) -> None:
    """A button that makes a sentence the page's own and shows the head among all heads."""
    best = int(found.shifts[:, found.layer, found.head].argmax())
    text = found.sentences[best][0].text
    if presses.button(lab.text("look", text=text), key="heads.reference.open"):
        kind = "encoder" if "encoder" in subject.trace.tokens else "decoder"
        state.update(text=text, target="", edits="", kind=kind, layer=found.layer, head=found.head, part="all")
        st.rerun()  # the whole page


@cached
def noun_when_writing(model: ModelRef) -> tuple[SetEffects, int]:
    """What each head of cross-attention does for the noun that is meant (LD without it less LD); and how often this noun is
    the more probable one, after the same words, where the text is the last clause."""
    checkpoint, prompts = model_cache.checkpoint(model), bundled_set(SET)
    parts = parts_of(ask(checkpoint, prompts.rows[0]).clean)
    heads: list[Part] = [part for part in parts if part.head is not None and part.sublayer.endswith("cross")]
    effects = over_prompts(checkpoint, prompts, "zero", parts=heads, heard=HEARD.get())
    alone = [replace(row, clean=last_clause(row.clean)) for row in prompts.rows]
    return effects, sum(bool(ask(checkpoint, row).odds > 0) for row in alone)


def last_clause(text: str) -> str:
    """What follows the two nouns: the second sentence, or what follows "and"."""
    return re.split(r"\. (?=.)| and (?=\w+ it)", text)[-1]


def draw_noun(lab: Laboratory, subject: Subject) -> None:
    """Draws the number of sentences in which the translator chooses the right noun, and the heads that it needs."""
    if not model_suggestions.reads_both(subject.model):
        return
    rows = len(bundled_set(SET).rows)
    measured = watched_work.watched(
        noun_when_writing,
        (subject.model,),
        quick=False,
        runs=1000 * rows,  # thousandths of a sentence, as `over_prompts` tells them
        begin=lab.text("measure"),
        key="heads.reference.measure",
        said=lambda done, n: lab.text("progress", done=done // 1000, n=n // 1000),
        takes=lab.text("takes", n=rows),
    )
    if measured is None:
        return
    found, alone = measured
    n, first = len(found.rows), found.rows[0]
    st.success(
        lab.text(
            "written",
            right=int((found.odds > 0).sum()),
            n=n,
            alone=alone,
            text=first.clean,
            target=first.target,
            answer=first.answer,
        )
    )
    strongest_parts.show(found, LISTED, lab.text("carried", n=n))
    st.page_link(
        sitemap.WHAT_IF.file,
        label=lab.text("all_parts", page=translate(sitemap.WHAT_IF.title)),
        query_params={"dials": f"whatif.way:set~whatif.set:{SET}"},
    )

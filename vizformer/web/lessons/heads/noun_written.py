"""Below Who is "it"?: the noun that the translator writes for *it*, and the heads without which it would write another."""

import re
from dataclasses import replace

import streamlit as st

from vizformer.analysis import SetEffects, bundled_set, over_prompts
from vizformer.analysis.causes.ablation import Part, parts_of
from vizformer.analysis.causes.asked_prompts import ask
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import source_language, strongest_parts
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.i18n import translate

SET = "reference.zh-en"
LISTED = 6  # heads


@cached
def heads_taken_out(model: ModelRef) -> SetEffects:
    """What each head of cross-attention does for the noun that is meant: LD without it less LD."""
    checkpoint, prompts = model_cache.checkpoint(model), bundled_set(SET)
    parts = parts_of(ask(checkpoint, prompts.rows[0]).clean)
    heads: list[Part] = [part for part in parts if part.head is not None and part.sublayer.endswith("cross")]
    return over_prompts(checkpoint, prompts, "zero", parts=heads)


@cached
def right_without_nouns(model: ModelRef) -> int:
    """How often the noun that is meant is the more probable one, after the same words, where the text is the last clause."""
    checkpoint = model_cache.checkpoint(model)
    rows = [replace(row, clean=last_clause(row.clean)) for row in bundled_set(SET).rows]
    return sum(bool(ask(checkpoint, row).odds > 0) for row in rows)


def last_clause(text: str) -> str:
    """What follows the two nouns: the second sentence, or what follows "and"."""
    return re.split(r"\. (?=.)| and (?=\w+ it)", text)[-1]


def draw(lab: Laboratory, subject: Subject) -> None:
    """In how many sentences the translator decides for the noun that is meant, and the heads that it needs for it."""
    if not source_language.reads_both(subject.model):
        return
    found = heads_taken_out(subject.model)
    n, first = len(found.rows), found.rows[0]
    st.success(
        lab.text(
            "written",
            right=int((found.odds > 0).sum()),
            n=n,
            alone=right_without_nouns(subject.model),
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

"""The neurons of a score: what each number of the query and the key adds to it."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import site_name
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Kind
from vizformer.web.widgets import chart, proof_badge
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.i18n import _


@guarded()
def terms(subject: Subject, kind: Kind, layer: int, head: int, query: int, key: int) -> None:
    """The terms of the score of a chosen cell, from the largest to the smallest, with their sum and its proof."""
    stacks = labels.stacks(kind)
    said = {
        "query": query,
        "query_token": plain(subject.trace.tokens[stacks[0]][query].text),
        "key": key,
        "key_token": plain(subject.trace.tokens[stacks[1]][key].text),
    }
    title = _("Where the score of query {query} “{query_token}” and key {key} “{key_token}” comes from", **said)
    with st.expander(title, key="attention.pair", on_change="rerun") as box:
        if not box.open:
            return
        found = subject_cache.pair(subject, site_name(kind, layer), head, query, key)
        st.caption(
            _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. They "
                "sum to {score}.",
                n=len(found.terms),
                score=f"{found.score:.4f}",
            )
            if found.position_bias == 0 and found.content == found.score
            else _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. They "
                "sum to {content}; the soft cap of this model makes {score} of it.",
                n=len(found.terms),
                content=f"{found.content:.4f}",
                score=f"{found.score:.4f}",
            )
            if found.position_bias == 0
            else _(
                "Each bar is one of the {n} numbers of the query times that of the key, divided as the score is. With "
                "{bias} for their distance they sum to {score}.",
                n=len(found.terms),
                bias=f"{found.position_bias:.4f}",
                score=f"{found.score:.4f}",
            )
        )
        order = found.order
        chart.show(
            figures.score_terms(order.astype(np.int32), found.terms[order], found.query[order], found.key[order]),
            key="attention.pair.bars",
        )
        proof_badge.show(found.proof, edited=bool(subject.edited))

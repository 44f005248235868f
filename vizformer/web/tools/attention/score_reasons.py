"""Why a head looks there: the score of one query and key as a sum over what was written into their rows."""

from collections.abc import Iterator

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import ScoreSplit, SignedRole, Writer, circuits, score_split, site_name, writer_tokens
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.attribution.score_writers import Side
from vizformer.errors import TraceError
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_model
from vizformer.web.link import state
from vizformer.web.tools.attention.heads_of_kind import Heads
from vizformer.web.widgets import chart, proof_badge
from vizformer.web.widgets.folded_box import folded
from vizformer.web.widgets.in_python import opening
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded
from vizformer.web.words.i18n import _, show_info, show_markdown, show_note
from vizformer.web.words.part_names import part_name
from vizformer.web.words.signed_roles import role_or_none, role_said

BARS, FOLLOWED, TOKENS, READ = 8, 3, 3, 5
_LONGEST = 512  # tokens: the mean over keys asks for a way back from each


@cached
def split_of(subject: Subject, site: str, head: int, query: int, key: int) -> ScoreSplit:
    return score_split(subject.checkpoint, subject.trace, site, head, query, key, against_mean=True)


@cached
def came_from(subject: Subject, at: tuple[str, int, int, int], side: Side, writer: Writer) -> np.ndarray:
    return writer_tokens(subject.checkpoint, subject.trace, split_of(subject, *at), side, writer)


token_scores = of_model(circuits.token_scores)


@cached
def role_of(subject: Subject, site: str, head: int) -> SignedRole | None:
    return role_or_none(subject.checkpoint, [subject.trace], site, head)


def draw_reasons(here: Heads) -> None:
    view = state.view()
    query = view.query_of(here.queries)
    if max(len(here.queries), len(here.keys)) > _LONGEST:
        return
    with folded(_("Why does this head attend there?"), key="attention.why") as is_open:
        if is_open:
            guarded()(_draw)(here, site_name(here.kind, view.layer), view.head, query)


def _draw(here: Heads, site: str, head: int, query: int) -> None:
    subject, record = here.subject, here.subject.trace[site]
    weights = record.pattern(head)[query].float().cpu().numpy()
    key = state.view().key
    key = int(weights.argmax()) if key is None else key
    if record.reason(head)[query, key]:
        show_info("The mask blocks this key, whatever the score. Choose another one.")
        return
    split = split_of(subject, site, head, query, key)
    asks, answers = here.queries[query].text, here.keys[key].text
    show_markdown(
        "“{query}” gives “{key}” a weight of **{weight}**: its score is **{score}** above the mean of the "
        "keys that it sees. This is a sum over all parts that wrote into the two rows, of the query and of "
        "the key:",
        query=asks,
        key=answers,
        weight=f"{weights[key]:.3f}",
        score=f"{split.score:.3f}".replace("-", "−"),
    )
    texts = {"logit_share": _("share of the score")}
    sides: tuple[tuple[Side, str], ...] = (
        ("query", _("In the query “{token}”", token=asks)),
        ("key", _("In the key “{token}”", token=answers)),
    )
    for column, (side, title) in zip(st.columns(2), sides, strict=True):
        names, values = _bars(subject, split, side, asks if side == "query" else answers)
        with column:
            chart.show(figures.logit_terms(names, values, title=title, words=texts), key=f"attention.why.{side}")
    for said in _chains(here, split):
        st.text(said)
    for said in _by_weights(here, split):
        st.text(said)
    done = role_of(subject, site, head) if model_cache.predicts(subject.model) else None
    if done is not None:
        st.text(role_said(done))
    proof_badge.show(split.proof, edited=bool(subject.edited))
    show_note(
        "The divisors of norms are kept. These are shares of a sum, not effects: without a part, later "
        "layers would change too."
    )
    call = f"vf.analysis.score_split(checkpoint, trace, {site!r}, {head}, {query}, {key}, against_mean=True)"
    st.code(
        "\n".join([*opening(subject), f"split = {call}", "print(split.score, split.ranked[:5])"]), language="python"
    )


def _bars(subject: Subject, split: ScoreSplit, side: Side, token: str) -> tuple[list[str], np.ndarray]:
    """The largest writers of a side, each with all of the other side, and the others as one."""
    writers, shares = split.queries if side == "query" else split.keys, split.of(side)
    order = np.argsort(-np.abs(shares), kind="stable")
    names = [_name(subject, split, writers[i], token) for i in order[:BARS]]
    values = [float(shares[i]) for i in order[:BARS]]
    if len(order) > BARS:
        names.append(_("{n} others together", n=len(order) - BARS))
        values.append(float(shares[order[BARS:]].sum()))
    if split.position:
        names.append(_("what is added for the distance"))
        values.append(split.position)
    return names, np.array(values)


def _name(subject: Subject, split: ScoreSplit, writer: Writer, token: str) -> str:
    if writer.place == split.site:
        return _("bias of the queries and keys")
    return part_name(subject.config, writer.part, writer.place, writer.head, token)


def _chains(here: Heads, split: ScoreSplit) -> Iterator[str]:
    """The heads among the strongest writers: from which tokens they took what they wrote."""
    sides: tuple[tuple[Side, tuple[Writer, ...]], ...] = (("query", split.queries), ("key", split.keys))
    found = [
        (float(split.of(side)[index]), side, writer)
        for side, writers in sides
        for index, writer in enumerate(writers)
        if writer.head is not None
    ]
    at = split.site, split.head, split.query, split.key
    for share, side, writer in sorted(found, key=lambda one: -abs(one[0]))[:FOLLOWED]:
        shares = came_from(here.subject, at, side, writer)
        stack, __, kind = writer.place.split(".")
        read = here.subject.trace.tokens["encoder" if kind == "cross" else stack]
        best = sorted(range(len(shares)), key=lambda i: -abs(shares[i]))[:TOKENS]
        tokens = labels.texts(read)
        row = here.queries[split.query].text if side == "query" else here.keys[split.key].text
        yield _(
            "The output of {writer} in “{row}” contributes {share} to the score, mostly from {tokens}.",
            writer=_name(here.subject, split, writer, row),
            row=row,
            share=f"{share:+.3f}".replace("-", "−"),
            tokens=_("; ").join(
                _("“{token}” {value}", token=tokens[i], value=f"{shares[i]:+.3f}".replace("-", "−")) for i in best
            ),
        )


def _by_weights(here: Heads, split: ScoreSplit) -> Iterator[str]:
    """What the weights alone say of the two tokens: which keys the query likes, and what the head says of the key."""
    subject, layer = here.subject, state.view().layer
    stack = predicting_stack(subject.checkpoint)
    if here.kind != stack:
        return
    query, key = here.queries[split.query], here.keys[split.key]
    try:
        likes = token_scores(subject.model, "qk", layer, split.head, query.id, split.query - split.key)
        writes = token_scores(subject.model, "ov", layer, split.head, key.id)
    except TraceError:  # a head that no one matrix describes
        return
    tokenizer = subject.checkpoint.tokenizer_of(stack)

    def listed(scores: np.ndarray) -> str:
        best = [int(at) for at in np.argsort(-scores, kind="stable")[:READ]]
        return _("; ").join(_("“{token}”", token=token.text) for token in tokenizer.tokens(best))

    def place(scores: np.ndarray, id: int) -> str:
        return _("{n} of {of}", n=f"{1 + int((scores > scores[id]).sum()):,}", of=f"{len(scores):,}")

    yield _(
        "By its weights alone, with embeddings as rows: the query “{query}” has the largest scores for "
        "{tokens}; “{key}” has rank {place}.",
        query=query.text,
        key=key.text,
        tokens=listed(likes),
        place=place(likes, key.id),
    )
    if model_cache.predicts(subject.model):
        yield _(
            "If the head attends to “{key}”, it raises the logits of {tokens} most and lowers those of "
            "{lowered} most; “{key}” itself has rank {place}.",
            key=key.text,
            tokens=listed(writes),
            lowered=listed(-writes),
            place=place(writes, key.id),
        )

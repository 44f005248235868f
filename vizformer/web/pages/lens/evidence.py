"""Why this answer: the parts and tokens that carry most of its logit, each with what is lost without it."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import streamlit as st

from vizformer.analysis import Evidence, EvidenceEdge, Removed
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.evidence_graph import Node
from vizformer.components import evidence
from vizformer.figures.tables import Table
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.lens import token_choice
from vizformer.web.pages.lens.token_choice import Asked, less
from vizformer.web.widgets import position_choice, proof_badge, watched_work
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.words import labels, part_names
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, show_markdown, show_note
from vizformer.web.words.part_names import part_name

TOLD = 0.1  # of the logit: a part is told of whose two effects differ by as much


def draw_evidence(subject: Subject, asked: Asked) -> None:
    """The graph and its list; the total effects at once where that is quick."""
    found = token_choice.evidence_of(subject, asked.position, asked.token, against=asked.against)
    removed = without(subject, found) or ()
    rows = list(in_order(found))
    nodes = [*dict.fromkeys(end for edge, _depth in rows for end in (edge.writer, edge.reader)), found.answer]
    nodes = sorted(dict.fromkeys(nodes), key=_place)
    boxes = [box(subject, asked, found, removed, node) for node in nodes]
    effects = dict(zip(found.edges, removed, strict=False))
    edges = [
        evidence.Edge(
            first=nodes.index(edge.writer),
            second=nodes.index(edge.reader),
            looks=edge.way != "value",
            depth=depth,
            name=in_list(subject, found, edge),
            direct=edge.direct,
            shown=in_digits(edge.direct)
            if edge.score is None
            else _("{share} of the score", share=f"{edge.direct / edge.score:.0%}"),
            total=effects[edge].total if edge in effects else None,
            said=becomes(subject, asked, edge, effects.get(edge)),
        )
        for edge, depth in rows
    ]
    others = found.others[found.answer]
    evidence.mount(boxes, edges, others=others, key="lens.evidence")
    picture = Picture(
        "evidence",
        caption(_("Why this answer")),
        arrays=partial(_arrays, found, removed),
        page=partial(evidence.to_html, boxes, edges, others=others, title=_("Why this answer")),
        told=partial(_told, subject, asked, found, removed),
    )
    take_away(picture, key="lens.evidence")
    proof_badge.show(found.proof, edited=bool(subject.edited))


def without(subject: Subject, found: Evidence) -> tuple[Removed, ...] | None:
    """What becomes of the answer without each edge; None until it is wanted, where it takes long."""
    rows, runs = subject.trace.tokens[position_choice.stack(subject)], len(found.edges)
    length = len(rows) - found.position if "decoder" in subject.trace.tokens else len(rows)
    if any(edge.patch.tensor.startswith("encoder") for edge in found.edges):
        length = sum(map(len, subject.trace.tokens.values()))
    cost = watched_work.cost(subject, runs, length)
    call = subject, found.position, found.token, found.against
    if cost < watched_work.AT_ONCE:
        return token_choice.taken_out_of(*call)
    return watched_work.bounded(
        token_choice.taken_out_of,
        call,
        cost=cost,
        too_long=_("The runs without each edge take too long here. In Python: vf.analysis.taken_out."),
        runs=runs,
        begin=_("Remove each edge"),
        key="lens.evidence.begin",
    )


def in_digits(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def in_order(found: Evidence) -> Iterator[tuple[EvidenceEdge, int]]:
    """The edges as a tree from the answer back, each with its depth."""
    told = set[Node]()

    def enter(node: Node, depth: int) -> Iterator[tuple[EvidenceEdge, int]]:
        told.add(node)
        for edge in found.edges:
            if edge.reader == node:
                yield edge, depth
                if edge.writer not in told:
                    yield from enter(edge.writer, depth + 1)

    return enter(found.answer, 0)


def _place(node: Node) -> tuple[Any, ...]:
    """Tokens by their places, the source before the target; parts as the forward goes."""
    if node.part == "token":
        return (0, node.place == "decoder", node.row)
    if node.part == "answer":
        return (2,)
    stack, layer, kind = node.place.split(".")
    kinds = ("self", "cross", "feedforward")
    return (1, stack == "decoder", int(layer), kinds.index(kind), node.row, node.head or 0)


def token(subject: Subject, node: Node) -> str:
    """The token of the row of a node, with its number where another one reads the same."""
    tokens = subject.trace.tokens[node.place.split(".")[0]]
    text = tokens[node.row].text
    return labels.numbered(tokens)[node.row] if [one.text for one in tokens].count(text) > 1 else text


def short(subject: Subject, node: Node) -> str:
    """A part in a few letters."""
    stack, number, kind = node.place.split(".")
    at: dict[str, Any] = {"layer": int(number), "head": node.head}
    if node.head is None:
        return _("L{layer} feed-forward", **at)
    if kind == "cross":
        return _("L{layer} cross H{head}", **at)
    both = subject.config.architecture == "encoder-decoder" and stack == "encoder"
    return _("source L{layer} H{head}", **at) if both else _("L{layer} H{head}", **at)


def long(subject: Subject, node: Node) -> str:
    """A part or a token in words."""
    if node.part == "token":
        return _("the row of “{token}”", token=token(subject, node))
    if subject.config.architecture == "encoder-decoder":
        return part_names.name(Part(node.place, node.head))
    return part_name(subject.config, node.part, node.place, node.head, "")


def box(subject: Subject, asked: Asked, found: Evidence, removed: tuple[Removed, ...], node: Node) -> evidence.Node:
    if node.part == "answer":
        p = labels.percent(_before(subject, asked))
        return evidence.Node(kind="answer", text=asked.text, note=p, name=f"“{asked.text}” {p}")
    if node.part == "token":
        both, source = len(subject.trace.tokens) == 2, node.place == "encoder"
        note = (_("source {n}", n=node.row) if source else _("target {n}", n=node.row)) if both else str(node.row)
        text = subject.trace.tokens[node.place][node.row].text
        return evidence.Node(kind="token", text=text, note=note, name=long(subject, node))
    note, name = _("at “{token}”", token=token(subject, node)), long(subject, node)
    for at, edge in enumerate(found.edges):
        if edge.writer == node and edge.reader == found.answer:
            note = in_digits(edge.direct) + (f" / {in_digits(removed[at].total)}" if removed else "")
    return evidence.Node(kind="part", text=short(subject, node), note=note, name=name)


def in_list(subject: Subject, found: Evidence, edge: EvidenceEdge) -> str:
    """The name of an edge in the list, below the part that it enters."""
    writer = edge.writer
    if writer.part == "token":
        own = token(subject, writer)
        return _("“{token}” itself", token=own) if edge.reader == found.answer else _("from “{token}”", token=own)
    if edge.way != "value":
        return _("look: {part}", part=short(subject, writer))
    if edge.reader == found.answer:
        return short(subject, writer)
    return _("{part} at “{token}”", part=short(subject, writer), token=token(subject, writer))


def becomes(subject: Subject, asked: Asked, edge: EvidenceEdge, one: Removed | None) -> str:
    to = asked.text if edge.reader.part == "answer" else long(subject, edge.reader)
    way = f"{long(subject, edge.writer)} → {to}"
    if one is None:
        return way
    values = {
        "way": way,
        "answer": asked.text,
        "before": labels.percent(_before(subject, asked)),
        "after": labels.percent(one.probability),
    }
    (best,) = token_choice.token_texts(subject, (one.best,))
    if one.best == asked.token:
        return _("Without {way} “{answer}” goes from {before} to {after} and stays first.", **values)
    p = labels.percent(one.best_probability)
    return _(
        "Without {way} “{answer}” goes from {before} to {after}; “{best}” is first ({p}).", **values, best=best, p=p
    )


def _before(subject: Subject, asked: Asked) -> float:
    return next(
        (one.probability for one in subject_cache.predictions(subject, asked.position) if one.token.id == asked.token),
        float(subject.trace.logits[asked.position].double().softmax(-1)[asked.token]),
    )


def evidence_in_words(subject: Subject, asked: Asked) -> None:
    """Says what the sum consists of, and names the part whose direct and total effects differ most."""
    found = token_choice.evidence_of(subject, asked.position, asked.token, against=asked.against)
    values = {"answer": asked.text, "logit": f"{found.logit:.4f}".replace("-", "−")}
    if asked.against is None:
        show_markdown("The logit of “{answer}” is **{logit}**: a sum over all parts of the model.", **values)
    else:
        show_markdown(
            "The logit of “{answer}” minus {less} is **{logit}**: a sum over all parts of the model.",
            **values,
            less=less(subject, asked.against),
        )
    if why := position_choice.why(subject):
        st.caption(why)
    call, effects = (subject, asked.position, asked.token, asked.against), token_choice.taken_out_of
    if effects.holds(*call) and (said := differs(subject, found, effects(*call))):
        st.markdown(said)
    show_note(
        "The direct effect is a share of the logit with fixed attention weights and divisors of norms. The "
        "total effect removes the edge and recomputes everything after it. A dashed line changes where a "
        "head attends: its share is one of the score, and it is removed from that score alone."
    )


def differs(subject: Subject, found: Evidence, removed: tuple[Removed, ...]) -> str:
    """The part whose total effect is furthest from its direct one, in a sentence (Markdown); nothing if none is far."""
    into = [
        (edge, one)
        for edge, one in zip(found.edges, removed, strict=True)
        if edge.reader == found.answer and edge.writer.part != "token" and edge.direct > 0
    ]
    edge, one = max(into, key=lambda pair: abs(pair[0].direct - pair[1].total), default=(None, None))
    if edge is None or one is None or abs(edge.direct - one.total) < TOLD * abs(found.logit):
        return ""
    values = {
        "part": plain(long(subject, edge.writer)),
        "direct": in_digits(edge.direct),
        "total": in_digits(one.total),
    }
    if one.total < edge.direct:
        return _(
            "The direct effect of {part} is {direct}, its total effect {total}: without it, later parts and the "
            "divisors of norms compensate (**self-repair**).",
            **values,
        )
    return _(
        "The direct effect of {part} is {direct}, its total effect {total}: it works **through other parts**.", **values
    )


def _arrays(found: Evidence, removed: tuple[Removed, ...]) -> dict[str, Any]:
    frame = found.to_frame(removed)
    return {name: frame[name].to_numpy(dtype=str if frame[name].dtype == object else None) for name in frame}


def _told(subject: Subject, asked: Asked, found: Evidence, removed: tuple[Removed, ...]) -> tuple[str, Table]:
    """The largest edge in a sentence, and every edge with its effects, and what is not drawn."""
    effects = dict(zip(found.edges, removed, strict=False))
    rows: list[tuple[Any, ...]] = []
    for edge, _depth in in_order(found):
        to, one = asked.text if edge.reader == found.answer else long(subject, edge.reader), effects.get(edge)
        unit = _("logit") if edge.score is None else _("score")
        rows.append((long(subject, edge.writer), to, unit, edge.direct, "" if one is None else one.total))
    for node, value in found.others.items():
        to = asked.text if node == found.answer else long(subject, node)
        rows.append((_("others, sum"), to, _("logit"), value, ""))
    said = becomes(subject, asked, found.edges[0], next(iter(removed), None)) if found.edges else ""
    columns = (_("written by"), _("read by"), _("share of"), _("direct effect"), _("total effect"))
    return said, Table(columns, rows, len(rows))

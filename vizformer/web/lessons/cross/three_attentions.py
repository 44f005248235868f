"""The laboratory Three attentions: who asks, who answers, which mask; the table and the drawing light up together."""

import streamlit as st

from vizformer.analysis import kinds, site_name
from vizformer.components import architecture, table
from vizformer.components.table import Row
from vizformer.explain.encoder_decoder import Attended
from vizformer.model import Reason
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross import computations, links, other_model, plan
from vizformer.web.link.view import KINDS
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def three(subject: Subject) -> None:
    """The attentions of the first layer of each stack."""
    st.html(table.style())
    usable = kinds(subject.trace)
    found = dict(zip(usable, computations.attended(subject, tuple(site_name(kind, 0) for kind in usable)), strict=True))
    if "cross" in found:
        lesson.ask(shape_question(subject, found["cross"]))
    default = "cross" if "cross" in found else usable[0]
    kind = str(lesson.value("cross.kind", default, usable))
    clicked = architecture.peek(key="cross.plan", selected=plan.box_of(kind))
    if clicked is not None and (wanted := plan.attention_of(clicked)) not in (None, kind):
        lesson.change("cross.kind", str(wanted), default)
        kind = str(wanted)
    kind = st.segmented_control(
        _("Kind of attention"),
        usable,
        format_func=labels.kind_label,
        required=True,
        label_visibility="collapsed",
        **lesson.setting("cross.kind", default, usable),
    )
    rows = [
        Row((labels.kind_label(one), *_cells(found[one])), "marked" if one == kind else "")
        if one in found
        else Row((labels.kind_label(one), *[_("not in this model")] * 2, "–", "–"), "faint")
        for one in KINDS
    ]
    columns = ("", _("who asks"), _("who answers"), _("scores of a head"), _("mask"))
    st.html(table.to_html(columns, rows))
    chosen = found[kind]
    proof_badge.show(chosen.proof, _agrees(chosen), edited=bool(subject.edited))
    drawn, texts = plan.columns(subject, found), words(architecture.ENGLISH)
    architecture.mount(drawn, selected=plan.box_of(kind), words=texts, key="cross.plan")
    take_away(
        Picture(
            "attentions",
            caption(),
            page=lambda: architecture.to_html(drawn, selected=plan.box_of(kind), words=texts),
            told=lambda: plan.told(drawn),
        ),
        key="cross.plan",
    )
    _formula(subject, chosen)
    links.to(sitemap.QKV, sitemap.MASKS)
    other_model.meets(subject, "three")


def _cells(one: Attended) -> tuple[str, str, str, str]:
    __, n_q, n_k = one.scores
    if one.site.endswith("cross"):
        asks = _("{rows} of the decoder, after its self-attention", rows=counts.rows(n_q))
        answers = _("{rows} that the encoder ends with", rows=counts.rows(n_k))
    else:
        asks, answers = _("each row: {rows}", rows=counts.rows(n_q)), _("the same {rows}", rows=counts.rows(n_k))
    return asks, answers, f"[{n_q}, {n_k}]", _mask(one)


def _mask(one: Attended) -> str:
    """What is blocked, and why."""
    __, n_q, n_k = one.scores
    blocked = sum(one.blocked.values())
    if not blocked:
        return _("only padding; here none")
    reason = _("causal") if Reason.OUTSIDE_WINDOW not in one.blocked else _("causal, in a window")
    reason = reason if Reason.FUTURE in one.blocked else _("set by hand")
    return _("{reason}: {blocked} of {all} cells", reason=reason, blocked=blocked, all=n_q * n_k)


def _agrees(one: Attended) -> str:
    return _(
        "Recomputed from the rows that ask and those that answer: all its q, k, v and z agree with the model to "
        "{difference}.",
        difference=f"{one.proof.difference:.1g}",
    )


def _formula(subject: Subject, one: Attended) -> None:
    """The shapes, with the numbers of this sentence; the code runs with stand-ins of these shapes."""
    h, n_q, n_k = one.scores
    d, d_head, cross = subject.config.d_model, one.d_head, one.site.endswith("cross")
    source = "M" if cross else "X"
    causal = bool(one.blocked) and not cross
    mask = " + M_{\\text{mask}}" if causal else ""
    lines = [
        f"X = torch.randn({n_q}, {d})  # the rows that ask",
        *([f"M = torch.randn({n_k}, {d})  # the rows that answer"] if cross else []),
        f"W_Q, W_K, W_V = torch.randn(3, {d}, {h * d_head}) / {d} ** 0.5",
        f"q, k, v = X @ W_Q, {source} @ W_K, {source} @ W_V",
        f"q, k, v = (t.unflatten(-1, ({h}, {d_head})).transpose(0, 1) for t in (q, k, v))  # [heads, rows, d_head]",
        f"scores = q @ k.mT / {d_head} ** 0.5  # [{h}, {n_q}, {n_k}]",
        *([f"scores = scores + torch.full(({n_q}, {n_k}), -math.inf).triu(1)"] if causal else []),
        "z = scores.softmax(-1) @ v",
    ]
    lesson.formula(
        rf"z = \mathrm{{softmax}}\left(\frac{{(X W_Q)\,({source}\,W_K)^\top}}{{\sqrt{{d_\mathrm{{head}}}}}}{mask}\right)"
        rf"{source}\,W_V",
        live=rf"\begin{{gathered}} [{n_q} \times {d_head}] \cdot [{n_k} \times {d_head}]^\top = [{n_q} \times {n_k}] \\ "
        rf"[{n_q} \times {n_k}] \cdot [{n_k} \times {d_head}] = [{n_q} \times {d_head}] \end{{gathered}}",
        code="\n".join(lines),
    )


def shape_question(subject: Subject, cross: Attended) -> lesson.Choice:
    __, n_q, n_k = cross.scores
    shapes = [(n_q, n_k), (n_k, n_q), (n_q, n_q), (n_k, n_k), (n_q, cross.d_head)]
    choices = [f"[{rows}, {columns}]" for rows, columns in sorted(dict.fromkeys(shapes))]
    return lesson.Choice(
        "cross",
        "shape",
        _(
            "The encoder reads {n_k} tokens, the decoder has {n_q}. What shape do the scores of a head of cross-attention "
            "have (rows, columns)?",
            n_k=n_k,
            n_q=n_q,
        ),
        choices,
        choices.index(f"[{n_q}, {n_k}]"),
        _(
            "The decoder asks, one query for each of its {n_q} rows; the encoder answers, one key for each of its {n_k} "
            "tokens. This map need not be square.",
            n_q=n_q,
            n_k=n_k,
        ),
        about=f"{subject.model} {subject.text} {subject.target}",
    )

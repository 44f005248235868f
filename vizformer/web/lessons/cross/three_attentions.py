"""The laboratory Three attentions: who asks, who answers, which mask; the table and the picture of the model agree."""

import streamlit as st

from vizformer.analysis import Kind, kinds, site_name
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.explain import encoder_decoder
from vizformer.explain.encoder_decoder import Attended
from vizformer.model import Reason
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.surroundings import has_two_stacks, meets, see_also
from vizformer.web.link.view import KINDS
from vizformer.web.widgets import lesson, map_words, proof_badge
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.widgets.whole_model import picture, saved_page
from vizformer.web.words import counts, labels

lab = Laboratory("cross", "three", wide=True)


attended = of_run(encoder_decoder.attended)
_PICTURE = "cross.plan"


@lab.draws
def draw_three_attentions(subject: Subject) -> None:
    st.html(table.style())
    usable = kinds(subject.trace)
    found = dict(zip(usable, attended(subject, tuple(site_name(kind, 0) for kind in usable)), strict=True))
    default = "cross" if "cross" in found else usable[0]
    choices, questions = st.container(), st.container()
    kept = lesson.value("cross.kind", str(default), usable)
    press = picture.draw_whole_model(
        subject, key=_PICTURE, reports=True, kind=next(one for one in usable if one == kept)
    )
    if press is not None and not press.box:
        lesson.change("cross.kind", press.kind, default)
    with choices, controls():
        names = {one: labels.kind_label(one) for one in usable}
        chosen: Kind = lab.buttons("kind", names, default, label_visibility="collapsed")
    one = found[chosen]
    with questions:
        lesson.ask(three_attentions_question(subject), folded=True)
    picture.draw_away(subject, saved_page.html, key=_PICTURE)
    map_words.say_pronoun(subject)
    missing = [lab.text("missing")] * 2
    rows = [
        Row(labels.kind_label(each), *_cells(found[each]), kind="marked" if each == chosen else "")
        if each in found
        else Row(labels.kind_label(each), *missing, "–", "–", kind="faint")
        for each in KINDS
    ]
    st.html(table.to_html(("", *lab.columns("asks", "answers", "scores", "mask")), rows))
    agrees = lab.text("agrees", difference=f"{one.proof.difference:.1g}")
    proof_badge.show(one.proof, agrees, edited=bool(subject.edited))
    _formula(subject, one)
    see_also(lab, sitemap.QKV, sitemap.MASKS)
    meets(lab, subject)


@lab.asks("shape")
def three_attentions_question(subject: Subject) -> lesson.Choice | None:
    if not has_two_stacks(subject.model):
        return None
    (cross,) = attended(subject, (site_name("cross", 0),))
    __, n_q, n_k = cross.scores
    wrong = {"turned": (n_k, n_q), "decoder": (n_q, n_q), "encoder": (n_k, n_k), "width": (n_q, cross.d_head)}
    return lab.options("shape", (n_q, n_k), wrong, subject, written=lambda shape: str([*shape]), n_q=n_q, n_k=n_k)


def _cells(one: Attended) -> tuple[str, str, str, str]:
    """Who asks, who answers, the shape of the scores, and what is blocked, and why."""
    __, n_q, n_k = one.scores
    form, blocked = "cross" if one.site.endswith("cross") else "self", sum(one.blocked.values())
    asks = lab.text("asks_from", form=form, rows=counts.rows(n_q))
    answers = lab.text("answers_from", form=form, rows=counts.rows(n_k))
    why = "set" if Reason.FUTURE not in one.blocked else "window" if Reason.OUTSIDE_WINDOW in one.blocked else "causal"
    mask = lab.text("blocked", reason=lab.text(f"reason.{why}"), blocked=blocked, all=n_q * n_k)
    return asks, answers, f"[{n_q}, {n_k}]", mask if blocked else lab.text("padding")


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

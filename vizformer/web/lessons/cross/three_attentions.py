"""The laboratory Three attentions: who asks, who answers, which mask; the table and the drawing light up together."""

from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer.analysis import Kind, kinds, site_name
from vizformer.components import architecture, table
from vizformer.components.table import Row
from vizformer.explain import encoder_decoder
from vizformer.explain.encoder_decoder import Attended
from vizformer.figures.tables import Table
from vizformer.model import Reason
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.lessons.cross.surroundings import has_two_stacks, meets, see_also
from vizformer.web.link.view import KINDS
from vizformer.web.widgets import lesson, proof_badge
from vizformer.web.widgets.downloads import Picture, caption, take_away
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels

lab = Laboratory("cross", "three")


attended = of_run(encoder_decoder.attended)
_BOX = {"encoder": "encoder.attention", "decoder": "decoder.attention", "cross": "decoder.cross"}


@lab.draws
def draw(subject: Subject) -> None:
    st.html(table.style())
    usable = kinds(subject.trace)
    found = dict(zip(usable, attended(subject, tuple(site_name(kind, 0) for kind in usable)), strict=True))
    default = "cross" if "cross" in found else usable[0]
    kind = lesson.value("cross.kind", str(default), usable)
    clicked = architecture.peek(key="cross.plan", selected=box_of(kind))
    if clicked is not None and (wanted := attention_of(clicked)) not in (None, kind):
        lesson.change("cross.kind", str(wanted), default)
    with controls():
        names = {one: labels.kind_label(one) for one in usable}
        chosen: Kind = lab.buttons("kind", names, default, label_visibility="collapsed")
    drawn, one = columns(lab, subject, found), found[chosen]
    lesson.ask(question(subject), folded=True)
    architecture.mount(drawn, selected=box_of(chosen), key="cross.plan")
    take_away(
        Picture(
            "attentions",
            caption(),
            page=lambda: architecture.to_html(drawn, selected=box_of(chosen)),
            told=lambda: told(lab, drawn),
        ),
        key="cross.plan",
    )
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
def question(subject: Subject) -> lesson.Choice | None:
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


def box_of(kind: str) -> str:
    return _BOX[kind]


def attention_of(box: str) -> str | None:
    """The kind of attention that a box is, if it is one."""
    return next((kind for kind, of in _BOX.items() if of == box), None)


def columns(lab: Laboratory, subject: Subject, found: Mapping[Kind, Attended]) -> list[architecture.Column]:
    """The stacks that the model has, side by side."""
    config, made = subject.config, list[architecture.Column]()
    order = config.norm_order
    before_it, of_output = order in ("pre", "sandwich"), order in ("output", "sandwich")
    adds, after = config.residual != "none", order == "post"
    names = lab.texts("box", ("tokens", "norm", "add", "add_norm", "feedforward", "memory"))
    norm, joined = names["norm"], names["add_norm" if adds and after else "add" if adds else "norm"]
    d = config.d_model
    for stack in ("encoder", "decoder"):
        if stack not in found:
            continue
        attention = found["encoder" if stack == "encoder" else "decoder"]
        n, layers = attention.scores[1], config.layers_of(stack)
        rows = f"[{n}, {d}]"
        boxes = [_box(f"{stack}.tokens", names["tokens"], rows, framed=False)]
        kinds = ["self", *(["cross"] if stack == "decoder" and "cross" in found else []), "feedforward"]
        for kind in kinds:
            before = boxes[-1]["key"]
            key = {"self": "attention"}.get(kind, kind)
            if before_it:
                boxes.append(_box(f"{stack}.{key}_norm", norm, rows, "norm"))
            if kind == "feedforward":
                boxes.append(_box(f"{stack}.{key}", names["feedforward"], rows, "feedforward"))
            else:
                one = found["cross"] if kind == "cross" else attention
                boxes.append(_attention(f"{stack}.{key}", one, source=kind == "cross"))
            if of_output:
                boxes.append(_box(f"{stack}.{key}_output_norm", norm, rows, "norm"))
            if adds or after:
                boxes.append(_box(f"{stack}.{key}_add", joined, rows, "norm", skip=before if adds else ""))
        if config.ends_with_norm(stack):
            boxes.append(_box(f"{stack}.final", norm, rows, "norm", framed=False))
        if stack == "encoder" and "cross" in found:
            boxes.append(_box("encoder.memory", names["memory"], rows, framed=False))
        made.append({"title": lab.text(f"stack.{stack}"), "frame": lab.text("layers", n=layers), "boxes": boxes})
    return made


def told(lab: Laboratory, drawn: Sequence[architecture.Column]) -> tuple[str, Table]:
    """The stacks in a sentence, and their boxes as a table, each with the boxes that its data comes from."""
    boxes = [box for column in drawn for box in column["boxes"]]
    names = {box["key"]: f"{order} · {box['title']}" for order, box in enumerate(boxes)}  # several have the same title
    between = lab.text("between")
    said = between.join(
        lab.text("told", stack=column["title"], boxes=len(column["boxes"]), frame=column["frame"]) for column in drawn
    )
    rows: list[tuple[str | int, ...]] = []
    for column in drawn:
        before = ""
        for box in column["boxes"]:
            comes_from = between.join(names[key] for key in (before, box["skip"], box["source"]) if key)
            rows.append((len(rows), column["title"], box["title"], box["shape"], comes_from))
            before = box["key"]
    columns = tuple(lab.texts("plan", ("order", "stack", "box", "shape", "source")).values())
    return said, Table(columns, rows, len(rows))


def _attention(key: str, one: Attended, *, source: bool) -> architecture.Box:
    __, n_q, n_k = one.scores
    kind = attention_of(key)
    assert kind is not None
    return {
        **_box(key, labels.kind_label(kind), f"[{n_q}, {n_k}]", "attention"),
        "source": "encoder.memory" if source else "",
    }


def _box(
    key: str, title: str, shape: str, kind: str = "plain", *, skip: str = "", framed: bool = True
) -> architecture.Box:
    return {
        "key": key,
        "kind": kind,
        "title": title,
        "shape": shape,
        "count": "",
        "note": "",
        "framed": framed,
        "inside": "",
        "skip": skip,
        "source": "",
    }

"""A plan of the model with its attentions: boxes that light up with the row of the table."""

from collections.abc import Mapping, Sequence

from vizformer.analysis import Kind
from vizformer.components import architecture
from vizformer.explain.encoder_decoder import Attended
from vizformer.figures.tables import Table
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels

_BOX = {"encoder": "encoder.attention", "decoder": "decoder.attention", "cross": "decoder.cross"}


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

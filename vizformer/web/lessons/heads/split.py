"""The laboratory Split, attend, concatenate: where each head's slice of the vectors goes, and what each head adds."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis import head_outputs, kinds, site_name
from vizformer.analysis.head_outputs import output_matrix
from vizformer.components import table
from vizformer.components.table import Row
from vizformer.config import ModelConfig
from vizformer.explain import latex
from vizformer.presets import PRESETS
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import attention_selector, chart, lesson, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside, wrong_line
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("heads", "split")
VECTORS = ("x", "q", "k", "v", "z", "out")
SHAPES = ("counts", "one", "query", "key", "joined")


contributions = of_run(head_outputs.contributions)


@lab.draws
def draw_head_split(subject: Subject) -> None:
    st.html(table.style())
    why = attention_selector.choose(subject)
    view, query, config = state.view(), attention_selector.query(subject), subject.config
    site = attention_selector.site()
    found = contributions(subject, site, query)
    cut, token = found.slices, subject.trace.tokens[labels.stacks(view.kind)[0]][query].text
    slices = dict(zip(VECTORS, (0, config.n_heads, config.kv_heads, config.kv_heads, config.n_heads, 0), strict=True))
    rows = {name: row for name in VECTORS if (row := getattr(cut, name)) is not None}
    title, named = lab.text("vectors", query=query, token=token), list(lab.texts("vector", list(rows)).values())
    shown = figures.head_slices(
        list(rows.values()), named, [slices[name] for name in rows], chosen=view.head, title=title
    )
    chart.show(shown, key="heads.slices")
    aside(why)
    lengths, shares, parts = [*found.norms], [*found.shares], [*found.parts]
    heads = [lab.text("head", head=head) for head in range(config.n_heads)]
    if found.bias is not None:
        lengths, shares, parts = [*lengths, found.bias_norm], [*shares, found.bias_share], [*parts, found.bias]
        heads.append(lab.text("bias"))
    names = [lab.text("length", part=part, norm=f"{norm:.2f}") for part, norm in zip(heads, lengths, strict=True)]
    title = lab.text("parts", d=config.d_model)
    added = figures.head_parts(np.stack([*parts, cut.out]), [*names, lab.text("sum")], title=title)
    chart.show(added, key="heads.parts")
    proof_badge.show(found.proof, edited=bool(subject.edited))
    lesson.ask(head_split_question(subject, site, view.head, query))
    cells = [
        Row(part, float(length), share(of), kind="marked" if i == view.head else "")
        for i, (part, length, of) in enumerate(zip(heads, lengths, shares, strict=True))
    ]
    columns = lab.columns("norm", "share")
    st.html(table.to_html(("", *columns), cells, bar=2, caption=lab.text("direction")))
    _shapes(config)
    biased = "" if found.bias is None else " + b_O"
    lesson.formula(
        rf"\mathrm{{out}} = \mathrm{{Concat}}(\mathrm{{head}}_1, \dots, \mathrm{{head}}_h)\, W^O{biased}"
        rf" = \sum_{{i}} \mathrm{{head}}_i W^O_i{biased}",
        live=rf"\mathrm{{out}}_0 = {latex.sum_of(np.array(parts)[:, 0])} = {cut.out[0]:.4f}",
        code=f"parts = [z[h] @ W_O[h * {config.d_head} : (h + 1) * {config.d_head}] for h in range({config.n_heads})]\n"
        f"out = sum(parts){biased}",
        given={"z": cut.z.reshape(config.n_heads, -1), **output_matrix(subject.checkpoint, subject.trace, site)},
    )
    lesson.ask(line(subject), folded=True)


@lab.asks("without")
def head_split_question(subject: Subject, site: str = "", head: int = 0, query: int = 0) -> lesson.Number:
    if not site:
        kind = kinds(subject.trace)[0]
        layer, head = attention_selector.usual_head(subject, kind)
        site, query = site_name(kind, layer), View().query_of(subject.trace.tokens[labels.stacks(kind)[0]])
    found = contributions(subject, site, query)
    out, part, left = (float(row[0]) for row in (found.slices.out, found.parts[head], found.without(head)))
    values = {"out": _signed(out), "part": _signed(part), "left": _signed(left)}
    wrong = {"kept": out, "added": out + part, "part": part}
    said = lab.asked("without", subject, site, head, query, wrong=wrong, number=head, query=query, **values)
    return lesson.Number(answer=left, tolerance=0.01, written=_signed, **said)


@lab.asks("line")
def line(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "join")


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _shapes(config: ModelConfig) -> None:
    """A row for every matrix; the first column of numbers is the base model of Vaswani et al. 2017, section 3.2.2."""
    names = [*lab.texts("shape", SHAPES).values(), "W_O"]
    both = (shapes(ModelConfig(**PRESETS["transformer-base"])), shapes(config))
    rows = [Row(*row) for row in zip(names, *both, strict=True)]
    columns = ("", *lab.columns("paper", "ours"))
    st.html(table.to_html(columns, rows, caption=lab.text("shapes")))


def shapes(config: ModelConfig) -> tuple[str, ...]:
    """The numbers of heads, and the shapes of the matrices of one attention, rows × columns."""
    d, d_head, heads, groups = config.d_model, config.d_head, config.n_heads, config.kv_heads
    return (
        f"{heads}, {groups}",
        f"{d} × {d_head}",
        f"{d} × {heads * d_head}",
        f"{d} × {groups * d_head}",
        f"n × {heads * d_head}",
        f"{heads * d_head} × {d}",
    )

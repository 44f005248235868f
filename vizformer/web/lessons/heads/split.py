"""The laboratory Split, attend, mix: where each head's slice of the vectors goes, and what each head adds."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.heads.residual_contributions import Contributions, output_matrix
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.figures import head_split
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import computations
from vizformer.web.lessons.heads.shapes import shapes
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, proof_badge
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def split(subject: Subject) -> None:
    """Where each head's slice goes, and what each head adds."""
    st.html(table.style())
    attention_selector.choose(subject)
    view, query, config = state.view(), attention_selector.query(subject), subject.config
    found = computations.contributions(subject, attention_selector.site(), query)
    cut = found.slices
    token = subject.trace.tokens[labels.stacks(view.kind)[0]][query].text
    rows = [
        (_("x: what goes in"), cut.x, 0),
        (_("q: the queries"), cut.q, config.n_heads),
        (_("k: its keys"), cut.k, config.kv_heads),
        (_("v: its values"), cut.v, config.kv_heads),
        (_("z: the heads' results"), cut.z, config.n_heads),
        (_("out = z W_O"), cut.out, 0),
    ]
    shown = [(name, row, slices) for name, row, slices in rows if row is not None]
    chart.show(
        figures.head_slices(
            [row for __, row, ___ in shown],
            [name for name, *__ in shown],
            [slices for *__, slices in shown],
            chosen=view.head,
            title=_("The vectors of token {query}, “{token}”", query=query, token=token),
            words=words(head_split.ENGLISH),
        ),
        key="heads.slices",
    )
    lesson.ask(without_question(found, view.head, query, f"{subject} {attention_selector.site()} {view.head} {query}"))
    names = [_("head {head}: length {norm}", head=head, norm=f"{norm:.2f}") for head, norm in enumerate(found.norms)]
    parts = [*found.parts]
    if found.bias is not None:
        names.append(_("bias b_O: length {norm}", norm=f"{found.bias_norm:.2f}"))
        parts.append(found.bias)
    chart.show(
        figures.head_parts(
            np.stack([*parts, cut.out]),
            [*names, _("their sum: out")],
            title=_("What each head adds to the {d} columns", d=config.d_model),
            words=words(head_split.ENGLISH),
        ),
        key="heads.parts",
    )
    proof_badge.show(found.proof, edited=bool(subject.edited))
    biased = found.bias is not None
    shares = [*found.shares, *([found.bias_share] if biased else [])]
    lengths = [*found.norms, *([found.bias_norm] if biased else [])]
    kinds = [_("head {head}", head=head) for head in range(config.n_heads)] + [_("bias b_O")]
    st.html(
        table.to_html(
            ("", _("length"), _("share of the sum")),
            [
                Row(
                    (kinds[i], float(lengths[i]), Number(share, f"{share:.1%}".replace("-", "−"))),
                    "marked" if i == view.head else "",
                )
                for i, share in enumerate(shares)
            ],
            bar=2,
            caption=_("How far each part goes in the direction of the sum"),
        )
    )
    shapes(config)
    lesson.formula(
        r"\mathrm{out} = [z_0; \dots; z_{h-1}]\, W_O + b_O = \sum_{h} z_h W_O^{(h)} + b_O"
        if biased
        else r"\mathrm{out} = [z_0; \dots; z_{h-1}]\, W_O = \sum_{h} z_h W_O^{(h)}",
        live=rf"\mathrm{{out}}_0 = {latex.sum_of(np.array(parts)[:, 0])} = {cut.out[0]:.4f}",
        code=f"parts = [z[h] @ W_O[h * {config.d_head} : (h + 1) * {config.d_head}] for h in range({config.n_heads})]\n"
        "out = sum(parts)" + (" + b_O" if biased else ""),
        given={
            "z": cut.z.reshape(config.n_heads, config.d_head),
            **output_matrix(subject.checkpoint, subject.trace, attention_selector.site()),
        },
    )


def without_question(found: Contributions, head: int, query: int, about: str = "") -> lesson.Number:
    """What is left of a number of the output when a head is switched off?"""
    out, part, left = (float(row[0]) for row in (found.slices.out, found.parts[head], found.without(head)))
    return lesson.Number(
        "heads",
        "without",
        _(
            "The first number of what this attention adds for token {query} is {out}. Head {head} brings {part} of it. What "
            "would it be if z of this head were 0?",
            query=query,
            out=_signed(out),
            head=head,
            part=_signed(part),
        ),
        left,
        _(
            "{out} − ({part}) = {left}. W_O multiplies each head's z by rows of its own, and the results are added up: the "
            "parts of the other heads stay as they are.",
            out=_signed(out),
            part=_signed(part),
            left=_signed(left),
        ),
        tolerance=0.01,
        written=_signed,
        about=about,
    )


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")

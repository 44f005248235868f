"""A laboratory of the lesson Tokens and embeddings: a picture cut into patches, one of them as a token, and sound."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors import signal_tokens
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("tokens", "signals")
PICTURE, SIDES, SEED = 24, (3, 4, 6, 8, 12), 0  # pixels of the picture and of a patch; of the matrix that is drawn
SIDE = 6  # pixels of a patch to begin with
SECONDS = (0.5, 1.0, 5.0, 10.0, 30.0)


@lab.draws
def draw(subject: Subject) -> None:
    with controls():
        side = lab.steps("patch", SIDES, SIDE)
        picture = signal_tokens.drawn_cat(PICTURE)
        cut = signal_tokens.patches(picture, side)
        chosen = lab.slider("chosen", 0, len(cut) - 1, 0)
    weights, rows = signal_tokens.patch_tokens(cut, subject.config.d_model, SEED)
    title = lab.text("picture", side=PICTURE, n=len(cut))
    chart.show(figures.patch_picture(picture, side, chosen, title=title), key="tokens.patches")
    lesson.ask(question(subject, side))
    st.html(
        matrix.style()
        + matrix.to_html(cut[chosen][None], caption=lab.text("row", i=chosen, n=side * side), shown=6)
        + matrix.to_html(rows[chosen][None], caption=lab.text("token", i=chosen, d=subject.config.d_model), shown=6)
    )
    terms = " + ".join(f"{p:.2f} \\cdot ({w:.3f})" for p, w in zip(cut[chosen][:2], weights[:2, 0], strict=True))
    lesson.formula(
        r"x_i = p_i W + b + P_i, \qquad W \in \mathbb{R}^{s^2 \times d_\mathrm{model}}",
        live=rf"x_{{{chosen},0}} = {terms} + \dots = {rows[chosen, 0]:.4f}",
        code=f"x_0 = (p * W_0).sum()  # p: {side} x {side} pixels; the first number of the token",
        given={"p": cut[chosen].astype(np.float32), "W_0": weights[:, 0].astype(np.float32)},
    )
    seconds = lab.steps("seconds", SECONDS, 5.0)
    lengths = [
        Row(lab.text("length.ours", side=side), f"{len(cut):,}", f"{side * side:,}"),
        Row(lab.text("length.photo"), "196", "768"),
        Row(lab.text("length.sound", seconds=f"{seconds:g}"), f"{signal_tokens.n_frames(seconds):,}", "80"),
        Row(lab.text("length.whisper"), "1,500", lab.text("length.frame")),
    ]
    columns = ("", *lab.columns("n", "numbers"))
    st.html(table.style() + table.to_html(columns, lengths, caption=lab.text("lengths")))
    lab.note("drawn")


@lab.asks("patches")
def question(subject: Subject, side: int = SIDE) -> lesson.Number:
    n, more = (PICTURE / side) ** 2, (PICTURE / (side / 2)) ** 2
    wrong = {"tokens": more / n, "side": (more / n) ** 0.5, "row": (more / n) ** 1.5}
    said = lab.asked("patches", side, wrong=wrong, side=side, n=round(n))
    return lesson.Number(answer=more**2 / n**2, **said)

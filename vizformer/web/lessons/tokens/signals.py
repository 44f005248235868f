"""Pictures and sound as tokens, in the lesson Tokens and embeddings: patches, frames, and the arithmetic of one patch."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.vectors import signal_tokens
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.figures.patches import ENGLISH
from vizformer.web.catalogue.subject import Subject
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

PICTURE, SIDES, SEED = 24, (3, 4, 6, 8, 12), 0  # pixels of the picture and of a patch; of the matrix that is drawn
SECONDS = (0.5, 1.0, 5.0, 10.0, 30.0)


@laboratory
def signals(subject: Subject) -> None:
    """A picture cut into patches, one patch as a row of numbers and as a token, and how many tokens a sound has."""
    st.html(matrix.style() + table.style())
    side = st.select_slider(_("Side of a patch, in pixels"), SIDES, **lesson.setting("tokens.patch", 6, SIDES))
    picture = signal_tokens.drawn_cat(PICTURE)
    cut = signal_tokens.patches(picture, side)
    chosen = st.slider(_("Patch"), 0, len(cut) - 1, **lesson.setting("tokens.chosen", 0, range(len(cut))))
    d_model = subject.config.d_model
    weights, rows = signal_tokens.patch_tokens(cut, d_model, SEED)
    chart.show(
        figures.patch_picture(
            picture,
            side,
            chosen,
            title=_("{side} × {side} pixels in {n} patches", side=PICTURE, n=len(cut)),
            words=words(ENGLISH),
        ),
        key="tokens.patches",
    )
    lesson.ask(patches_question(side))
    st.html(
        matrix.to_html(
            cut[chosen][None],
            caption=_("Patch {i}, laid out as a row of {n} numbers", i=chosen, n=side * side),
            shown=6,
        )
        + matrix.to_html(
            rows[chosen][None], caption=_("Token {i}: that row times W, {d} numbers", i=chosen, d=d_model), shown=6
        )
    )
    terms = " + ".join(f"{p:.2f} \\cdot ({w:.3f})" for p, w in zip(cut[chosen][:2], weights[:2, 0], strict=True))
    lesson.formula(
        r"x_i = p_i W + b + P_i, \qquad W \in \mathbb{R}^{s^2 \times d_\mathrm{model}}",
        live=rf"x_{{{chosen},0}} = {terms} + \dots = {rows[chosen, 0]:.4f}",
        code=f"x_0 = (p * W_0).sum()  # p: {side} x {side} pixels; the first number of the token",
        given={"p": cut[chosen].astype(np.float32), "W_0": weights[:, 0].astype(np.float32)},
    )
    seconds = st.select_slider(
        _("Seconds of sound"), SECONDS, **lesson.setting("tokens.seconds", 5.0, SECONDS), format_func="{:g}".format
    )
    frames = signal_tokens.n_frames(seconds)
    rows_of_table = [
        Row((_("this picture, patches of {side}", side=side), f"{len(cut):,}", f"{side * side:,}")),
        Row((_("a photo in ViT-B/16: 224 × 224 in three colours, patches of 16"), "196", "768")),
        Row(
            (_("{seconds} seconds of sound, a frame of 25 ms each 10 ms", seconds=f"{seconds:g}"), f"{frames:,}", "80")
        ),
        Row(
            (
                _("30 seconds in Whisper: 3,000 frames, two for each token after its convolutions"),
                "1,500",
                _("80 a frame"),
            )
        ),
    ]
    columns = ("", _("tokens"), _("numbers of each, before W"))
    st.html(table.to_html(columns, rows_of_table, caption=_("From signals to tokens")))
    st.caption(
        _(
            "The matrix is drawn, as before any training, with the width of the chosen model; the numbers "
            "are without the bias b and the position P. The 80 numbers of a frame are how "
            "strong 80 bands of frequencies are in it."
        )
    )


def patches_question(side: int) -> lesson.Number:
    """What happens to the number of tokens and to the map of attention when the patches shrink?"""
    n, more = (PICTURE / side) ** 2, (PICTURE / (side / 2)) ** 2
    return lesson.Number(
        "tokens",
        "patches",
        _(
            "With patches of {side} pixels there are {n} tokens. The side is halved. How many times as many cells does a "
            "map of attention then have?",
            side=side,
            n=round(n),
        ),
        more**2 / n**2,
        _(
            "Half the side makes 4 times as many patches, and every patch looks at every patch: 4 · 4 = 16 times as many "
            "cells. That is why pictures are not read pixel by pixel."
        ),
        about=str(side),
    )

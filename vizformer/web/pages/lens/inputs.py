"""Which tokens of the input the answer depends on, by gradients."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from vizformer.components import tinted_text
from vizformer.figures.tables import Table
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.pages.lens import token_choice
from vizformer.web.pages.lens.token_choice import Asked
from vizformer.web.widgets.chart import Picture, caption, take_away
from vizformer.web.widgets.laboratories import folded
from vizformer.web.widgets.map_words import tokens_with_spaces
from vizformer.web.words.i18n import _, show_info, show_note

WORK = 1.5e9  # parameters times tokens: above it the gradients take half a minute and more


def draw_inputs(subject: Subject, asked: Asked) -> None:
    """A box that is closed at first: the gradients take seconds."""
    with folded(_("Which input tokens it depends on"), key="lens.inputs") as is_open:
        if is_open:
            opened(subject, asked)


def opened(subject: Subject, asked: Asked) -> None:
    """The texts of the stacks, tinted."""
    n = sum(map(len, subject.trace.tokens.values()))
    parameters = model_cache.n_parameters(subject.model)
    if n * parameters > WORK:
        show_info(
            "Gradients of {n:,} tokens of a model of {millions:,} million parameters take too long here. In Python: "
            "vf.analysis.input_attribution.",
            n=n,
            millions=round(parameters / 1e6),
        )
        return
    found = token_choice.inputs(subject, asked.position, asked.token, against=asked.against)
    if subject.edited:
        show_note("Numbers set by hand are ignored here: this is the original model.")
    for stack, values in found.integrated.items():
        if len(found.integrated) > 1:
            st.caption(_("Source") if stack == "encoder" else _("Target"))
        label = _("The text; the tint of a token is its contribution")
        st.html(tinted_text.to_html(tokens_with_spaces(subject, stack), values, label=label))
        picture = Picture(
            f"inputs-{stack}",
            caption(_("integrated gradients")),
            arrays=partial(dict, values=values, tokens=[token.text for token in subject.trace.tokens[stack]]),
            told=partial(_told, subject.trace.tokens[stack], values),
        )
        take_away(picture, key=f"lens.inputs.{stack}")
    show_note(
        "The integral of the gradients on the straight line from the mean row of the embedding table, for "
        "all tokens, to this text (Sundararajan et al. 2017). They sum to the change of the logit of "
        "“{answer}”, compared as chosen above, from {before} to {after}; with {points} points of the "
        "integral {missing} is missing ({share} of the change).",
        answer=asked.text,
        before=f"{found.baseline:.3f}".replace("-", "−"),
        after=f"{found.value:.3f}".replace("-", "−"),
        missing=f"{found.missing:+.1g}".replace("-", "−"),
        share=f"{found.share_missing:.1%}",
        points=found.points,
    )


def _told(tokens: Sequence[Token], values: NDArray[np.floating]) -> tuple[str, Table]:
    """The tokens that add and take off most, and the number of each."""
    most, least = int(np.argmax(values)), int(np.argmin(values))
    said = _(
        "Largest: token {most} “{most_text}”, {high}. Smallest: token {least} “{least_text}”, {low}.",
        most=most,
        most_text=tokens[most].text,
        high=f"{values[most]:+.4f}",
        least=least,
        least_text=tokens[least].text,
        low=f"{values[least]:+.4f}",
    )
    rows = [(index, token.text, float(value)) for index, (token, value) in enumerate(zip(tokens, values, strict=True))]
    return said, Table((_("position"), _("token"), _("contribution")), rows, len(rows))

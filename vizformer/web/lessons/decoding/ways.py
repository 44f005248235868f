"""The laboratory Ways of choosing: greedy, beam search and sampling on one prompt, and the temperature."""

import numpy as np
import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.text import Token
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.decoding import computations
from vizformer.web.lessons.decoding.other_model import writes
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

WIDTHS = (1, 2, 4)
LAST_SEED = 999
FAR = 5.0  # times as probable as the next token: from there on a higher temperature is asked about, else a lower one


@laboratory
def ways(subject: Subject) -> None:
    """What each way writes, and how probable the model itself finds it."""
    if not writes(subject):
        return
    st.html(table.style())
    temperature = st.slider(_("Temperature T"), 0.1, 2.0, step=0.1, **lesson.setting("decoding.temperature", 1.0))
    seed = st.number_input(_("Seed"), 0, LAST_SEED, **lesson.setting("decoding.seed", 0, range(LAST_SEED + 1)))
    width = st.select_slider(_("Beam width"), WIDTHS, **lesson.setting("decoding.width", 2, WIDTHS))
    alpha = st.slider(_("Length penalty α"), 0.0, 2.0, step=0.1, **lesson.setting("decoding.alpha", 0.6))
    tokens = computations.first_token(subject, temperature)
    lesson.ask(ratio_question(subject, tokens))
    found = [(_("greedy"), computations.greedy(subject))]
    found += [
        (_("beam {width}, place {place}", width=width, place=place + 1), one)
        for place, one in enumerate(computations.beams(subject, width, alpha)[:width])
    ]
    found.append((_("drawn, seed {seed}", seed=seed), computations.sampled(subject, temperature, seed)))
    best = max(one.log_probability for __, one in found)
    rows = [
        Row(
            (
                name,
                one.text + ("" if one.ended else " …"),
                Number(one.length, str(one.length)),
                one.log_probability,
                one.score(alpha),
            ),
            "marked" if one.log_probability == best else "",
        )
        for name, one in found
    ]
    st.html(table.to_html((_("way"), _("text"), _("tokens"), "log P", _("score")), rows))
    st.caption(
        _(
            "Framed: the most probable text of these. “…”: stopped after {n} tokens, before its end mark.",
            n=computations.MOST_NEW,
        )
    )
    names = labels.told_apart([token for token, *__ in tokens])
    before, after = st.columns(2)
    for column, title, probabilities in (
        (before, _("First new token: the model's own P"), [p for __, p, ___ in tokens]),
        (after, _("The same at T = {temperature}", temperature=f"{temperature:g}"), [warmed for *__, warmed in tokens]),
    ):
        bars = [Row((name, Number(p, labels.percent(p)))) for name, p in zip(names, probabilities, strict=True)]
        column.html(table.to_html((_("token"), _("probability")), bars, bar=1, caption=title))
    __, p, warmed = tokens[0]
    lesson.formula(
        r"P_T(y) = \frac{P(y)^{1/T}}{\sum_{y'} P(y')^{1/T}} \qquad "
        r"\text{score} = \frac{\log P}{\left(\frac{5 + \text{length}}{6}\right)^{\alpha}}",
        live=rf"P_{{{temperature:g}}} = {latex.number(warmed)} \quad (P = {latex.number(p)})",
        code="warmed = p ** (1 / T)\nwarmed = warmed / warmed.sum()  # over these tokens only; the model sums over all",
        given={"p": np.array([one[1] for one in tokens]), "T": temperature},
    )
    lesson.ask(temperature_question(names[0], warmed))


def temperature_question(token: str, warmed: float) -> lesson.Choice:
    return lesson.Choice(
        "decoding",
        "temperature",
        _("At which temperature does drawing always give the greedy text?"),
        [_("at 0, in the limit"), _("at 1"), _("at 100")],
        0,
        _(
            "The smaller T, the more of the probability goes to the first token (“{token}” has {percent} now).",
            token=token,
            percent=labels.percent(warmed),
        ),
    )


def ratio_question(subject: Subject, tokens: list[tuple[Token, float, float]]) -> lesson.Number:
    """What does the temperature make of the ratio of two probabilities?"""
    first, second = labels.told_apart([token for token, *__ in tokens])[:2]
    ratio = tokens[0][1] / tokens[1][1]
    temperature = 2.0 if ratio > FAR else 0.5
    warmed = ratio ** (1 / temperature)
    return lesson.Number(
        "decoding",
        "ratio",
        _(
            "For the first new token the model finds “{first}” {ratio} times as probable as “{second}”. How many times as "
            "probable is it at the temperature T = {temperature}?",
            first=first,
            second=second,
            ratio=_written(ratio),
            temperature=f"{temperature:g}",
        ),
        warmed,
        _(
            "{ratio}^(1 ÷ {temperature}) = {warmed}: the logits are divided by T, and with them the gap between the two. T "
            "above 1 brings the probabilities nearer to each other, T below 1 drives them apart. Set the slider to "
            "{temperature} and divide the two numbers on the right.",
            ratio=_written(ratio),
            temperature=f"{temperature:g}",
            warmed=_written(warmed),
        ),
        tolerance=lesson.near(warmed, 0.1, least=0.1),
        written=_written,
        about=f"{subject}",
    )


def _written(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"

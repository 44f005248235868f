"""The laboratory of the soft look-up: five notes that can be typed over, and a head of the model as the same table."""

import numpy as np
import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import computed
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, proof_badge
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_WISHES = tuple(np.arange(-2.0, 3.5, 0.5).tolist())


def notes(temperature: float) -> None:
    """The table of notes, which can be typed over, and both answers."""
    from vizformer.explain import lookup

    names = (_("sweet"), _("cold"), _("spicy"))
    st.markdown(_("**Query**: what you are looking for"))
    dials = ("qkv.sweet", "qkv.cold", "qkv.spicy")
    query = np.array(
        [
            column.slider(name, _WISHES[0], _WISHES[-1], step=0.5, **lesson.dial(key, start, _WISHES))
            for column, name, key, start in zip(st.columns(3), names, dials, lookup.RECIPE_QUERY.tolist(), strict=True)
        ]
    )
    st.caption(_("The notes. Key: the title in numbers; value: what the note says. Type over any number."))
    titles = [_("Mango ice"), _("Apple pie"), _("Cucumber salad"), _("Chilli noodles"), _("Hot chocolate")]
    keys, values = _typed_over(titles, names)
    found = lookup.look_up(keys @ query, values, temperature=temperature)
    rows = [
        Row(
            (titles[i], found.scores[i], Number(found.weights[i], f"{found.weights[i]:.3f}"), *_plain(values[i])),
            "marked" if i == found.best else "",
        )
        for i in range(len(titles))
    ]
    rows += [
        Row((_("soft: Σ weight × value"), "", Number(1.0, "1"), *_plain(found.soft)), "sum"),
        Row((_("hard: the best row alone"), "", "", *_plain(found.hard))),
    ]
    st.html(table.to_html((_("title"), "q·k", _("weight"), _("minutes"), _("servings")), rows, bar=2))
    terms = [rf"{w:.2f} \cdot {v:g}" for w, v in zip(found.weights, values[:, 0], strict=True)]
    minutes = " + ".join([*terms[:2], r"\dots", terms[-1]])
    lesson.formula(
        r"a = \mathrm{softmax}\!\left(\frac{K q}{T}\right), \qquad o = \sum_j a_j\, v_j",
        live=rf"o_0 = {minutes} = {found.soft[0]:.2f}",
        code="weights = torch.softmax(K @ q / T, dim=0)\nanswer = weights @ V",
        given={"K": keys, "q": query, "T": temperature, "V": values},
    )


def _typed_over(titles: list[str], names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values as the reader has them; the columns are named without a language, so that changes survive it."""
    import pandas as pd

    from vizformer.explain import lookup

    keys, values = [f"k{i}" for i in range(len(names))], ["v0", "v1"]
    frame = pd.DataFrame(np.hstack([lookup.RECIPE_KEYS, lookup.RECIPE_VALUES]), columns=[*keys, *values])
    frame.insert(0, "title", titles)
    shown = dict(zip(keys, names, strict=True)) | {"v0": _("minutes"), "v1": _("servings")}
    edited = st.data_editor(
        frame,
        key="qkv.notes",
        hide_index=True,
        num_rows="fixed",
        disabled=["title"],
        column_config={"title": _("title")} | {key: st.column_config.NumberColumn(name) for key, name in shown.items()},
    )
    numbers = np.nan_to_num(edited[[*keys, *values]].to_numpy(dtype=np.float64))
    return numbers[:, : len(keys)], numbers[:, len(keys) :]


def _plain(values: np.ndarray) -> list[Number]:
    return [Number(float(value), f"{value:.4g}") for value in values]


def sentence(subject: Subject, temperature: float) -> None:
    """The tokens as rows of the table: how well each key fits, its weight, and the first numbers that come back."""
    view = state.view()
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.site)[1]])
    head = computed.look_up(
        subject, attention_selector.site(), view.head, attention_selector.query(subject), temperature
    )
    found, values = head.found, head.values[:, :2]
    shown = computed.shown_rows(found.weights)
    rows = [
        Row(
            (names[j], head.dots[j], found.scores[j], Number(found.weights[j], f"{found.weights[j]:.4f}"), *values[j]),
            "faint" if np.isneginf(found.scores[j]) else "marked" if j == found.best else "",
        )
        for j in shown
    ]
    if left := len(names) - len(shown):
        rest = 1.0 - float(found.weights[shown].sum())
        rows.append(Row((_("{n} more tokens", n=left), "", "", Number(rest, f"{rest:.4f}"), "…", "…"), "faint"))
    width = values.shape[1]
    rows += [
        Row((_("soft: z, what comes back"), "", "", Number(1.0, "1"), *found.soft[:width]), "sum"),
        Row((_("hard: the best row alone"), "", "", "", *found.hard[:width])),
    ]
    st.html(
        table.to_html(
            (_("token (key)"), "q·k", _("score"), _("weight"), *(f"v[{m}]" for m in range(width))), rows, bar=3
        )
    )
    if head.proof is None:
        st.caption(_("The model itself looks up with T = 1; the scores stand before the division by T."))
    else:
        proof_badge.show(head.proof, edited=bool(subject.edited))

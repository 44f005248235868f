"""The laboratory A soft look-up: five notes that can be typed over, and a head of the model as the same table."""

import numpy as np
import streamlit as st

from vizformer.analysis import Kind
from vizformer.analysis.heads import soft_lookup
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.qkv import computations
from vizformer.web.lessons.qkv.temperature import temperature_slider
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, lesson, proof_badge, row_names
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

_WISHES = tuple(np.arange(-2.0, 3.5, 0.5).tolist())
MOST_ROWS = 12  # of a table of keys; of longer sentences the keys with the largest weights are shown


@laboratory
def lookup(subject: Subject) -> None:
    """Five notes that are searched softly, and the same in a head of the model."""
    st.html(table.style())
    temperature = temperature_slider(st)
    notes(temperature)
    st.divider()
    st.markdown(_("**The same in the model: your sentence is the table**"))
    attention_selector.choose(subject)
    sentence(subject, temperature)
    lesson.ask(self_question(subject, state.view().kind))


def notes(temperature: float) -> None:
    """The table of notes, which can be typed over, and both answers."""
    names = (_("sweet"), _("cold"), _("spicy"))
    st.markdown(_("**Query**: what you are looking for"))
    settings, usual = ("qkv.sweet", "qkv.cold", "qkv.spicy"), soft_lookup.RECIPE_QUERY.tolist()
    query = np.array(
        [
            column.slider(name, _WISHES[0], _WISHES[-1], step=0.5, **lesson.setting(key, start, _WISHES))
            for column, name, key, start in zip(st.columns(3), names, settings, usual, strict=True)
        ]
    )
    st.caption(_("The notes. Key: the title in numbers; value: what the note says. Type over any number."))
    titles = [_("Mango ice"), _("Apple pie"), _("Cucumber salad"), _("Chilli noodles"), _("Hot chocolate")]
    keys, values = _typed_over(titles, names)
    found = soft_lookup.look_up_query(query, keys, values, temperature=temperature)
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

    keys, values = [f"k{i}" for i in range(len(names))], ["v0", "v1"]
    frame = pd.DataFrame(np.hstack([soft_lookup.RECIPE_KEYS, soft_lookup.RECIPE_VALUES]), columns=[*keys, *values])
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
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.kind)[1]])
    head = computations.look_up(
        subject, attention_selector.site(), view.head, attention_selector.query(subject), temperature
    )
    found, values = head.found, head.values[:, :2]
    shown = found.leading(MOST_ROWS)
    rows = [
        Row(
            (names[j], head.dots[j], found.scores[j], Number(found.weights[j], f"{found.weights[j]:.4f}"), *values[j]),
            "faint" if np.isneginf(found.scores[j]) else "marked" if j == found.best else "",
        )
        for j in shown
    ]
    if left := len(names) - len(shown):
        rest = found.left_by(shown)
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


def self_question(subject: Subject, kind: Kind) -> lesson.Choice | None:
    """The question: where does a query look?"""
    asked = computations.where_question(subject, kind)
    if asked is None:
        return None
    queries, keys = row_names.numbered(subject, kind), labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    weights = ", ".join(f"{keys[key]}: {asked.weights[key]:.3f}" for key in asked.keys)
    return lesson.Choice(
        "qkv",
        "self",
        _(
            "Layer {layer}, head {head}: the query is “{query}”. From which token does most come back?",
            layer=asked.layer,
            head=asked.head,
            query=queries[asked.query],
        ),
        [keys[key] for key in asked.keys],
        asked.keys.index(asked.best),
        _(
            "The weights are {weights}. A head does not search for what is the same as the query, but for what its query "
            "matrix has learned to ask for.",
            weights=weights,
        ),
        about=f"{subject} {kind}",
    )

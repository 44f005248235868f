"""The laboratory A soft look-up: five notes that can be typed over, and a head of the model as the same table."""

import numpy as np
import streamlit as st

from vizformer import analysis, figures
from vizformer.analysis import Kind, kinds
from vizformer.analysis.scores import soft_lookup
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_trace
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson, map_words, proof_badge
from vizformer.web.widgets.lab import Laboratory, aside, controls, wrong_line
from vizformer.web.words import labels

lab = Laboratory("qkv", "lookup")
TEMPERATURES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)
NOTES = ("ice", "pie", "salad", "noodles", "chocolate")
TASTES, FACTS = ("sweet", "cold", "spicy"), ("minutes", "servings")
MOST_ROWS = 12  # of a table of keys; of longer sentences the keys with the largest weights are shown


look_up = of_trace(analysis.head_look_up)
where = of_trace(analysis.where_question)


@lab.draws
def draw_soft_lookup(subject: Subject) -> None:
    st.html(table.style())
    with controls():
        wishes = zip(TASTES, soft_lookup.RECIPE_QUERY.tolist(), strict=True)
        query = np.array([lab.slider(taste, -2.0, 3.0, wish, 0.5) for taste, wish in wishes])
        temperature = lab.steps("t", TEMPERATURES, 1.0)
    _notes(query, temperature)
    st.markdown(lab.text("model"))
    why = attention_selector.choose(subject)
    _sentence(subject, temperature)
    aside(why)
    lesson.ask(soft_lookup_question(subject, state.view().kind))
    lesson.ask(by_hand(subject), folded=True)


@lab.asks("self")
def soft_lookup_question(subject: Subject, kind: Kind | None = None) -> lesson.Choice | None:
    kind = kind or kinds(subject.trace)[0]
    if (asked := where(subject, kind)) is None:
        return None
    queries, keys = map_words.numbered(subject, kind), labels.numbered(subject.trace.tokens[labels.stacks(kind)[1]])
    weights = ", ".join(f"{keys[key]}: {asked.weights[key]:.3f}" for key in asked.keys)
    place = {"layer": str(asked.layer), "head": str(asked.head), "query": queries[asked.query]}
    next_to = kind != "cross"  # whose keys stand in another text
    wrong = [
        lab.mistake(
            "self",
            "same" if keys[key] == place["query"] else "beside" if next_to and abs(key - asked.query) == 1 else "other",
            index,
            weight=f"{asked.weights[key]:.3f}",
            best=keys[asked.best],
            most=f"{asked.weights[asked.best]:.3f}",
            weights=weights,
            **place,
        )
        for index, key in enumerate(asked.keys)
        if key != asked.best
    ]
    said = lab.asked("self", subject, kind, wrong=wrong, weights=weights, **place)
    return lesson.Choice(choices=[keys[key] for key in asked.keys], answer=asked.keys.index(asked.best), **said)


@lab.asks("hand")
def by_hand(subject: Subject) -> lesson.Choice:
    return wrong_line(lab, "total", "hand")


def _notes(query: np.ndarray, temperature: float) -> None:
    """Both answers of the notes, which can be typed over below."""
    picture, titles = st.container(), list(lab.texts("notes", NOTES).values())
    lab.note("edit")
    keys, values = _typed_over(titles)
    found = soft_lookup.look_up_query(query, keys, values, temperature=temperature)
    weight, *facts = lab.columns("weight", *FACTS)
    names = [f"{title}: q·k = {score:g}" for title, score in zip(titles, found.scores.tolist(), strict=True)]
    drawn = figures.next_token_bars(names, found.weights).update_xaxes(title=weight)
    chart.show(drawn, key="qkv.notes.weights", on=picture)
    for name, answer in (("soft", found.soft), ("hard", found.hard)):
        said = ", ".join(f"{fact} {value:.4g}" for fact, value in zip(facts, answer, strict=True))
        picture.text(f"{lab.text(name)}: {said}")
    terms = [rf"{w:.2f} \cdot {v:g}" for w, v in zip(found.weights, values[:, 0], strict=True)]
    minutes = " + ".join([*terms[:2], r"\dots", terms[-1]])
    lesson.formula(
        r"a = \mathrm{softmax}\!\left(\frac{K q}{T}\right), \qquad o = \sum_j a_j\, v_j",
        live=rf"o_0 = {minutes} = {found.soft[0]:.2f}",
        code="weights = torch.softmax(K @ q / T, dim=0)\nanswer = weights @ V",
        given={"K": keys, "q": query, "T": temperature, "V": values},
    )


def _typed_over(titles: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Keys and values as the reader has them; the columns are named without a language, so that changes survive it."""
    import pandas as pd

    keys, values = [f"k{i}" for i in range(len(TASTES))], [f"v{i}" for i in range(len(FACTS))]
    frame = pd.DataFrame(np.hstack([soft_lookup.RECIPE_KEYS, soft_lookup.RECIPE_VALUES]), columns=[*keys, *values])
    frame.insert(0, "title", titles)
    names = lab.columns("title", *TASTES, *FACTS)
    shown = dict(zip(frame.columns, names, strict=True))
    numbers = {key: st.column_config.NumberColumn(name) for key, name in shown.items() if key != "title"}
    edited = st.data_editor(
        frame,
        key="qkv.notes",
        hide_index=True,
        num_rows="fixed",
        disabled=["title"],
        column_config={"title": shown["title"], **numbers},
    )
    typed = np.nan_to_num(edited[[*keys, *values]].to_numpy(dtype=np.float64))
    return typed[:, : len(keys)], typed[:, len(keys) :]


def _sentence(subject: Subject, temperature: float) -> None:
    """The tokens as rows of the table: how well each key fits, its weight, and the first numbers that come back."""
    view = state.view()
    names = labels.numbered(subject.trace.tokens[labels.stacks(view.kind)[1]])
    query = attention_selector.query(subject)
    head = look_up(subject, attention_selector.site(), view.head, query, temperature=temperature)
    found, values = head.found, head.values[:, :2]
    shown, width = found.leading(MOST_ROWS), values.shape[1]
    rows = [
        Row(
            names[j],
            head.dots[j],
            found.scores[j],
            Number(found.weights[j], f"{found.weights[j]:.4f}"),
            *values[j],
            kind="faint" if np.isneginf(found.scores[j]) else "marked" if j == found.best else "",
        )
        for j in shown
    ]
    if left := len(names) - len(shown):
        rest = found.left_by(shown)
        rows.append(Row(lab.text("more", n=left), "", "", Number(rest, f"{rest:.4f}"), "…", "…", kind="faint"))
    rows += [
        Row(lab.text("z"), "", "", Number(1.0, "1"), *found.soft[:width], kind="sum"),
        Row(lab.text("hard"), "", "", "", *found.hard[:width]),
    ]
    key, score, weight = lab.columns("key", "score", "weight")
    st.html(table.to_html((key, "q·k", score, weight, *(f"v[{m}]" for m in range(width))), rows, bar=3))
    if head.proof is None:
        lab.note("unproved")
    else:
        proof_badge.show(head.proof, edited=bool(subject.edited))

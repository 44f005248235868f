"""The laboratory Sinks: one more column in the softmax, for a row of the reader's sentence."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain import latex, mixers_by_hand
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.widgets import attention_selector, chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels
from vizformer.web.words.labels import share

lab = Laboratory("mixers", "sink")
LOWEST = 20  # by how much scores can be lowered
SHOWN = 12  # keys, those with the largest weights
CODE = """plain = torch.softmax(scores, dim=-1)
column = torch.cat([scores, torch.tensor([sink])])
weights = torch.softmax(column, dim=-1)[:-1]  # the sink has no value"""


@lab.draws
def draw_attention_sink(subject: Subject) -> None:
    """A row of scores through both softmaxes; the scores can be lowered, and the sink's set."""
    attention_selector.choose(subject, cross=False)
    view, query = state.view(), attention_selector.query(subject)
    record = subject.trace[attention_selector.site()]
    scores = mixers_by_hand.sink_row(record, view.head, query, 0.0, 0.0).scores
    picture = st.container()  # above what can be turned
    with controls():
        # few are left to the keys
        lower = lab.slider("lower", 0, LOWEST, int(np.clip(np.ceil(scores.max()) + 2, 0, LOWEST)))
        sink = lab.slider("score", -5.0, 5.0, 0.0, 0.5)
    found = mixers_by_hand.sink_row(record, view.head, query, float(lower), sink)
    keys = labels.texts(subject.trace.tokens[labels.stacks(view.kind)[1]])
    seen = np.flatnonzero(np.isfinite(found.scores))
    shown = sorted(seen[np.argsort(-found.plain[seen], kind="stable")][:SHOWN])
    both = np.stack([np.append(found.plain[shown], 0.0), np.append(found.weights[shown], found.share)])
    names = [*(f"{j} · {keys[j]}" for j in shown), lab.text("sink")]
    rows = lab.columns("plain", "weights")
    drawn = figures.attention_heatmap(both, rows, names, title=lab.text("picture"))
    with picture:
        chart.show(drawn, key="mixers.sink", title_above=True)
    written = [*(matrix.number(float(score), 2) for score in found.scores[shown]), f"{sink:g}"]
    cells = [Row(name, score, *map(share, column)) for name, score, column in zip(names, written, both.T, strict=True)]
    st.html(table.style() + table.to_html(lab.columns("key", "score", "plain", "weights"), cells, bar=3))
    lengths = {"plain": f"{found.plain_length:.2f}", "length": f"{found.length:.2f}"}
    lab.say("rest", sum=share(1 - found.share).text, share=share(found.share).text, **lengths)
    lesson.formula(
        r"a_j = \frac{e^{s_j}}{e^{s} + \sum_{j'} e^{s_{j'}}}",
        live=rf"1 - \sum_j a_j = \frac{{e^{{{latex.number(sink, 1)}}}}}{{e^{{{latex.number(sink, 1)}}} + "
        rf"{latex.number(float(np.exp(found.scores).sum()))}}} = {latex.number(found.share)}",
        code=CODE,
        given={"scores": found.scores, "sink": sink},
    )
    lesson.ask(quarter(subject))


@lab.asks("quarter")
def quarter(subject: Subject) -> lesson.Number:
    said = lab.asked("quarter", wrong={"all": 1, "sink": 0.25, "each": 1 / 3})
    return lesson.Number(answer=0.75, tolerance=0.01, written="{:.2f}".format, **said)

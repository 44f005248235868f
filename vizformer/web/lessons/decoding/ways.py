"""The laboratory Ways of choosing: greedy, beam search and sampling on one prompt, and the temperature."""

from functools import partial

import numpy as np
import streamlit as st
from torch import Tensor

from vizformer import figures
from vizformer.analysis.decoding import read_back, ways
from vizformer.analysis.decoding.ways import Written
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.explain import latex
from vizformer.generation import Sampling
from vizformer.text import Token
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject, generated
from vizformer.web.lessons.decoding.writing import MOST_NEW, greedy, say_unless_writes, writes
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("decoding", "ways")
WIDTHS = (1, 2, 4)
LAST_SEED = 999
FAR = 5.0  # times as probable as the next token: from there on a higher temperature is asked about, else a lower one


@cached
def scored(subject: Subject, ids: tuple[int, ...], ended: bool) -> Written:
    """Several ways find the same text, and of the page's own translation the trace has the logits."""
    is_own = subject.writes_its_target and ids == generated(subject).ids[: len(ids)]
    logits = first_rows(subject, len(ids)) if is_own else None
    return ways.scored(subject.checkpoint, subject.text, ids, ended, logits)


def first_rows(subject: Subject, count: int) -> Tensor:
    """The logits, [count, vocab_size], from which the first tokens of the page's own translation are chosen."""
    begin = len(subject.shape.start_ids) - 1
    return subject.trace.logits[begin : begin + count]


@cached
def sampled(subject: Subject, temperature: float, seed: int) -> Written:
    sampling = Sampling(temperature=temperature, seed=seed)
    return ways.written(subject.checkpoint, subject.text, MOST_NEW, sampling, partial(scored, subject))


def written_greedily(subject: Subject) -> Written:
    found = greedy(subject)
    return scored(subject, tuple(found.ids), found.end == "eos")


@cached
def beams(subject: Subject, width: int, alpha: float) -> list[Written]:
    return ways.beams(subject.checkpoint, subject.text, MOST_NEW, width, alpha, partial(scored, subject))


@cached
def ways_back(subject: Subject, translations: tuple[str, ...]) -> list[float]:
    return read_back.back_probabilities(subject.checkpoint, subject.text, translations)


@cached
def first_distribution(subject: Subject) -> Tensor:
    if subject.writes_its_target:
        return first_rows(subject, 1)[0].float().softmax(-1)
    return ways.first_distribution(subject.checkpoint, subject.text)


@cached
def first_token(subject: Subject, temperature: float) -> list[tuple[Token, float, float]]:
    return ways.warmed(subject.checkpoint, first_distribution(subject), temperature)


@lab.draws
def draw_ways_of_decoding(subject: Subject) -> None:
    if not say_unless_writes(lab, subject):
        return
    with controls():
        temperature = lab.slider("temperature", 0.1, 2.0, 1.0, 0.1)
        seed = st.number_input(lab.text("seed"), 0, LAST_SEED, **lab.setting("seed", 0, range(LAST_SEED + 1)))
        width = lab.steps("width", WIDTHS, 2)
        alpha = lab.slider("alpha", 0.0, 2.0, 0.6, 0.1)
    tokens = first_token(subject, temperature)
    names = labels.told_apart([token for token, *__ in tokens])
    own, warm = (np.array([one[at] for one in tokens]) for at in (1, 2))
    titles = (lab.text("first"), lab.text("warmed", temperature=f"{temperature:g}"))
    drawn = {"own": own, "warmed": warm}
    for column, title, (name, shares) in zip(st.columns(2), titles, drawn.items(), strict=True):
        chart.show(figures.next_token_bars(names, shares, title=title), key=f"decoding.first.{name}", on=column)
    lesson.ask(ratio(subject))
    found = {lab.text("greedy"): written_greedily(subject)}
    for place, one in enumerate(beams(subject, width, alpha)[:width], 1):
        found[lab.text("beam", width=width, place=place)] = one
    found[lab.text("drawn", seed=seed)] = sampled(subject, temperature, seed)
    best = max(one.log_probability for one in found.values())
    is_read_back = read_back.goes_both_ways(subject.checkpoint)
    texts = tuple(one.text for one in found.values())
    backs = ways_back(subject, texts) if is_read_back else [0.0] * len(texts)
    rows = []
    for (name, one), back in zip(found.items(), backs, strict=True):
        cells = [one.log_probability, one.score(alpha)]
        if is_read_back:
            cells += [back, one.log_probability + back]
        text, length = one.text + ("" if one.ended else " …"), Number(one.length, str(one.length))
        rows.append(Row(name, text, length, *cells, kind="marked" if one.log_probability == best else ""))
    columns = lab.columns("way", "text", "tokens", "log", "score", *(("back", "both") if is_read_back else ()))
    st.html(table.style() + table.to_html(columns, rows))
    lab.note("framed", n=MOST_NEW)
    if is_read_back:
        lab.note("read_back")
    lesson.formula(
        r"P_T(y) = \frac{P(y)^{1/T}}{\sum_{y'} P(y')^{1/T}} \qquad "
        r"\text{score} = \frac{\log P}{\left(\frac{5 + \text{length}}{6}\right)^{\alpha}}",
        live=rf"P_{{{temperature:g}}} = {latex.number(warm[0])} \quad (P = {latex.number(own[0])})",
        code="warmed = p ** (1 / T)\nwarmed = warmed / warmed.sum()  # over these tokens only; the model sums over all",
        given={"p": own, "T": temperature},
    )
    lesson.ask(limit(subject, temperature))


@lab.asks("ratio")
def ratio(subject: Subject) -> lesson.Number | None:
    if not writes(subject):
        return None
    tokens = first_token(subject, 1.0)
    first, second = labels.told_apart([token for token, *__ in tokens])[:2]
    times = tokens[0][1] / tokens[1][1]
    temperature = 2.0 if times > FAR else 0.5
    warmed = times ** (1 / temperature)
    values = {"ratio": _written(times), "temperature": f"{temperature:g}", "warmed": _written(warmed)}
    wrong = {"divided": times / temperature, "same": times, "power": min(times**temperature, 1e30)}
    said = lab.asked("ratio", subject, wrong=wrong, first=first, second=second, **values)
    return lesson.Number(answer=warmed, tolerance=lesson.near(warmed, 0.1, least=0.1), written=_written, **said)


@lab.asks("temperature")
def limit(subject: Subject, temperature: float = 1.0) -> lesson.Choice | None:
    if not writes(subject):
        return None
    tokens = first_token(subject, temperature)
    token, percent = labels.told_apart([token for token, *__ in tokens])[0], labels.percent(tokens[0][2])
    return lab.choice("temperature", ("zero", "one", "hundred"), "zero", token=token, percent=percent)


def _written(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"

"""The nine exercises of the lesson Find the error: what each program reads, and what its wrong line does to the numbers."""

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.parameter_count import BASE, Counted
from vizformer.analysis.costs.parameter_count import count as counted
from vizformer.analysis.own_steps import error_contrasts as contrasts
from vizformer.analysis.own_steps.copied_errors import run
from vizformer.analysis.own_steps.error_contrasts import Contrast
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.subject_functions import of_run
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors.exercise import READS, WRITES, Exercise, chosen_head, head_of, stack_of
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import aside
from vizformer.web.words import labels

DRAWN = 48  # positions and dimensions of the pictures
WAVES_HEIGHT = 240  # px: the program is seen below them
PARTS_COUNTED = ("encoder", "decoder", "embedding")
BLOCKS = 8  # rows and blocks of the table of joined heads


def _table(columns: Sequence[str], rows: Sequence[Row], caption: str = "") -> None:
    st.html(table.style() + table.to_html(columns, rows, caption=caption))


# --- a module ---------------------------------------------------------------------------------------------------------

dropout = Exercise("dropout", lambda subject: contrasts.dropout_given(subject.trace), stops=True)


@dropout.shows
def lengths(subject: Subject) -> None:
    """What Python says, and what the right layer makes of the reader's sentence in training and in use."""
    given = contrasts.dropout_given(subject.trace)
    wrong, right = (run("dropout", given, corrected=corrected) for corrected in (False, True))
    found = contrasts.first_lengths(right, ("first", "second", "used"))
    names = [*(dropout.text("pass", n=n) for n in (1, 2)), dropout.text("used")]
    rows = [Row(name, Number(length, f"{length:.4f}")) for name, length in zip(names, found.values(), strict=True)]
    _table(("", dropout.text("length")), [Row(dropout.text("copied"), dropout.text("stops", error=wrong.error)), *rows])


@dropout.proves
def whose_lengths(subject: Subject) -> None:
    """Which rows these are, and why their lengths differ."""
    dropout.note("lengths")


# --- a head -----------------------------------------------------------------------------------------------------------

scale = Exercise("scale", lambda subject: contrasts.head_given(*head_of(subject, READS)))


@scale.shows
def flat_weights(subject: Subject) -> None:
    """The weights of a head, flat and as they are."""
    tokens = labels.texts(subject.tokens)
    head, why = chosen_head(subject, READS)
    scale.tables(contrasts.scale_contrast(*head), tokens, tokens)
    aside(why)


@scale.proves
def two_roots(subject: Subject) -> None:
    """How flat, and by which factor."""
    head = head_of(subject, READS)
    found = contrasts.scale_contrast(*head)
    scale.proof(found)
    right, wrong = contrasts.mean_largest(found.right), contrasts.mean_largest(found.wrong)
    d_model, d_head = subject.config.d_model, subject.config.d_head
    st.latex(
        rf"\sqrt{{d_\mathrm{{model}} / d_k}} = \sqrt{{{d_model} / {d_head}}} = {math.sqrt(d_model / d_head):.2f} \qquad "
        rf"\overline{{\max_j A_{{ij}}}}: \; {right:.3f} \to {wrong:.3f}"
    )
    scale.note("largest", right=f"{right:.3f}", wrong=f"{wrong:.3f}", flat=f"{contrasts.flat_weight(*head):.3f}")


after = Exercise("after", lambda subject: contrasts.causal_given(*head_of(subject, WRITES)))


@after.shows
def lost_weights(subject: Subject) -> None:
    """The weights of a head, with rows that sum to 1 and with rows that do not."""
    tokens = labels.texts(subject.trace.tokens[stack_of(subject, WRITES)])
    head, why = chosen_head(subject, WRITES)
    after.tables(contrasts.after_contrast(*head), tokens, tokens)
    aside(why)


@after.proves
def sums_of_rows(subject: Subject) -> None:
    found = contrasts.after_contrast(*head_of(subject, WRITES))
    after.proof(found)
    sums = found.wrong.sum(axis=1)
    after.note("sums", least=matrix.number(float(sums.min())), most=matrix.number(float(sums.max())))
    st.page_link(sitemap.MASKS.file, query_params={"part": "mistakes"}, label=after.text("masks"))


cache = Exercise("cache", lambda subject: contrasts.head_given(*head_of(subject, WRITES)))


@cache.shows
def two_results(subject: Subject) -> None:
    """z of the last token, with the cache and without."""
    last = subject.trace.tokens[stack_of(subject, WRITES)][-1]
    head, why = chosen_head(subject, WRITES)
    cache.tables(contrasts.cache_contrast(*head), [last.text])
    aside(why)


@cache.proves
def first_key_alone(subject: Subject) -> None:
    """The value of the first token, which is all that the wrong z has."""
    tokens, head = subject.trace.tokens[stack_of(subject, WRITES)], head_of(subject, WRITES)
    found, value = contrasts.cache_contrast(*head), contrasts.first_value(*head)
    cache.proof(found)
    st.html(matrix.to_html(value, caption=cache.text("value"), digits=3))
    if bool((abs(found.wrong[0] - value) < 1e-6).all()):
        cache.note("first", token=tokens[-1].text, first=tokens[0].text)


# --- the paper --------------------------------------------------------------------------------------------------------

total = Exercise("total", lambda subject: contrasts.hand_given())


@total.asks("weight")
def weight_question(subject: Subject) -> lesson.Number:
    weight = float(contrasts.total_contrast().right[0])
    scores = run("total", contrasts.hand_given(), corrected=True).names["scores"]
    wrong = {"scores": float(scores[0] / scores.sum()), "even": 1 / len(scores), "power": float(scores[0].exp())}
    said = total.asked("weight", wrong=wrong)
    return lesson.Number(answer=weight, tolerance=0.01, written="{:.2f}".format, **said)


def _weights_by_hand(name: str) -> None:
    """The weights, their sum and the output of the calculation with the right line or with the wrong one."""
    found = run("total", contrasts.hand_given(), corrected=name == "right").names
    keys = (total.text("key", n=n) for n in range(len(found["weights"])))
    numbers = (*found["weights"], found["total"], found["output"])
    row = Row(total.text(f"line.{name}"), *(f"{float(number):.4f}" for number in numbers))
    _table(("", *keys, "Σ", total.text("output")), [row])


@total.shows
def weights_that_are_copied(subject: Subject) -> None:
    """The calculation by hand; the right weights would answer the first question."""
    _weights_by_hand("wrong")


@total.proves
def sums_of_weights(subject: Subject) -> None:
    """The right weights, and what the rows of the reader's sentence sum to."""
    total.proof(contrasts.total_contrast())
    _weights_by_hand("right")
    st.page_link(sitemap.PAPER.file, label=total.text("paper"))
    st.markdown(total.text("sentence"))
    head, why = chosen_head(subject, READS)
    sums = contrasts.row_sums(*head)
    total.say("sums", off=f"{sums.off:.1g}", least=f"{sums.least:.1f}", most=f"{sums.most:.1f}")
    aside(why)


count = Exercise("count", lambda subject: {}, stops=True)


@cached
def paper_count() -> Counted:
    return counted(BASE)


def _copied_counts() -> dict[str, int]:
    """The parts of the model as they are copied, and what they sum to."""
    names = run("count", {}, corrected=False).names
    found = {part: int(names[part]) for part in PARTS_COUNTED}
    return {**found, "sum": sum(found.values())}


@count.shows
def parts_that_are_copied(subject: Subject) -> None:
    """The parts, their sum, and the total that stands below them: which part is wrong would tell the line."""
    rows = [
        Row(count.text(part), Number(n, f"{n:,}"), kind="sum" if part == "sum" else "")
        for part, n in _copied_counts().items()
    ]
    stated = int(run("count", {}, corrected=False).names["total"])
    _table(("", count.text("copied")), [*rows, Row(count.text("stated"), Number(stated, f"{stated:,}"))])


@count.proves
def parts(subject: Subject) -> None:
    """The paper's base model, counted by parts and on a model of these sizes."""
    paper, rows = paper_count(), []
    for part, copied in _copied_counts().items():
        right = paper.total if part == "sum" else getattr(paper, part)
        numbers = (Number(n, f"{n:,}") for n in (copied, right))
        rows.append(
            Row(count.text(part), *numbers, kind="sum" if part == "sum" else "marked" if copied != right else "")
        )
    _table(("", count.text("copied"), count.text("line.right")), rows)
    (st.success if paper.total == paper.model else st.error)(count.text("built", n=f"{paper.model:,}"))
    st.page_link(sitemap.BLOCK.file, query_params={"part": "count"}, label=count.text("block"))


# --- the rest of the model --------------------------------------------------------------------------------------------


def _is_translator(subject: Subject) -> bool:
    return subject.config.architecture == "encoder-decoder"


def _entering(subject: Subject) -> Mapping[str, object]:
    return contrasts.embedding_given(subject.checkpoint, subject.trace)


def _wave_sizes(subject: Subject) -> dict[str, int]:
    return {"n": len(subject.tokens), "d": subject.config.d_model // 2 * 2}


waves = Exercise("waves", _wave_sizes, scaled=True)


@cached
def written_with_waves(subject: Subject, corrected: bool) -> str:
    """What a translator writes with the table of either line."""
    entering = contrasts.entering_with_waves(subject.checkpoint, subject.trace, corrected=corrected)
    return contrasts.written_with(subject.checkpoint, subject.trace, entering).text


def _two_waves(subject: Subject) -> Contrast:
    return contrasts.waves_contrast(DRAWN, min(_wave_sizes(subject)["d"], DRAWN))


@waves.shows
def two_tables(subject: Subject) -> None:
    found = _two_waves(subject)
    for column, name, values in zip(st.columns(2), ("wrong", "right"), (found.wrong, found.right), strict=True):
        picture = figures.positional_heatmap(values, title=waves.text(f"line.{name}"))
        chart.show(picture.update_layout(height=WAVES_HEIGHT), key=f"errors.waves.{name}", on=column)


@waves.proves
def written_with_both(subject: Subject) -> None:
    """What a trained translator makes of the wrong table."""
    waves.proof(_two_waves(subject))
    if _is_translator(subject):
        waves.writes(written_with_waves(subject, True), written_with_waves(subject, False))
        waves.note("trained")


embedding = Exercise("embedding", _entering, scaled=True)


embedded = of_run(contrasts.embedding_contrast)


@cached
def written_unscaled(subject: Subject, corrected: bool) -> str:
    """What a translator writes with either line."""
    entering = embedded(subject).right if corrected else embedded(subject).wrong
    return contrasts.written_with(subject.checkpoint, subject.trace, entering).text


@embedding.shows
def entering_rows(subject: Subject) -> None:
    """What enters the first layer."""
    embedding.tables(embedded(subject), labels.texts(subject.tokens))


@embedding.proves
def drowned_tokens(subject: Subject) -> None:
    """How small the tokens' rows are beside the positions, and what a trained translator writes from them."""
    embedding.proof(embedded(subject))
    ratio, d = float(run("embedding", _entering(subject), corrected=False).names["ratio"]), subject.config.d_model
    st.latex(
        rf"\frac{{\overline{{|E|}}}}{{\overline{{|P|}}}} = {ratio:.3f} \qquad "
        rf"\sqrt{{{d}}} \cdot {ratio:.3f} = {d**0.5 * ratio:.3f}"
    )
    embedding.note("ratio")
    if _is_translator(subject):
        embedding.writes(written_unscaled(subject, True), written_unscaled(subject, False))


join = Exercise("join", lambda subject: contrasts.join_given(subject.checkpoint, subject.trace))


joined = of_run(contrasts.join_contrast)


@join.shows
def joined_rows(subject: Subject) -> None:
    """The joined heads of the first layer."""
    join.tables(joined(subject), labels.texts(subject.tokens))


@join.proves
def blocks_of_rows(subject: Subject) -> None:
    """Whose numbers stand where."""
    tokens, n_heads = labels.texts(subject.tokens), subject.config.n_heads
    join.proof(joined(subject))
    rows = [
        Row(f"{row} · {tokens[row]}", *(f"{head} · {tokens[token]}" for head, token in blocks[:BLOCKS]))
        for row, blocks in enumerate(contrasts.joined_from(n_heads, len(tokens))[:BLOCKS])
    ]
    columns = (join.text("row"), *(join.text("block", n=block) for block in range(min(n_heads, BLOCKS))))
    _table(columns, rows, join.text("blocks"))

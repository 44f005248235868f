"""The nine exercises of the lesson Find the error: what each program reads, and what its wrong line does to the numbers."""

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.parameter_count import BASE, Counted
from vizformer.analysis.costs.parameter_count import count as counted
from vizformer.analysis.own_steps import error_contrasts as contrasts
from vizformer.analysis.own_steps import error_operands as operands
from vizformer.analysis.own_steps.copied_errors import run
from vizformer.analysis.own_steps.error_contrasts import Contrast
from vizformer.components import matrix, table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import sitemap
from vizformer.web.lessons.errors.exercise import READS, WRITES, Exercise, chosen_head, head_of, stack_of
from vizformer.web.widgets import chart, lesson
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.figure_words import words

DRAWN = 48  # positions and dimensions of the pictures
BLOCKS = 8  # rows and blocks of the table of joined heads


def _table(columns: Sequence[str], rows: Sequence[Row], caption: str = "") -> None:
    st.html(table.style() + table.to_html(columns, rows, caption=caption))


# --- a module ---------------------------------------------------------------------------------------------------------

dropout = Exercise("dropout", lambda subject: operands.dropout_given(subject.trace), stops=True)


@dropout.proves
def lengths(subject: Subject) -> None:
    """What Python says, and two passes of the corrected layer over the reader's sentence."""
    given = operands.dropout_given(subject.trace)
    wrong, right = (run("dropout", given, corrected=corrected) for corrected in (False, True))
    found = contrasts.first_lengths(right, ("first", "second", "used"))
    names = [*(dropout.text("pass", n=n) for n in (1, 2)), dropout.text("used")]
    rows = [Row((name, Number(length, f"{length:.4f}"))) for name, length in zip(names, found.values(), strict=True)]
    _table(("", dropout.text("length")), [Row((dropout.text("copied"), wrong.error)), *rows])
    dropout.note("lengths")


# --- a head -----------------------------------------------------------------------------------------------------------

scale = Exercise("scale", lambda subject: operands.head_given(*head_of(subject, READS)))


@scale.proves
def flat_weights(subject: Subject) -> None:
    """The weights of a head, flat and as they are."""
    head = chosen_head(subject, READS)
    found, tokens = contrasts.scale_contrast(*head), labels.texts(subject.tokens)
    scale.tables(found, tokens, tokens)
    right, wrong = contrasts.mean_largest(found.right), contrasts.mean_largest(found.wrong)
    d_model, d_head = subject.config.d_model, subject.config.d_head
    st.latex(
        rf"\sqrt{{d_\mathrm{{model}} / d_k}} = \sqrt{{{d_model} / {d_head}}} = {math.sqrt(d_model / d_head):.2f} \qquad "
        rf"\overline{{\max_j A_{{ij}}}}: \; {right:.3f} \to {wrong:.3f}"
    )
    scale.note("largest", right=f"{right:.3f}", wrong=f"{wrong:.3f}", flat=f"{contrasts.flat_weight(*head):.3f}")


after = Exercise("after", lambda subject: operands.causal_given(*head_of(subject, WRITES)))


@after.proves
def lost_weights(subject: Subject) -> None:
    """The weights of a head, with rows that sum to 1 and with rows that do not."""
    tokens = labels.texts(subject.trace.tokens[stack_of(subject, WRITES)])
    found = contrasts.after_contrast(*chosen_head(subject, WRITES))
    after.tables(found, tokens, tokens)
    sums = found.wrong.sum(axis=1)
    after.note("sums", least=matrix.number(float(sums.min())), most=matrix.number(float(sums.max())))
    st.page_link(sitemap.MASKS.file, query_params={"part": "mistakes"}, label=after.text("masks"))


cache = Exercise("cache", lambda subject: operands.head_given(*head_of(subject, WRITES)))


@cache.proves
def first_key_alone(subject: Subject) -> None:
    """z of the last token, from one key and from all of them."""
    tokens, head = subject.trace.tokens[stack_of(subject, WRITES)], chosen_head(subject, WRITES)
    found, value = contrasts.cache_contrast(*head), contrasts.first_value(*head)
    cache.tables(found, [tokens[-1].text])
    st.html(matrix.to_html(value, caption=cache.text("value"), digits=3))
    if bool((abs(found.wrong[0] - value) < 1e-6).all()):
        cache.note("first", token=plain(tokens[-1].text), first=plain(tokens[0].text))


# --- the paper --------------------------------------------------------------------------------------------------------

total = Exercise("total", lambda subject: operands.hand_given())


@total.asks("weight")
def weight_question(subject: Subject) -> lesson.Number:
    """Which weight does a softmax give?"""
    weight = float(contrasts.total_contrast().right[0])
    return lesson.Number(answer=weight, tolerance=0.01, written="{:.2f}".format, **total.asked("weight"))


@total.proves
def sums_of_weights(subject: Subject) -> None:
    """The calculation by hand that is copied, and what the rows of the reader's sentence sum to."""
    total.proof(contrasts.total_contrast())
    rows = []
    for name, corrected in (("right", True), ("wrong", False)):
        found = run("total", operands.hand_given(), corrected=corrected).names
        numbers = (*found["weights"], found["total"], found["output"])
        rows.append(Row((total.text(f"line.{name}"), *(f"{float(number):.4f}" for number in numbers))))
    keys = (total.text("key", n=n) for n in range(len(rows[0].cells) - 3))
    _table(("", *keys, "Σ", total.text("output")), rows)
    st.page_link(sitemap.PAPER.file, label=total.text("paper"))
    st.markdown(total.text("sentence"))
    sums = contrasts.row_sums(*chosen_head(subject, READS))
    total.say("sums", off=f"{sums.off:.1g}", least=f"{sums.least:.1f}", most=f"{sums.most:.1f}")


count = Exercise("count", lambda subject: {}, stops=True)


@cached
def paper_count() -> Counted:
    return counted(BASE)


@count.proves
def parts(subject: Subject) -> None:
    """The paper's base model, counted by parts and on a model of these sizes."""
    names, paper = run("count", {}, corrected=False).names, paper_count()
    counts = {part: (names[part], getattr(paper, part)) for part in ("encoder", "decoder", "embedding")}
    counts["sum"] = sum(wrong for wrong, _right in counts.values()), paper.total
    rows = [
        Row(
            (count.text(part), *(Number(n, f"{n:,}") for n in (wrong, right))),
            "sum" if part == "sum" else "marked" if wrong != right else "",
        )
        for part, (wrong, right) in counts.items()
    ]
    _table(("", count.text("copied"), count.text("line.right")), rows)
    (st.success if paper.total == paper.model else st.error)(count.text("built", n=f"{paper.model:,}"))
    st.page_link(sitemap.BLOCK.file, query_params={"part": "count"}, label=count.text("block"))


# --- the rest of the model --------------------------------------------------------------------------------------------


def _is_translator(subject: Subject) -> bool:
    return subject.config.architecture == "encoder-decoder"


def _entering(subject: Subject) -> Mapping[str, object]:
    return operands.embedding_given(subject.checkpoint, subject.trace)


def _wave_sizes(subject: Subject) -> dict[str, int]:
    return {"n": len(subject.tokens), "d": subject.config.d_model // 2 * 2}


waves = Exercise("waves", _wave_sizes, scaled=True)


@cached
def written_with_waves(subject: Subject, corrected: bool) -> str:
    """What a translator writes with the table of either line."""
    entering = contrasts.entering_with_waves(subject.checkpoint, subject.trace, corrected=corrected)
    return contrasts.written_with(subject.checkpoint, subject.trace, entering).text


@waves.proves
def two_tables(subject: Subject) -> None:
    """Both tables, and what a trained translator makes of the wrong one."""
    found = contrasts.waves_contrast(DRAWN, min(_wave_sizes(subject)["d"], DRAWN))
    waves.proof(found)
    for column, name, values in zip(st.columns(2), ("right", "wrong"), (found.right, found.wrong), strict=True):
        picture = figures.positional_heatmap(values, title=waves.text(f"line.{name}"), words=words(figures.ENGLISH))
        chart.show(picture, key=f"errors.waves.{name}", on=column)
    if _is_translator(subject):
        waves.writes(written_with_waves(subject, True), written_with_waves(subject, False))
        waves.note("trained")


embedding = Exercise("embedding", _entering, scaled=True)


@cached
def embedded(subject: Subject) -> Contrast:
    """What enters the first layer."""
    return contrasts.embedding_contrast(subject.checkpoint, subject.trace)


@cached
def written_unscaled(subject: Subject, corrected: bool) -> str:
    """What a translator writes with either line."""
    entering = embedded(subject).right if corrected else embedded(subject).wrong
    return contrasts.written_with(subject.checkpoint, subject.trace, entering).text


@embedding.proves
def drowned_tokens(subject: Subject) -> None:
    """What enters the first layer, and what a trained translator writes from it."""
    embedding.tables(embedded(subject), labels.texts(subject.tokens))
    ratio, d = float(run("embedding", _entering(subject), corrected=False).names["ratio"]), subject.config.d_model
    st.latex(
        rf"\frac{{\overline{{|E|}}}}{{\overline{{|P|}}}} = {ratio:.3f} \qquad "
        rf"\sqrt{{{d}}} \cdot {ratio:.3f} = {d**0.5 * ratio:.3f}"
    )
    embedding.note("ratio")
    if _is_translator(subject):
        embedding.writes(written_unscaled(subject, True), written_unscaled(subject, False))


join = Exercise("join", lambda subject: operands.join_given(subject.checkpoint, subject.trace))


@cached
def joined(subject: Subject) -> Contrast:
    """The joined heads of the first layer."""
    return contrasts.join_contrast(subject.checkpoint, subject.trace)


@join.proves
def blocks_of_rows(subject: Subject) -> None:
    """The joined heads of the first layer, and whose numbers stand where."""
    tokens, n_heads = labels.texts(subject.tokens), subject.config.n_heads
    join.tables(joined(subject), tokens)
    rows = [
        Row((f"{row} · {tokens[row]}", *(f"{head} · {tokens[token]}" for head, token in blocks[:BLOCKS])))
        for row, blocks in enumerate(contrasts.joined_from(n_heads, len(tokens))[:BLOCKS])
    ]
    columns = (join.text("row"), *(join.text("block", n=block) for block in range(min(n_heads, BLOCKS))))
    _table(columns, rows, join.text("blocks"))

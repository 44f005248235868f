"""Six ways to tell positions, in the lesson Positions: what each adds, where, and what that does to the scores."""

import math
from collections.abc import Sequence

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.figures import clocks
from vizformer.options.positions import Positions
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computations
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

PICTURE = "positions.picture"  # one chart that changes: quicker in the browser than another chart for each scheme
HEADS, PAIRS, FURTHEST, SHIFTS = 4, 8, 127, 64  # of the small models; distances and shifts that are shown


def names() -> dict[Positions, str]:
    """What the schemes are called."""
    return {
        "none": _("none"),
        "sinusoidal": _("sinusoidal"),
        "learned": _("learned"),
        "rope": "RoPE",
        "alibi": "ALiBi",
        "relative": _("T5 buckets"),
    }


def choose(setting: str, default: Positions) -> Positions:
    """The control that selects a scheme."""
    titles = names()
    chosen = st.segmented_control(
        _("Positions"),
        computations.SCHEMES,
        format_func=titles.__getitem__,
        required=True,
        **lesson.setting(setting, default, computations.SCHEMES),
    )
    return chosen or default


def choose_pair(numbered: Sequence[str], query: str, key: str) -> tuple[int, int]:
    """The boxes for a query and for a key that is not after it, under these labels."""
    last = len(numbered) - 1

    def box(label: str, setting: str, default: int, options: range) -> int:
        kept = lesson.setting(setting, default, options)
        chosen: int = st.selectbox(label, options, format_func=numbered.__getitem__, **kept)
        return chosen

    m = box(query, "positions.query", last, range(last + 1))
    return m, box(key, "positions.key", 0, range(m + 1))


@laboratory
def options(subject: Subject) -> None:
    """What the chosen scheme adds, with the numbers of the sentence, and its effect on the scores."""
    st.html(matrix.style())
    scheme = choose("positions.way", "rope")
    tokens = computations.words_only(subject)[: computations.MOST]
    ids, numbered = tuple(token.id for token in tokens), labels.numbered(tokens)
    vocab_size = subject.config.input_vocab_size
    i, j = choose_pair(numbered, _("Query i"), _("Key j"))
    with st.popover(_("More")):
        head = st.selectbox(_("Head"), range(HEADS), **lesson.setting("positions.head", 1, range(HEADS)))
        pair = 0
        if scheme == "rope":
            pair = st.slider(_("Pair m"), 0, PAIRS - 1, **lesson.setting("positions.rope_pair", 0, range(PAIRS)))
    place = {
        "none": _("Nothing is added anywhere. Only the causal mask, if there is one, betrays the order."),
        "sinusoidal": _("Added to the input, once: a fixed row for each position."),
        "learned": _(
            "Added to the input, once: a learned row for each position. There are {n} rows here; position {n} "
            "has none.",
            n=len(computations.learned_rows()),
        ),
        "rope": _("Turns every query and key, in every layer. Values and the input stay as they are."),
        "alibi": _(
            "Taken off the scores, in every layer: a fixed slope per head times the distance. Nothing is learned."
        ),
        "relative": _("Added to the scores, in every layer: a learned number per head and bucket of distances."),
    }[scheme]
    if scheme == "rope":
        rope(vocab_size, ids, head, pair, i, j, place)
    else:
        picture(scheme)
        st.markdown(place)
        worked_out(scheme, vocab_size, ids, head, i, j)
    lesson.ask(penalty_question(subject))
    if scheme == "none":
        return
    effect = computations.effect(scheme, vocab_size, ids)[head]
    st.markdown(_("**{scheme}: the effect on the scores of head {head}**", scheme=names()[scheme], head=head))
    chart.show(
        figures.token_pairs(
            effect, numbered, row_title=_("query"), column_title=_("key"), words=words(figures.ENGLISH)
        ),
        key="positions.effect",
    )
    st.caption(
        _(
            "Scores of the first layer of a small causal model with these positions, less the scores of the same weights "
            "without. Empty cells are the future, masked. The weights are drawn from a fixed seed; the learned rows and "
            "T5's biases are those of the trained models of part 7."
        )
    )
    if scheme == "relative":
        found, texts = computations.buckets(len(tokens)).astype(np.float64), labels.texts(tokens)
        st.html(
            matrix.to_html(found, rows=texts, columns=texts, caption=_("Buckets of your sentence"), digits=0, shown=10)
        )


def penalty_question(subject: Subject) -> lesson.CellChoice | None:
    """From which score does ALiBi take most?"""
    tokens = computations.words_only(subject)[:LARGEST]
    if len(tokens) < 2:
        return None
    texts, last = labels.texts(tokens), len(tokens) - 1
    shares, slope = computations.penalties(len(tokens), HEADS)
    return lesson.CellChoice(
        "positions",
        "penalty",
        _(
            "ALiBi takes something off the scores: the more, the farther the key stands from the query. Rows are queries, "
            "columns are keys; the model is causal. From which score is most taken off?"
        ),
        lesson.Grid(texts, texts, shares),
        (last, 0),
        _(
            "The last query and the first key are {distance} positions apart, the most that there is: head 0 takes {slope} "
            "· {distance} = {most} off. The cells show each penalty as a share of that; those of the future are masked.",
            distance=last,
            slope=f"{slope:g}",
            most=f"{slope * last:g}",
        ),
        about=f"{subject.model} {subject.text}",
    )


def worked_out(scheme: Positions, vocab_size: int, ids: tuple[int, ...], head: int, i: int, j: int) -> None:
    """The scheme in symbols, with the numbers of the chosen query and key, and as code."""
    plain_score = r"\frac{q_i \cdot k_j}{\sqrt{d_\mathrm{head}}}"
    if scheme == "none":
        lesson.formula(rf"s_{{ij}} = {plain_score}")
    elif scheme in ("sinusoidal", "learned"):
        e, added = computations.inputs(scheme, vocab_size, ids)
        d_model, here = e.shape[1], math.sqrt(e.shape[1]) * float(e[i, 0])
        lesson.formula(
            r"x_{pos} = \sqrt{d_\mathrm{model}}\, E[t_{pos}] + P_{pos}",
            live=rf"x_{{{i},0}} = {here:.4f} {added[i, 0]:+.4f} = {here + added[i, 0]:.4f}",
            code=f"x = math.sqrt({d_model}) * e + P  # e: the embeddings of your tokens",
            given={"e": e, "P": added},
        )
    elif scheme == "alibi":
        slope = 2.0 ** (-8 * (head + 1) / HEADS)
        lesson.formula(
            rf"s_{{ij}} = {plain_score} - m_h\,|i - j|, \qquad m_h = 2^{{-8(h+1)/n_\mathrm{{heads}}}}",
            live=rf"m_{{{head}}} = 2^{{-{8 * (head + 1)}/{HEADS}}} = {slope:.6g}, \qquad"
            rf" -m_{{{head}}} \cdot |{i} - {j}| = {-slope * abs(i - j):.4f}",
            code=f"i, j, head, n_heads = {i}, {j}, {head}, {HEADS}\n"
            "bias = -(2.0 ** (-8 * (head + 1) / n_heads)) * abs(i - j)",
        )
    else:
        bucket = int(computations.buckets(i + 1)[i, j])
        bias = float(computations.biases("relative", max(FURTHEST, i - j))[head, i - j])
        lesson.formula(
            rf"s_{{ij}} = {plain_score} + b_h[\mathrm{{bucket}}(i - j)]",
            live=rf"\mathrm{{bucket}}({i} - {j}) = {bucket}, \qquad b_{{{head}}}[{bucket}] = {bias:.4f}",
            code=f"i, j, head = {i}, {j}, {head}\n"
            "buckets, furthest = 32, 128\nexact = buckets // 2  # so many distances have a bucket each\n"
            "distance = torch.tensor(i - j)\n"
            "stretch = torch.log(distance.clamp(min=1).double() / exact) / math.log(furthest / exact)\n"
            "far = (exact + (stretch * (buckets - exact)).long()).clamp(max=buckets - 1)\n"
            "bucket = torch.where(distance < exact, distance, far)\nbias = table[bucket, head]",
            given={"table": computations.relative_table()},
        )


def rope(vocab_size: int, ids: tuple[int, ...], head: int, pair: int, i: int, j: int, place: str) -> None:
    """A pair of the query and of the key as arrows, turned by their positions; both moved on together."""
    shift = st.slider(_("Move both on by"), 0, SHIFTS, **lesson.setting("positions.shift", 5, range(SHIFTS + 1)))
    here = computations.rotary(vocab_size, ids, head, pair, i, j, (i, j))
    moved = computations.rotary(vocab_size, ids, head, pair, i, j, (i + shift, j + shift))
    chart.show(
        figures.turned_arrows({"q": moved.query, "k": moved.key}, words=words(clocks.ENGLISH)),
        key=PICTURE,
    )
    st.markdown(place)
    omega, change = 10_000.0 ** (-pair / PAIRS), abs(moved.score - here.score)
    lesson.formula(
        r"\begin{aligned} q'_m = R(i\,\omega_m)\, q_m, \quad k'_m = R(j\,\omega_m)\, k_m& \\"
        r" q'_m \cdot k'_m = q_m \cdot R\big((j - i)\,\omega_m\big)\, k_m& \end{aligned}",
        live=rf"\begin{{aligned}} \omega_{{{pair}}} = {omega:.4g}, \quad s_{{{i},{j}}} &= {here.score:.5f} \\"
        rf" s_{{{i + shift},{j + shift}}} &= {moved.score:.5f} \end{{aligned}}",
        code="def turned(x, position):\n"
        f"    m = torch.arange({PAIRS})  # pair m: numbers m and m + {PAIRS}\n"
        f"    phi = position * 10000.0 ** (-2 * m / {2 * PAIRS})\n"
        "    first, second = x.chunk(2)\n"
        "    return torch.cat([first * phi.cos() - second * phi.sin(), first * phi.sin() + second * phi.cos()])\n\n"
        f"score = turned(q, {i + shift}) @ turned(k, {j + shift}) / math.sqrt({2 * PAIRS})",
        given=computations.unturned(vocab_size, ids, head, i, j),
    )
    st.success(
        _(
            "Both moved on by {shift}: the score of the whole head changes by {change}. This pair alone gives {part} of "
            "q · k, before and after.",
            shift=shift,
            change=f"{change:.1e}" if change else "0",
            part=matrix.number(here.part),
        )
    )


def picture(scheme: Positions) -> None:
    """What the scheme consists of: its rows, or its numbers by distance."""
    if scheme == "none":
        return
    if scheme in ("sinusoidal", "learned"):
        learned = scheme == "learned"
        pairs = {"dimension": _("position"), "encoding": _("positions {position} and {dimension}: {value}")}
        figure = figures.positional_heatmap(
            computations.cosines(learned),
            end=1.0,
            title=_("How alike the learned rows are (cosine)") if learned else _("How alike the rows are (cosine)"),
            words={**words(figures.ENGLISH), **pairs},
        )
    else:
        fixed = scheme == "alibi"
        by_distance = computations.biases(scheme, FURTHEST)
        figure = figures.line_curves(
            np.arange(FURTHEST + 1),
            {_("head {head}", head=h): by_distance[h] for h in range(HEADS)},
            place_title=_("distance i − j, in positions"),
            value_title=_("added to the score"),
            hover=_("{name}: {value} at distance {place}"),
            title=_("The slopes of ALiBi") if fixed else _("What training made of T5's biases"),
            height=320,
            mark=None if fixed else (computations.measured()["trained"] - 0.5, _("training ended here")),
        )
    chart.show(figure, key=PICTURE)

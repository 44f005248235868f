"""A laboratory of the lesson Positions: six ways to tell positions, what each adds, and what that does to the scores."""

import math

import numpy as np
import streamlit as st
from jaxtyping import Float, Int

from vizformer import figures
from vizformer.analysis import positions
from vizformer.components import matrix
from vizformer.options import Positions
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions.past_trained_length import measured
from vizformer.web.lessons.positions.sinusoid import SCHEMES, choose_pair, code, small, tiny, words_only
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.cell_question import LARGEST
from vizformer.web.widgets.choices import more
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("positions", "options")
PICTURE = "positions.picture"  # one chart that changes: quicker in the browser than another chart for each scheme
HEADS, PAIRS, FURTHEST, SHIFTS = 4, 8, 127, 64  # of the small models; distances and shifts that are shown
SCORE = r"\frac{q_i \cdot k_j}{\sqrt{d_\mathrm{head}}}"
Ids = tuple[int, ...]


@cached
def effect(scheme: Positions, vocab_size: int, ids: Ids) -> Float[np.ndarray, "n_heads n n"]:
    """What the scheme adds to each score of the untrained causal model's first layer."""
    return positions.score_effect(small(scheme, vocab_size, True, trained=True), ids)


@cached
def inputs(scheme: Positions, vocab_size: int, ids: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the untrained model, and the rows that the scheme adds to them once they are scaled [n, 64] each."""
    return positions.input_rows(small(scheme, vocab_size, True, trained=True), ids)


@cached
def unturned(vocab_size: int, ids: Ids) -> tuple[np.ndarray, np.ndarray]:
    """The queries and the keys of the first layer before they are turned."""
    return positions.unturned(small("rope", vocab_size, True), ids)


@cached
def biases(scheme: Positions, furthest: int) -> Float[np.ndarray, "n_heads distances"]:
    """What the trained model adds to the score of a key 0..furthest positions back."""
    return positions.bias_by_distance(tiny(scheme).model, furthest)


@cached
def buckets(n: int) -> Int[np.ndarray, "n n"]:
    """T5's bucket of each pair of positions."""
    config = tiny("relative").model.config
    return positions.bucket_map(n, config.relative_buckets, config.relative_max_distance, both_sides=False)


@cached
def learned_rows() -> Float[np.ndarray, "positions d_model"]:
    return positions.position_tables(tiny("learned").model)[0].numpy()


@cached
def cosines(learned: bool) -> Float[np.ndarray, "n n"]:
    """Cosines between the trained rows of positions, or between as many rows of the sinusoidal code."""
    return positions.cosines(learned_rows() if learned else code(*learned_rows().shape))


@lab.draws
def draw_schemes(subject: Subject) -> None:
    tokens, vocab_size = words_only(subject), subject.config.input_vocab_size
    ids, numbered = tuple(token.id for token in tokens), labels.numbered(tokens)
    with controls():
        scheme = lab.buttons("way", lab.texts("scheme", SCHEMES), "rope")
        i, j = choose_pair(lab, numbered)
    shift = lab.slider("shift", 0, SHIFTS, 5) if scheme == "rope" else 0
    with more():
        head = lab.box("head", [str(head) for head in range(HEADS)], 1)
        pair = lab.slider("rope_pair", 0, PAIRS - 1, 0) if scheme == "rope" else 0
    place = lab.text(f"place.{scheme}", n=len(learned_rows()))
    if scheme == "rope":
        _rope(vocab_size, ids, head, pair, (i, j), shift, place)
    else:
        _picture(scheme)
        st.markdown(place)
        _worked_out(scheme, vocab_size, ids, head, i, j)
    lesson.ask(schemes_question(subject))
    if scheme == "none":
        return
    st.markdown(lab.text("effect", scheme=lab.text(f"scheme.{scheme}"), head=head))
    chart.show(
        figures.token_pairs(
            effect(scheme, vocab_size, ids)[head],
            numbered,
            row_title=lab.text("rows"),
            column_title=lab.text("columns"),
        ),
        key="positions.effect",
    )
    lab.note("model")
    if scheme == "relative":
        found, texts = buckets(len(tokens)).astype(np.float64), labels.texts(tokens)
        shown = matrix.to_html(found, rows=texts, columns=texts, caption=lab.text("buckets"), digits=0, shown=10)
        st.html(matrix.style() + shown)


@lab.asks("penalty")
def schemes_question(subject: Subject) -> lesson.CellChoice | None:
    texts = labels.texts(words_only(subject)[:LARGEST])
    last = len(texts) - 1
    if not last:
        return None
    shares, slope = positions.alibi_penalties(len(texts), HEADS)
    values = {"distance": last, "slope": f"{slope:g}", "most": f"{slope * last:g}"}
    said = lab.asked("penalty", subject.model, subject.text, **values)
    return lesson.CellChoice(grid=lesson.Grid(texts, texts, shares), answer=(last, 0), **said)


def _worked_out(scheme: Positions, vocab_size: int, ids: Ids, head: int, i: int, j: int) -> None:
    """The scheme in symbols, with the numbers of the chosen query and key, and as code."""
    if scheme == "none":
        lesson.formula(rf"s_{{ij}} = {SCORE}")
    elif scheme in ("sinusoidal", "learned"):
        e, added = inputs(scheme, vocab_size, ids)
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
            rf"s_{{ij}} = {SCORE} - m_h\,|i - j|, \qquad m_h = 2^{{-8(h+1)/n_\mathrm{{heads}}}}",
            live=rf"m_{{{head}}} = 2^{{-{8 * (head + 1)}/{HEADS}}} = {slope:.6g}, \qquad"
            rf" -m_{{{head}}} \cdot |{i} - {j}| = {-slope * abs(i - j):.4f}",
            code=f"i, j, head, n_heads = {i}, {j}, {head}, {HEADS}\n"
            "bias = -(2.0 ** (-8 * (head + 1) / n_heads)) * abs(i - j)",
        )
    else:
        bucket = int(buckets(i + 1)[i, j])
        bias = float(biases("relative", max(FURTHEST, i - j))[head, i - j])
        lesson.formula(
            rf"s_{{ij}} = {SCORE} + b_h[\mathrm{{bucket}}(i - j)]",
            live=rf"\mathrm{{bucket}}({i} - {j}) = {bucket}, \qquad b_{{{head}}}[{bucket}] = {bias:.4f}",
            code=f"i, j, head = {i}, {j}, {head}\n"
            "buckets, furthest = 32, 128\nexact = buckets // 2  # so many distances have a bucket each\n"
            "distance = torch.tensor(i - j)\n"
            "stretch = torch.log(distance.clamp(min=1).double() / exact) / math.log(furthest / exact)\n"
            "far = (exact + (stretch * (buckets - exact)).long()).clamp(max=buckets - 1)\n"
            "bucket = torch.where(distance < exact, distance, far)\nbias = table[bucket, head]",
            given={"table": positions.position_tables(tiny("relative").model)[0]},
        )


def _rope(vocab_size: int, ids: Ids, head: int, pair: int, at: tuple[int, int], shift: int, place: str) -> None:
    """A pair of the query and of the key as arrows, turned by their positions; both moved on together."""
    (i, j), queries_keys = at, unturned(vocab_size, ids)
    q, k = (rows[head, position] for rows, position in zip(queries_keys, at, strict=True))
    here, moved = (positions.rotary_pair(q, k, pair, (i + by, j + by)) for by in (0, shift))
    arrows = figures.turned_arrows({"q": moved.query, "k": moved.key})
    chart.show(arrows, key=PICTURE)
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
        given={"q": q, "k": k},
    )
    change_said = f"{change:.1e}" if change else "0"
    st.success(lab.text("checked", shift=shift, change=change_said, part=matrix.number(here.part)))


def _picture(scheme: Positions) -> None:
    """Draws the numbers of a positional scheme: its rows, or its values by distance."""
    if scheme == "none":
        return
    if scheme in ("sinusoidal", "learned"):
        said = {"dimension": lab.text("alike.axis"), "encoding": lab.text("alike.hover")}
        title = lab.text(f"alike.{scheme}")
        figure = figures.positional_heatmap(cosines(scheme == "learned"), end=1.0, title=title, words=said)
    else:
        added = biases(scheme, FURTHEST)
        figure = figures.line_curves(
            np.arange(FURTHEST + 1),
            {lab.text("curve", head=head): added[head] for head in range(HEADS)},
            place_title=lab.text("apart"),
            value_title=lab.text("added"),
            hover=lab.text("hover"),
            title=lab.text(f"slopes.{scheme}"),
            mark=None if scheme == "alibi" else (measured()["trained"] - 0.5, lab.text("ended")),
        )
    chart.show(figure, key=PICTURE)

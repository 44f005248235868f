"""The sinusoidal code in the lesson Positions: its waves, its clock hands, its dot products."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix
from vizformer.figures import clocks
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.positions import computed
from vizformer.web.link.whole_number import whole
from vizformer.web.widgets import lesson
from vizformer.web.words import labels
from vizformer.web.words.errors import guarded, plain
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

WIDTHS = (8, 16, 32, 64, 128, 256, 512)
SPANS = (16, 64, 256, 1024)
STILL = {"displayModeBar": False}
MOST_PAIRS, CLOCKS, FURTHEST, MOST_ROWS = 5, 8, 64, 128


def width(subject: Subject) -> int:
    """The slider of d_model; it begins where the model stands."""
    config = model_cache.options(subject.model)
    own = config.positions == "sinusoidal" and config.d_model in WIDTHS
    default = config.d_model if own else 64
    chosen: int = st.select_slider(
        _("Width of the code, d_model"), WIDTHS, **lesson.dial("positions.d", default, WIDTHS)
    )
    if own and chosen == config.d_model:
        st.caption(_("{model} adds exactly this code to its embeddings.", model=plain(sources.title(subject.model))))
    elif own:
        st.caption(
            _(
                "{model} adds the code of width {d} to its embeddings.",
                model=plain(sources.title(subject.model)),
                d=config.d_model,
            )
        )
    else:
        st.caption(
            _(
                "{model} tells its positions in another way (part 5); the code of 2017 is worked out here anyway.",
                model=plain(sources.title(subject.model)),
            )
        )
    return chosen


def position() -> int:
    chosen: int = st.slider(_("Position pos"), 0, FURTHEST - 1, **lesson.dial("positions.pos", 3, range(FURTHEST)))
    return chosen


def chosen_pairs(d: int) -> tuple[int, ...]:
    """Which pairs of dimensions are drawn."""
    default = tuple(sorted({0, d // 16, d // 8, d // 4}))
    written = str(lesson.value("positions.pairs", "")).split(",")
    read = (whole(pair, d // 2 - 1) for pair in written)
    known = tuple(dict.fromkeys(pair for pair in read if pair is not None))[:MOST_PAIRS] or default
    key = f"positions.pairs.{d}"
    if tuple(st.session_state.get(key, ())) != known:
        st.session_state[key] = list(known)
    st.multiselect(
        _("Pairs of dimensions"),
        range(d // 2),
        max_selections=MOST_PAIRS,
        key=key,
        on_change=_take_pairs,
        args=(key,),
        format_func=lambda pair: f"{pair} · λ = {rounded(computed.wavelength(d, pair))}",
    )
    return known


def _take_pairs(key: str) -> None:
    lesson.turn("positions.pairs", ",".join(map(str, st.session_state[key])), "")


def rounded(length: float) -> str:
    """A wavelength: three digits are enough."""
    return f"{length:,.0f}" if length >= 100 else f"{length:.3g}"


@st.fragment
@guarded()
def waves(subject: Subject) -> None:
    """A curve per dimension, one number of the code worked out, and the code of the sentence as a map."""
    st.html(matrix.style())
    d = width(subject)
    pairs = chosen_pairs(d)
    left, right = st.columns(2)
    with left:
        span = st.select_slider(_("Positions shown"), SPANS, **lesson.dial("positions.span", SPANS[1], SPANS))
    cosines = right.toggle(_("The cosines too"), **lesson.dial("positions.cosines", False))
    dims = tuple(dim for pair in pairs for dim in ((2 * pair, 2 * pair + 1) if cosines else (2 * pair,)))
    tokens = computed.tokens(subject)[: min(span, computed.MOST)]
    places, values = computed.waves(d, dims, span, max(257, min(1025, 4 * span + 1)))
    rows = computed.code(computed.ROWS, d)
    names = {
        dim: _("dimension {dim}, wavelength {length}", dim=dim, length=rounded(computed.wavelength(d, dim // 2)))
        for dim in dims
    }
    at = np.arange(len(tokens))
    st.plotly_chart(
        figures.line_curves(
            places,
            dict(zip(names.values(), values, strict=True)),
            place_title=_("position"),
            value_title=_("value"),
            hover=_("{name}: {value} at position {place}"),
            value_range=(-1.1, 1.1),
            height=330,
            dots=(at, {names[dim]: rows[at, dim] for dim in dims}, labels.numbered(tokens)),
        ),
        config=STILL,
        key="positions.waves",
    )
    fast, slow = computed.wavelength(d, 0), computed.wavelength(d, d // 2 - 1)
    st.caption(
        _(
            "Dots: the tokens of your sentence. The first pair turns once in {fast} positions (frequency {ffast} per "
            "position), the last once in {slow} ({fslow}).",
            fast=rounded(fast),
            ffast=f"{1 / fast:.3g}",
            slow=rounded(slow),
            fslow=f"{1 / slow:.2g}",
        )
    )
    one_number(d, rows)
    shown = min(span, MOST_ROWS)
    st.markdown(_("**The code of the first {n} positions**", n=shown))
    st.plotly_chart(
        figures.positional_heatmap(
            rows[:shown],
            end=1.0,
            names=[*labels.texts(tokens), *[""] * (shown - len(tokens))],
            words=words(figures.ENGLISH),
        ),
        config=STILL,
        key="positions.code",
    )


def one_number(d: int, rows: np.ndarray) -> None:
    """PE[pos, dim] in symbols, with its numbers and as code; two rows to compare."""
    left, right = st.columns(2)
    with left:
        pos = position()
    with right:
        dim = st.slider(_("Dimension"), 0, d - 1, **lesson.dial("positions.dim", 4, range(d)))
    name = "cos" if dim % 2 else "sin"
    angle = pos / 10_000.0 ** (2 * (dim // 2) / d)
    exponent = f"{2 * (dim // 2)}/{d}"
    lesson.formula(
        r"\begin{aligned} \mathrm{PE}_{pos,\,2i} &= \sin\frac{pos}{10000^{2i/d}} \\"
        r" \mathrm{PE}_{pos,\,2i+1} &= \cos\frac{pos}{10000^{2i/d}} \end{aligned}",
        live=rf"\begin{{aligned}} \mathrm{{PE}}_{{{pos},{dim}}} &= \{name}\frac{{{pos}}}{{10000^{{{exponent}}}}} \\"
        rf" &= \{name}({angle:.4f}) = {rows[pos, dim]:.4f} \end{{aligned}}",
        code=f"pos, dim, d = {pos}, {dim}, {d}\n"
        "angle = torch.tensor(pos / 10000 ** (2 * (dim // 2) / d))\n"
        "value = torch.cos(angle) if dim % 2 else torch.sin(angle)",
    )
    for row in sorted({0, pos}):
        st.html(matrix.to_html(rows[row], caption=_("Position {position}", position=row)))


@st.fragment
@guarded()
def clock(subject: Subject) -> None:
    """Pairs as clock hands, and the rotation that leads k positions on."""
    st.html(matrix.style())
    d = width(subject)
    pair = st.slider(_("Pair i"), 0, d // 2 - 1, **lesson.dial("positions.pair", 1, range(d // 2)))
    left, right = st.columns(2)
    with left:
        pos = position()
    with right:
        k = st.slider(_("Steps on, k"), 0, 32, **lesson.dial("positions.k", 3, range(33)))
    tokens = computed.tokens(subject)
    if pos < len(tokens):
        st.text(_("At position {position} of your sentence stands “{token}”.", position=pos, token=tokens[pos].text))
    else:
        st.text(_("Your sentence ends before position {position}; the code goes on.", position=pos))
    rows = computed.code(computed.ROWS, d)
    shown = shown_pairs(d, pair)
    pairs = rows.reshape(len(rows), -1, 2)[:, shown]
    st.plotly_chart(
        figures.position_clocks(
            pairs[pos],
            [_("pair {pair}", pair=i) + f"\nλ = {rounded(computed.wavelength(d, i))}" for i in shown],
            pos,
            moved=(pairs[pos + k], pos + k),
            words=words(clocks.ENGLISH),
        ),
        config=STILL,
        key="positions.clocks",
    )
    rotation(d, pair, pos, k, rows)


def shown_pairs(d: int, pair: int) -> list[int]:
    """Pairs from the fastest to the slowest, in equal steps; the chosen one instead of its nearest."""
    steps = set(np.linspace(0, d // 2 - 1, min(CLOCKS, d // 2)).round().astype(int).tolist())
    if pair not in steps:
        steps = steps - {min(steps, key=lambda other: abs(other - pair))} | {pair}
    return sorted(steps)


def rotation(d: int, pair: int, pos: int, k: int, rows: np.ndarray) -> None:
    """PE(pos + k) = R(k) PE(pos): one block with its numbers, the matrix, and the check over all positions."""
    turn, even = computed.shift(d, k), 2 * pair
    block, before, after = turn[even : even + 2, even : even + 2], rows[pos, even : even + 2], rows[pos + k]
    omega = 10_000.0 ** (-2 * pair / d)

    def column(values: np.ndarray) -> str:
        return rf"\begin{{bmatrix}} {values[0]:.3f} \\ {values[1]:.3f} \end{{bmatrix}}"

    square = " \\\\ ".join(f"{a:.3f} & {b:.3f}" for a, b in block)
    lesson.formula(
        r"\underbrace{\begin{bmatrix} \sin((p{+}k)\omega_i) \\ \cos((p{+}k)\omega_i) \end{bmatrix}}"
        r"_{\mathrm{PE}(p+k)} = \underbrace{\begin{bmatrix} \cos(k\omega_i) & \sin(k\omega_i) \\"
        r" -\sin(k\omega_i) & \cos(k\omega_i) \end{bmatrix}}_{R(k)} \underbrace{\begin{bmatrix} \sin(p\,\omega_i) \\"
        r" \cos(p\,\omega_i) \end{bmatrix}}_{\mathrm{PE}(p)}",
        live=rf"{column(after[even : even + 2])} = \begin{{bmatrix}} {square} \end{{bmatrix}} {column(before)}",
        code=f"p, k, i, omega = {pos}, {k}, {pair}, {omega:.9g}\n"
        "cos, sin = torch.cos(torch.tensor(k * omega)), torch.sin(torch.tensor(k * omega))\n"
        "R = torch.stack([torch.stack([cos, sin]), torch.stack([-sin, cos])])\n"
        "moved = R @ PE[p, 2 * i : 2 * i + 2]",
    )
    whole = matrix.to_html(turn, caption=_("R({k}), the same at every position", k=k), digits=2)
    st.html(f'<div class="vf-compact">{whole}</div>')
    error = computed.facts(d, k).shift_error
    st.success(
        _(
            "Checked for every position up to {last}: R({k}) PE(pos) and PE(pos + {k}) differ by {error} at most.",
            last=computed.ROWS - 1 - k,
            k=k,
            error=f"{error:.1e}",
        )
    )


@st.fragment
@guarded()
def distance(subject: Subject) -> None:
    """Dot products of the code: by pair of positions, by distance, and four promises checked."""
    d = width(subject)
    rows = computed.code(computed.ROWS, d)
    tokens = computed.tokens(subject)[: computed.MOST]
    apart, products = computed.products(d, FURTHEST)
    left, right = st.columns(2)
    last = max(len(tokens) - 1, 1)
    with left:
        i = st.slider(_("Position i"), 0, last, **lesson.dial("positions.i", min(1, last), range(last + 1)))
    with right:
        j = st.slider(_("Position j"), 0, last, **lesson.dial("positions.j", last, range(last + 1)))
    st.plotly_chart(
        figures.line_curves(
            apart,
            {_("PE(i) · PE(j)"): products},
            place_title=_("distance i − j, in positions"),
            value_title=_("dot product"),
            hover=_("{place} positions apart: {value}"),
            mark=(i - j, f"{i} − {j} = {matrix.number(i - j, 0)}"),
            height=300,
        ),
        config=STILL,
        key="positions.products",
    )
    value = float(rows[i].astype(np.float64) @ rows[j].astype(np.float64))
    moved = float(rows[i + 100].astype(np.float64) @ rows[j + 100].astype(np.float64))
    lesson.formula(
        r"\mathrm{PE}(i) \cdot \mathrm{PE}(j) = \sum_{m=0}^{d/2-1} \cos\big(\omega_m (i - j)\big)",
        live=rf"\begin{{aligned}} \mathrm{{PE}}({i}) \cdot \mathrm{{PE}}({j}) &= {value:.4f} \\"
        rf" \mathrm{{PE}}({i + 100}) \cdot \mathrm{{PE}}({j + 100}) &= {moved:.4f} \end{{aligned}}",
        code=f"i, j = {i}, {j}\nproduct = PE[i] @ PE[j]",
    )
    names = labels.numbered(tokens)
    st.markdown(_("**PE(i) · PE(j) in your sentence**"))
    st.plotly_chart(
        figures.token_pairs(
            rows[: len(tokens)] @ rows[: len(tokens)].T,
            names,
            row_title=_("position i"),
            column_title=_("position j"),
            words=words(figures.ENGLISH),
        ),
        config=STILL,
        key="positions.map",
    )
    promises(d)


def promises(d: int) -> None:
    """What is said of the code, each with the number measured on its first rows."""
    found = computed.facts(d)
    st.markdown(_("**Checked on the first {n} rows of width {d}**", n=computed.ROWS, d=d))
    for line in (
        _(
            "Unique: the two rows most alike stand {apart} apart and differ by {distance} (Euclidean distance).",
            apart=found.closest[1],
            distance=f"{found.closest[0]:.3f}",
        ),
        _(
            "Bounded: no number is larger than {largest} in size; every row has the length √(d/2) = {norm} (measured: "
            "{low} to {high}).",
            largest=f"{found.largest:.4f}",
            norm=f"{(d / 2) ** 0.5:.4f}",
            low=f"{found.norms[0]:.4f}",
            high=f"{found.norms[1]:.4f}",
        ),
        _("Relative: pairs equally far apart have the same dot product, up to {spread}.", spread=f"{found.spread:.1e}"),
        _(
            "Symmetric: PE(i) · PE(j) and PE(j) · PE(i) differ by {difference}: the product alone does not say which "
            "comes first.",
            difference=f"{found.asymmetry:.1e}" if found.asymmetry else "0",
        ),
    ):
        st.markdown(f"- {line}")

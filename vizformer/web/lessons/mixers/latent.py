"""The laboratory Latent attention: two tokens by hand, with the keys of every head and without any."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import matrix, table
from vizformer.components.table import Row
from vizformer.explain.mixers_by_hand import D_HEAD, HEADS, WIDEST, TwoLatents, two_latents
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.mixers.delta import in_a_row, numbers, two_tokens
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls

lab = Laboratory("mixers", "latent")
KEYS, ABSORBED = "q · k", "(W_UKᵀ q) · c"
CODE = """c, q = h @ W_DKV.T, h @ W_Q.T  # c is all that is kept
k, v = c @ W_UK.T, c @ W_UV.T  # of one head; every other one makes its own from c
scores = q @ k.T
mixed = torch.softmax(scores / 2**0.5, dim=-1) @ v
absorbed = (q @ W_UK) @ c.T  # no key
same = torch.softmax(absorbed / 2**0.5, dim=-1) @ c @ W_UV.T  # no value"""


@lab.draws
def draw_latent_attention(subject: Subject) -> None:
    """The scores of all heads both ways; the first head by hand; what is kept, and what a score costs."""
    picture = st.container()  # above what can be turned
    with controls():
        width = lab.slider("width", 1, WIDEST, 2)
        heads = lab.slider("heads", 1, HEADS, 2)
    found, tokens = two_latents(width, heads), two_tokens(subject)
    both = np.concatenate([found.scores, found.absorbed], axis=-1).reshape(2 * heads, 4)
    rows = [lab.text("row", head=head, token=token) for head in range(1, heads + 1) for token in tokens]
    columns = [f"{token}: {way}" for way in "kc" for token in tokens]
    drawn = figures.attention_heatmap(both, rows, columns, kind="scores", title=lab.text("picture"))
    drawn.update_traces(texttemplate="%{z:.0f}")
    with picture:
        chart.show(drawn, key="mixers.latent", title_above=True)
    st.html(matrix.style() + table.style())
    _first_head(found, tokens)
    lab.say("proof", error=f"{found.error:.0e}" if found.error else "0")
    _costs(width, heads)
    lesson.ask(score(subject))
    lesson.ask(kept(subject))
    q, c = found.queries[0, 1], found.latents[0]
    lesson.formula(
        r"\begin{aligned} c_j &= W_{DKV}\,h_j, \qquad k_j = W_{UK}\,c_j, \qquad v_j = W_{UV}\,c_j \\ "
        r"q_i \cdot k_j &= q_i^\top W_{UK}\,c_j = (W_{UK}^\top q_i) \cdot c_j \end{aligned}",
        live=rf"q_2 \cdot k_1 = {_sum(q, found.keys[0, 0])} = {found.scores[0, 1, 0]:.0f} = {_sum(found.moved[0, 1], c)}",
        code=CODE,
        given={"h": found.h, "W_DKV": found.W_DKV}
        | {name: getattr(found, name)[0] for name in ("W_Q", "W_UK", "W_UV")},
    )


@lab.asks("score")
def score(subject: Subject) -> lesson.Number:
    """A score from a latent, without a key."""
    return lesson.Number(answer=7, **lab.asked("score", wrong={"turned": 16, "plain": 4}))


@lab.asks("kept")
def kept(subject: Subject) -> lesson.Number:
    wrong = {"rotary": 512, "keys": 2 * 128 * 128, "heads": 128 * 576, "twice": 2 * 576}
    return lesson.Number(answer=576, written="{:,.0f}".format, **lab.asked("kept", wrong=wrong))


def _sum(left: np.ndarray, right: np.ndarray) -> str:
    """Writes out a dot product of integer vectors as LaTeX."""
    return " + ".join(rf"({a:.0f}) \cdot ({b:.0f})" for a, b in zip(left, right, strict=True))


def _first_head(found: TwoLatents, tokens: tuple[str, str]) -> None:
    """Draws W_UK of head 0, the second token's query before and after it, and the scores computed both ways."""
    parts = {"up": found.W_UK[0], "query": found.queries[0, 1:], "moved": found.moved[0, 1:]}
    in_a_row({lab.text(f"line.{name}", token=tokens[1]): value for name, value in parts.items()}, digits=0)
    rows = [
        Row(
            name,
            *(numbers(of[at], 0) for of in (found.latents, found.keys[0])),
            *(numbers(of[0, 1, at : at + 1], 0) for of in (found.scores, found.absorbed)),
        )
        for at, name in enumerate(tokens)
    ]
    st.html(table.to_html([*lab.columns("token", "latent", "key", token=tokens[1]), KEYS, ABSORBED], rows))


def _costs(width: int, heads: int) -> None:
    """Three ways to keep the tokens before: numbers kept of a token, and multiplications for a query to meet it."""
    made, read = 2 * heads * D_HEAD, heads * D_HEAD
    ways = {"keys": (made, read), "again": (width, heads * D_HEAD * width + read), "absorbed": (width, heads * width)}
    rows = [Row(lab.text(f"way.{name}"), *table.numbers(",", *of)) for name, of in ways.items()]
    st.html(table.to_html(lab.columns("way", "kept", "products"), rows))
    lab.note("once", products=heads * D_HEAD * width)

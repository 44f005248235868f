"""The laboratory One vector for all: a text through one state, and through a state for every token, by length."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.assets import asset
from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Row
from vizformer.training.repeater import Memory, Repeater, Said, as_symbols, load_repeater, say_again, share_right
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.frame import presses, sitemap
from vizformer.web.lessons.cross.surroundings import meets, see_also
from vizformer.web.link import state
from vizformer.web.widgets import chart, head_downloads, lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import counts, labels

lab = Laboratory("cross", "bottleneck")
ENOUGH = 0.9
EXAMPLE = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"


@cached
def repeater(memory: Memory) -> Repeater:
    prepare_torch()
    return load_repeater(asset("lessons", "cross"), memory)


@cached
def said_again(memory: Memory, symbols: tuple[int, ...]) -> Said:
    return say_again(repeater(memory), symbols)


@dataclass(frozen=True)
class Measured:
    """What the two networks reach: memory -> the share of right symbols for texts of 1, 2, ... of them; their size."""

    right: Mapping[Memory, tuple[float, ...]]
    parameters: int
    state: int
    texts: int


@cached
def measured() -> Measured:
    notes = json.loads(asset("lessons", "cross", "bottleneck.json").read_text(encoding="utf-8"))
    right = {memory: tuple(found["right"]) for memory, found in notes["measured"].items()}
    return Measured(right, notes["parameters"], notes["recipe"]["d_h"], notes["recipe"]["measured"])


@lab.draws
def draw_bottleneck(subject: Subject) -> None:
    st.html(table.style())
    about = measured()
    longest = len(about.right["one"])
    tokens, seed = subject.tokens[:longest], lesson.value("cross.seed", 0, range(100))
    symbols = as_symbols([token.id for token in tokens], seed)
    texts = labels.texts(tokens)[: len(symbols)]
    one, every = (said_again(memory, symbols) for memory in ("one", "every"))
    said = lab.texts("figure", ("place_title", "value_title", "hover", "title"))
    lesson.ask(bottleneck_question(subject), folded=True)
    chart.show(
        figures.line_curves(
            np.arange(1, longest + 1),
            {
                name: 100 * np.array(about.right[memory])
                for memory, name in lab.texts("curve", ("one", "every")).items()
            },
            place_title=said["place_title"],
            value_title=said["value_title"],
            hover=said["hover"],
            title=said["title"],
            value_range=(0, 105),
            digits=1,
        ),
        key="cross.curves",
    )
    offered = subject.text != EXAMPLE and model_cache.reads(subject.model, EXAMPLE)
    if offered and presses.button(lab.text("example", text=EXAMPLE), key="cross.example"):
        state.update(text=EXAMPLE, target="", edits="")
        st.rerun()  # the whole page
    lab.note("networks", parameters=about.parameters, texts=about.texts)
    # In words: a line at this place would be another figure, which is drawn anew, for every text.
    right = {memory: f"{shares[len(symbols) - 1]:.0%}" for memory, shares in about.right.items()}
    lab.say("here", symbols=counts.symbols(len(symbols)), one=right["one"], every=right["every"])
    _said(texts, symbols, one.symbols, every.symbols)
    st.button(lab.text("others"), on_click=lesson.change, args=("cross.seed", (seed + 1) % 100, 0), key="cross.draw")
    names = [_name(symbol, symbols, texts) for symbol in every.symbols]
    head_downloads.show(Heatmap(every.looked, names, texts, title=lab.text("looks")), key="cross.looked")
    n, d = len(symbols), about.state
    lesson.formula(
        r"\begin{aligned} \text{one:} \quad z_i &= h_{n-1} \\ \text{every:} \quad z_i &= \textstyle\sum_t a_{it}\, h_t, \\ "
        r"a_i &= \mathrm{softmax}\left(\tfrac{(s_i W_a)\,h^\top}{\sqrt{d_h}}\right) \end{aligned}",
        live=rf"\begin{{gathered}} \dim h_{{{n - 1}}} = {d} \\ "
        rf"\dim\,[h_0; \dots; h_{{{n - 1}}}] = {n} \cdot {d} = {n * d} \end{{gathered}}",
        code=f"n, d_h = {n}, {d}\n"
        "gru = torch.nn.GRU(32, d_h, batch_first=True)  # untrained here\n"
        "h = gru(torch.randn(1, n, 32))[0][0]  # [n, d_h]: the state after every token\n"
        "s, W_a = torch.randn(n, d_h), torch.randn(d_h, d_h)\n"
        "one = h[-1].expand(n, d_h)  # the same for every step\n"
        "every = (s @ W_a @ h.T / d_h**0.5).softmax(-1) @ h  # looked up anew at every step",
    )
    see_also(lab, sitemap.MAP, sitemap.GLOSSARY)
    meets(lab, subject)


@lab.asks("length")
def bottleneck_question(subject: Subject) -> lesson.Choice:
    about = measured()
    longest = len(about.right["one"])
    reached = next((n for n, share in enumerate(about.right["one"]) if share < ENOUGH), longest)
    values = sorted({min(reached * times, longest) for times in (1, 2, 4)} | {longest})
    share = f"{about.right['every'][-1]:.0%}"
    names = ("twice", "four", "all")
    wrong = {
        "all" if value == longest else "less" if value < reached else names[value > 2 * reached]: index
        for index, value in enumerate(values)
        if value != reached
    }
    said = lab.asked("length", wrong=wrong, d=about.state, longest=longest, reached=reached, share=share)
    return lesson.Choice(choices=[counts.symbols(value) for value in values], answer=values.index(reached), **said)


def _name(symbol: int, symbols: tuple[int, ...], texts: list[str]) -> str:
    """The token that a symbol was given to; "none" where it was given to no token."""
    return texts[symbols.index(symbol)] if symbol in symbols else lab.text("none")


def _said(texts: list[str], symbols: tuple[int, ...], one: tuple[int, ...], every: tuple[int, ...]) -> None:
    rows = [
        Row(
            str(i),
            texts[i],
            *(_verdict(said[i], symbols, texts, i) for said in (one, every)),
            kind="marked" if one[i] != symbols[i] else "",
        )
        for i in range(len(symbols))
    ]
    columns = lab.columns("place", "read", "one", "every")
    st.html(table.to_html(columns, rows, caption=lab.text("table")))
    lab.say("right", one=f"{share_right(one, symbols):.0%}", every=f"{share_right(every, symbols):.0%}")


def _verdict(symbol: int, symbols: tuple[int, ...], texts: list[str], place: int) -> str:
    return ("✓ " if symbol == symbols[place] else "✗ ") + _name(symbol, symbols, texts)

"""The laboratory One vector for all: a text through one state, and through a state for every token, by length."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.heatmap import Heatmap
from vizformer.components.table import Row
from vizformer.training.repeater import as_symbols, share_right
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.lessons.cross import computations, links, other_model
from vizformer.web.link import state
from vizformer.web.widgets import chart, lesson, map_downloads
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _

ENOUGH = 0.9
EXAMPLE = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"


@laboratory
def bottleneck(subject: Subject) -> None:
    """The typed sentence as symbols, said again by both networks; and what they reach by length."""
    st.html(table.style())
    about = computations.measured()
    lesson.ask(length_question())
    longest = len(about.right["one"])
    tokens = subject.tokens[:longest]
    seed = int(lesson.value("cross.seed", 0, range(100)))
    symbols = as_symbols([token.id for token in tokens], seed)
    texts = labels.texts(tokens)[: len(symbols)]
    one, every = (computations.said_again(memory, symbols) for memory in ("one", "every"))
    curves = {
        _("one vector"): np.array(about.right["one"]),
        _("a vector for every token"): np.array(about.right["every"]),
    }
    chart.show(
        figures.line_curves(
            np.arange(1, longest + 1),
            {name: 100 * values for name, values in curves.items()},
            place_title=_("length of the text, symbols"),
            value_title=_("right symbols, %"),
            hover=_("{name}, {place} symbols: {value}% right"),
            value_range=(0, 105),
            digits=1,
            height=330,
            title=_("Said again after one reading"),
        ),
        key="cross.curves",
    )
    offered = subject.text != EXAMPLE and model_cache.reads(subject.model, EXAMPLE)
    if offered and presses.button(EXAMPLE, key="cross.example"):
        state.update(text=EXAMPLE, target="", edits="")
        st.rerun()  # the whole page
    st.caption(
        _(
            "Two networks of {parameters:,} parameters each, trained alike: a GRU reads random symbols, another one says "
            "them again. Measured on {texts} new texts of each length.",
            parameters=about.parameters,
            texts=about.texts,
        )
    )
    # In words: a line at this place would be another figure, which is drawn anew, for every text.
    at = len(symbols) - 1
    st.text(
        _(
            "At {symbols}, as many as your text has, that is {one} from one vector and {every} from a vector for every "
            "token.",
            symbols=counts.symbols(len(symbols)),
            one=f"{about.right['one'][at]:.0%}",
            every=f"{about.right['every'][at]:.0%}",
        )
    )
    _said(texts, symbols, one.symbols, every.symbols)
    st.button(
        _("Give the tokens other symbols"),
        on_click=lesson.change,
        args=("cross.seed", (seed + 1) % 100, 0),
        key="cross.draw",
    )
    map_downloads.show(
        Heatmap(
            every.looked,
            [_name(symbol, symbols, texts) for symbol in every.symbols],
            texts,
            title=_("Where the second network looks"),
        ),
        key="cross.looked",
    )
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
    links.to(sitemap.MAP, sitemap.READING)
    other_model.meets(subject, "bottleneck")


def _name(symbol: int, symbols: tuple[int, ...], texts: list[str]) -> str:
    """What a symbol stands for: the token that it was given to; none where it was given to none."""
    return texts[symbols.index(symbol)] if symbol in symbols else _("(a symbol of no token)")


def _said(texts: list[str], symbols: tuple[int, ...], one: tuple[int, ...], every: tuple[int, ...]) -> None:
    rows = [
        Row(
            (str(i), texts[i], *(_verdict(said[i], symbols, texts, i) for said in (one, every))),
            "marked" if one[i] != symbols[i] else "",
        )
        for i in range(len(symbols))
    ]
    columns = (_("place"), _("read"), _("said from one vector"), _("said from a vector for every token"))
    st.html(table.to_html(columns, rows, caption=_("Your tokens, each as a symbol: only memory helps, no grammar")))
    share = [share_right(said, symbols) for said in (one, every)]
    st.text(
        _(
            "Right at their place: {one} from one vector, {every} from a vector for every token.",
            one=f"{share[0]:.0%}",
            every=f"{share[1]:.0%}",
        )
    )


def _verdict(symbol: int, symbols: tuple[int, ...], texts: list[str], place: int) -> str:
    return ("✓ " if symbol == symbols[place] else "✗ ") + _name(symbol, symbols, texts)


def length_question() -> lesson.Choice:
    """Up to which length does one vector do?"""
    about = computations.measured()
    longest = len(about.right["one"])
    reached = next((n for n, share in enumerate(about.right["one"]) if share < ENOUGH), longest)
    values = sorted({min(reached * times, longest) for times in (1, 2, 4)} | {longest})
    return lesson.Choice(
        "cross",
        "length",
        _(
            "A network reads random symbols into one state of {d} numbers and says them again. Up to which length does it "
            "get 9 of 10 right, after training on up to {longest}?",
            d=about.state,
            longest=longest,
        ),
        [_("{n} symbols", n=value) for value in values],
        values.index(reached),
        _(
            "Measured: up to {reached}. The state is as long for 2 symbols as for {longest}; what does not fit is lost. "
            "With a state for every symbol to look at, {share} are right at {longest}.",
            reached=reached,
            longest=longest,
            share=f"{about.right['every'][-1]:.0%}",
        ),
    )

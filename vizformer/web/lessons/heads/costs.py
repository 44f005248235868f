"""The laboratories of what heads cost: few or many of the same width, and shared keys and values."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.figures import head_sharing
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import computed
from vizformer.web.link import state
from vizformer.web.widgets import lesson, rolling_cache_note
from vizformer.web.words import labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

NO_BAR = {"displayModeBar": False}
LENGTHS = (0, 128, 512, 2048, 8192, 32768)  # tokens; 0: as many as the sentence has
COUNTS = ("projections", "products", "exponentials")


def _tokens(subject: Subject) -> int:
    """How many tokens the first stack reads."""
    return len(next(iter(subject.trace.tokens.values())))


def _length(name: str, own: int) -> int:
    """Asks for a number of tokens: the sentence's `own`, or a larger one."""
    chosen: int = st.select_slider(
        _("Tokens"),
        LENGTHS,
        **lesson.dial(name, 0, LENGTHS),
        format_func=lambda n: f"{n:,}" if n else _("{n} (your sentence)", n=own),
    )
    return chosen or own


def layer(subject: Subject) -> None:
    """The same width in few heads or many: what one layer of self-attention costs."""
    config = model_cache.options(subject.model)
    _ask_cost(subject)
    n = _length("heads.n", _tokens(subject))
    costs = computed.layer_costs(subject.model, n)
    numbers = [one.n_heads for one in costs]
    h = st.select_slider(_("Heads"), numbers, **lesson.dial("heads.h", config.n_heads, numbers))
    chosen = costs[numbers.index(h)]
    st.plotly_chart(
        figures.head_costs(
            numbers,
            {name: np.array([getattr(one, name) for one in costs]) for name in COUNTS},
            at=h,
            title=_("One layer of self-attention, {n} tokens", n=f"{n:,}"),
            words=words(head_sharing.ENGLISH),
        ),
        config=NO_BAR,
        key="heads.costs",
    )
    d, w = config.d_model, config.n_heads * config.d_head  # the same width, but for models that say otherwise
    square, wide, live, also = (
        (r"d_\mathrm{model}^2", r"d_\mathrm{model}", f"{d}^2", "")
        if d == w
        else (r"d_\mathrm{model} w", "w", rf"{d} \cdot {w}", r",\quad w = h\, d_\mathrm{head}")
    )
    lesson.formula(
        rf"\underbrace{{4 n\, {square}}}_{{W_Q, W_K, W_V, W_O}} + "
        rf"\underbrace{{2 n^2\, {wide}}}_{{q \cdot k,\ a v}} \qquad \underbrace{{h\, n^2}}_{{\exp}}{also}",
        live=rf"\begin{{aligned}} 4 \cdot {n} \cdot {live} + 2 \cdot {n}^2 \cdot {w} &= "
        rf"{_tex(chosen.projections + chosen.products)} \\ {h} \cdot {n}^2 &= {_tex(chosen.exponentials)} "
        r"\end{aligned}",
        code=f"n, d_model, width, h = {n}, {d}, {w}, {h}\n"
        "multiplications = 4 * n * d_model * width + 2 * n**2 * width\nentries = h * n**2",
    )
    columns = (
        _("heads"),
        _("width of each"),
        _("multiplications"),
        _("entries of the maps"),
        _("as bytes"),
        _("parameters of the model"),
    )
    rows = [
        Row(
            (
                Number(one.n_heads, str(one.n_heads)),
                Number(one.d_head, str(one.d_head)),
                *(Number(value, f"{value:,}") for value in (one.projections + one.products, one.exponentials)),
                Number(one.map_bytes, labels.size(one.map_bytes)),
                Number(one.model_parameters, f"{one.model_parameters:,}"),
            ),
            "marked" if one.n_heads == h else "",
        )
        for one in costs
    ]
    st.html(table.to_html(columns, rows))
    if config.kv_heads != config.n_heads:
        st.caption(
            _(
                "Counted with keys and values of its own for every head. This model shares them, which is cheaper: the "
                "next part."
            )
        )


def _tex(value: int) -> str:
    return f"{value:,}".replace(",", r"\,")


def _ask_cost(subject: Subject) -> None:
    """The question: what would one wide head cost?"""
    config, n = model_cache.options(subject.model), _tokens(subject)
    costs = {one.n_heads: one.projections + one.products for one in computed.layer_costs(subject.model, n)}
    h = config.n_heads
    other = 1 if h > 1 else max(costs)
    times = max(h, other)
    right = costs[other]
    values = sorted({right, right // times, right * times})
    lesson.ask(
        "heads",
        "cost",
        _(
            "For your {n} tokens, one layer with {h} heads of width {width} needs {count} multiplications in its matrix "
            "products. How many with {other} of width {other_width}?",
            n=n,
            h=h,
            width=config.d_head,
            count=f"{costs[h]:,}",
            other=other,
            other_width=h * config.d_head // other,
        ),
        [f"{value:,}" for value in values],
        values.index(right),
        _(
            "As many: each head does the same on a slice that is that much narrower. What grows with the number of heads "
            "is the number of maps: {here} entries here, {there} there.",
            here=f"{h * n * n:,}",
            there=f"{other * n * n:,}",
        ),
        about=f"{subject}",
    )


# --- shared keys and values -------------------------------------------------------------------------------------------


def sharing(subject: Subject) -> None:
    """Fewer key/value heads than query heads: who reads which, and the bytes of the cache."""
    config = model_cache.options(subject.model)
    _ask_cache(subject)
    own, memory = _lengths(subject)
    n = _length("heads.length", own)
    costs = computed.sharing_costs(subject.model, n, memory)
    numbers = [one.n_kv_heads for one in costs]
    g = config.kv_heads
    if len(numbers) > 1:
        g = st.select_slider(_("Key/value heads"), numbers, **lesson.dial("heads.kv", g, numbers))
    st.plotly_chart(
        figures.shared_heads(
            config.n_heads,
            g,
            chosen=state.view().head,
            title=computed.sharing_name(config.n_heads, g),
            words=words(head_sharing.ENGLISH),
        ),
        config=NO_BAR,
        key="heads.sharing",
    )
    st.text(_really(subject))
    columns = (
        _("key/value heads"),
        _("name"),
        _("KV cache, {n} tokens", n=f"{n:,}"),
        _("each more token"),
        _("parameters of the model"),
    )
    rows = [
        Row(
            (
                Number(one.n_kv_heads, str(one.n_kv_heads)),
                computed.sharing_name(config.n_heads, one.n_kv_heads),
                *(Number(nbytes, labels.size(nbytes)) for nbytes in (one.cache_bytes, one.token_bytes)),
                Number(one.model_parameters, f"{one.model_parameters:,}"),
            ),
            "marked" if one.n_kv_heads == g else "",
        )
        for one in costs
    ]
    st.html(table.to_html(columns, rows))
    if config.architecture == "encoder-only":
        st.caption(_("This model writes nothing and so keeps no cache. Counted is a decoder of the same shape."))
    elif memory:
        st.caption(_("With the keys and values of the {n} source tokens, which cross-attention keeps.", n=memory))
    layers = config.n_decoder_layers or config.n_encoder_layers
    chosen = costs[numbers.index(g)]
    if said := rolling_cache_note.saved(config, n, chosen.cache_bytes, chosen.rolling_bytes):
        st.caption(said)
    lesson.formula(
        r"2 \cdot n_\mathrm{layers} \cdot n_\mathrm{kv} \cdot d_\mathrm{head} \cdot n \cdot 4 \;\text{bytes}",
        live=rf"2 \cdot {layers} \cdot {g} \cdot {config.d_head} \cdot {n + memory} \cdot 4 = "
        rf"{_tex(chosen.cache_bytes)}",
        code=f"n_layers, n_kv, d_head, n = {layers}, {g}, {config.d_head}, {n + memory}\n"
        "nbytes = 2 * n_layers * n_kv * d_head * n * 4  # float32",
    )


def _lengths(subject: Subject) -> tuple[int, int]:
    """Positions of the cache for this sentence: those that the decoder holds, and those of the source."""
    read = subject.trace.tokens
    two = {"encoder", "decoder"} <= read.keys()
    return (len(read["decoder"]), len(read["encoder"])) if two else (_tokens(subject), 0)


def _really(subject: Subject) -> str:
    """How the loaded model does it, read off its recorded keys."""
    trace, config = subject.trace, model_cache.options(subject.model)
    record = trace[trace.sites[0]]
    shape = " × ".join(map(str, record.k.shape))
    if config.kv_heads == config.n_heads:
        return _(
            "This model shares nothing: the keys at {site} are {shape}, one set for each of its {h} heads.",
            site=trace.sites[0],
            shape=shape,
            h=config.n_heads,
        )
    return _(
        "This model really shares: it has {h} query heads, and the keys at {site} are {shape}: {g} sets, each "
        "read by {each} query heads.",
        h=config.n_heads,
        site=trace.sites[0],
        shape=shape,
        g=config.kv_heads,
        each=config.n_heads // config.kv_heads,
    )


def _ask_cache(subject: Subject) -> None:
    """The question: what would the cache hold if all query heads shared one key/value head?"""
    config = model_cache.options(subject.model)
    own, memory = _lengths(subject)
    costs = {one.n_kv_heads: one.cache_bytes for one in computed.sharing_costs(subject.model, own, memory)}
    full, least = costs[config.n_heads], costs[1]
    values = sorted({full, full // 2, least, round(full / config.n_heads**0.5)})
    lesson.ask(
        "heads",
        "cache",
        _(
            "With keys and values of its own for each of {h} heads, a cache for this sentence holds {full} bytes. How "
            "many if all query heads share one key/value head?",
            h=config.n_heads,
            full=f"{full:,}",
        ),
        [f"{value:,}" for value in values],
        values.index(least),
        _(
            "The cache holds keys and values, no queries: with one set in place of {h} it is {h} times as small.",
            h=config.n_heads,
        ),
        about=f"{subject}",
    )

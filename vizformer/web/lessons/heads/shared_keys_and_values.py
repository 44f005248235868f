"""The laboratory Shared keys and values: fewer key/value heads than query heads."""

import streamlit as st

from vizformer import figures
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.figures import head_sharing
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import computations, wording
from vizformer.web.lessons.heads.token_count import asked_length, tex_number
from vizformer.web.link import state
from vizformer.web.widgets import chart, lesson, rolling_cache_note
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _


@laboratory
def groups(subject: Subject) -> None:
    """Fewer key/value heads than query heads: who reads which, and the bytes of the cache."""
    st.html(table.style())
    config = subject.config
    lesson.ask(cache_question(subject))
    own, memory = _lengths(subject)
    n = asked_length("heads.length", own)
    costs = computations.sharing_costs(subject.model, n, memory)
    numbers = [one.n_kv_heads for one in costs]
    g = config.kv_heads
    if len(numbers) > 1:
        g = st.select_slider(_("Key/value heads"), numbers, **lesson.setting("heads.kv", g, numbers))
    chart.show(
        figures.shared_heads(
            config.n_heads,
            g,
            chosen=state.view().head,
            title=wording.sharing_name(config.n_heads, g),
            words=words(head_sharing.ENGLISH),
        ),
        key="heads.sharing",
    )
    st.text(_really(subject))
    columns = (
        _("key/value heads"),
        _("name"),
        _("KV cache, {tokens}", tokens=counts.tokens(n)),
        _("each more token"),
        _("parameters of the model"),
    )
    rows = [
        Row(
            (
                Number(one.n_kv_heads, str(one.n_kv_heads)),
                wording.sharing_name(config.n_heads, one.n_kv_heads),
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
        rf"{tex_number(chosen.cache_bytes)}",
        code=f"n_layers, n_kv, d_head, n = {layers}, {g}, {config.d_head}, {n + memory}\n"
        "nbytes = 2 * n_layers * n_kv * d_head * n * 4  # float32",
    )


def _lengths(subject: Subject) -> tuple[int, int]:
    """Positions of the cache for this sentence: those that the decoder holds, and those of the source."""
    read = subject.trace.tokens
    two = {"encoder", "decoder"} <= read.keys()
    return (len(read["decoder"]), len(read["encoder"])) if two else (len(subject.tokens), 0)


def _really(subject: Subject) -> str:
    """How the loaded model does it, read off its recorded keys."""
    trace, config = subject.trace, subject.config
    record = trace[trace.sites[0]]
    shape = " × ".join(map(str, record.k.shape))
    if config.kv_heads == config.n_heads:
        return _(
            "This model shares nothing: the keys at {site} are {shape}, one set for each head ({heads}).",
            site=trace.sites[0],
            shape=shape,
            heads=counts.heads(config.n_heads),
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


def cache_question(subject: Subject) -> lesson.Choice:
    """The question: what would the cache hold if all query heads shared one key/value head?"""
    config = subject.config
    own, memory = _lengths(subject)
    costs = {one.n_kv_heads: one.cache_bytes for one in computations.sharing_costs(subject.model, own, memory)}
    full, least = costs[config.n_heads], costs[1]
    values = sorted({full, full // 2, least, round(full / config.n_heads**0.5)})
    return lesson.Choice(
        "heads",
        "cache",
        _(
            "With keys and values of its own for each head ({heads}), a cache for this sentence holds {full} bytes. How "
            "many if all query heads share one key/value head?",
            heads=counts.heads(config.n_heads),
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

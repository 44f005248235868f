"""The laboratory Shared keys and values: fewer key/value heads than query heads."""

import streamlit as st

from vizformer import figures
from vizformer.analysis import kinds
from vizformer.analysis.costs import generation_cost
from vizformer.analysis.costs.generation_cost import SharingCost
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import attention_selector, chart, lesson, model_suggestions
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import counts, labels

lab = Laboratory("heads", "groups")

LENGTHS = (0, 128, 512, 2048, 8192, 32768)  # tokens; 0: as many as the sentence has


@cached
def sharing_costs(model: ModelRef, length: int, memory: int) -> tuple[SharingCost, ...]:
    """The model with every possible number of key/value heads."""
    config = model_cache.options(model)
    groups = generation_cost.possible_groups(config)
    return tuple(generation_cost.sharing_cost(config, one, length, memory) for one in groups)


@lab.draws
def draw_shared_keys_and_values(subject: Subject) -> None:
    st.html(table.style())
    config, (own, memory) = subject.config, _lengths(subject)
    with controls():
        n = asked_length(lab, "length", own)
        costs = sharing_costs(subject.model, n, memory)
        numbers, g = [one.n_kv_heads for one in costs], config.kv_heads
        if len(numbers) > 1:
            g = lab.steps("kv", numbers, g)
    state.fit(head=config.n_heads)
    why = attention_selector.open_on_a_head(subject, kinds(subject.trace)[0])
    drawn = figures.shared_heads(config.n_heads, g, chosen=state.view().head, title=_sharing(config.n_heads, g))
    lesson.ask(shared_keys_and_values_question(subject), folded=True)
    chart.show(drawn, key="heads.sharing")
    aside(why)
    trace, h = subject.trace, config.n_heads  # how the loaded model does it, read off its recorded keys
    shape = " × ".join(map(str, trace[trace.sites[0]].k.shape))
    groups = config.kv_heads
    values = {
        "site": trace.sites[0],
        "shape": shape,
        "heads": counts.heads(h),
        "h": h,
        "g": groups,
        "each": h // groups,
    }
    st.text(lab.text("really", form="own" if groups == h else "shared", **values))
    rows = [
        Row(
            Number(one.n_kv_heads, str(one.n_kv_heads)),
            _sharing(config.n_heads, one.n_kv_heads),
            *(Number(nbytes, labels.size(nbytes)) for nbytes in (one.cache_bytes, one.token_bytes)),
            Number(one.model_parameters, f"{one.model_parameters:,}"),
            kind="marked" if one.n_kv_heads == g else "",
        )
        for one in costs
    ]
    cache = lab.text("cache", tokens=counts.tokens(n))
    heads, name, token, parameters = lab.columns("heads", "name", "token", "parameters")
    st.html(table.to_html((heads, name, cache, token, parameters), rows))
    if config.architecture == "encoder-only":
        lab.note("alone")
    elif memory:
        lab.note("memory", n=memory)
    layers, chosen = config.n_decoder_layers or config.n_encoder_layers, costs[numbers.index(g)]
    if saved := model_suggestions.saved(config, n, chosen.cache_bytes, chosen.rolling_bytes):
        st.caption(saved)
    lesson.formula(
        r"2 \cdot n_\mathrm{layers} \cdot n_\mathrm{kv} \cdot d_\mathrm{head} \cdot n \cdot 4 \;\text{bytes}",
        live=rf"2 \cdot {layers} \cdot {g} \cdot {config.d_head} \cdot {n + memory} \cdot 4 = "
        rf"{tex_number(chosen.cache_bytes)}",
        code=f"n_layers, n_kv, d_head, n = {layers}, {g}, {config.d_head}, {n + memory}\n"
        "nbytes = 2 * n_layers * n_kv * d_head * n * 4  # float32",
    )


@lab.asks("cache")
def shared_keys_and_values_question(subject: Subject) -> lesson.Choice | None:
    h = subject.config.n_heads
    costs = {one.n_kv_heads: one.cache_bytes for one in sharing_costs(subject.model, *_lengths(subject))}
    full, least = costs[h], costs[1]
    wrong = {"same": full, "half": full // 2, "root": round(full / h**0.5)}
    said = {"heads": counts.heads(h), "full": f"{full:,}", "h": h}
    return lab.options("cache", least, wrong, subject, written="{:,}".format, **said)


def _lengths(subject: Subject) -> tuple[int, int]:
    """Positions of the cache for this sentence: those that the decoder holds, and those of the source."""
    read = subject.trace.tokens
    two = {"encoder", "decoder"} <= read.keys()
    return (len(read["decoder"]), len(read["encoder"])) if two else (len(subject.tokens), 0)


def _sharing(n_heads: int, groups: int) -> str:
    return lab.text("sharing.all" if groups == n_heads else "sharing.one" if groups == 1 else "sharing.groups")


# How many tokens the costs of heads are counted for: the sentence's own, or more.
def asked_length(lab: Laboratory, name: str, own: int) -> int:
    """Asks for a number of tokens: the sentence's `own`, or a larger one."""
    return lab.steps(name, LENGTHS, 0, lambda n: f"{n:,}" if n else lab.text("yours", n=own)) or own


def tex_number(value: int) -> str:
    return f"{value:,}".replace(",", r"\,")

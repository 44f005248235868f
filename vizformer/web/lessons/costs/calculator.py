"""The laboratory Calculator: what a model of any configuration costs, and published ones."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from vizformer.analysis.costs.model_costs import ModelCost
from vizformer.analysis.costs.paper_results import PUBLISHED
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import sizes
from vizformer.web.lessons.costs.sizes import Between, model_cost
from vizformer.web.widgets import cost_notes, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import counts, labels
from vizformer.web.words.cells import share

lab = Laboratory("costs", "calculator")
BYTES = (4, 2, 1)
TOKENS = (1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13)
USUAL_TOKENS = 1e9  # where nothing is published
BOXES = {
    "encoder": (6, 0, 500),
    "decoder": (6, 0, 500),
    "d": (512, 2, 65_536),
    "ff": (2048, 1, 262_144),
    "heads": (8, 1, 512),
    "kv": (8, 1, 512),
    "vocabulary": (37_000, 1, 2_000_000),
}
"""The numbers that can be typed: at first, least, most."""
COMPONENTS = (
    *("embedding", "positions", "segments", "attention", "cross", "feedforward", "layer_input", "norm", "relative"),
    *("split", "predict", "laurel", "merge", "transform", "unembedding", "logit_bias"),
)
WORK = ("attention", "projections", "feedforward", "unembedding")


@lab.draws
def draw(subject: Subject) -> None:
    published = {one.preset: one for one in PUBLISHED}
    names = {"own": lab.text("own", name=subject.title), **{preset: one.name for preset, one in published.items()}}
    lesson.ask(overtakes(subject))
    with controls():
        chosen = lab.box("model", {**names, "numbers": lab.text("numbers")}, "own")
        known = published.get(chosen)
        n = sizes.length(lab, "length", len(subject.tokens))
        size = lab.steps("bytes", BYTES, 4)
        usual = USUAL_TOKENS if known is None or known.tokens is None else known.tokens
        amounts = sorted({*TOKENS, usual})
        kept = lab.setting("tokens" if known is None else "trained", usual, amounts)
        tokens = st.select_slider(lab.text("trained"), amounts, format_func=sizes.large, **kept)
    config = _numbers() if chosen == "numbers" else subject.config if known is None else known.config
    cost, total = model_cost(config, n), lab.text("together")
    st.html(table.style())
    parts = {lab.text(f"component.{kind}") if kind in COMPONENTS else kind: count for kind, count in cost.components()}
    _shares(lab.columns("component", "parameters", "share"), parts, total, "{:,}".format)
    if known is not None:
        share = f"{cost.total / known.parameters:.1%}"
        lab.note("published", count=sizes.large(known.parameters), where=known.where, share=share)
    st.caption(_described(config))
    work = {lab.text(f"work.{part}"): getattr(cost.forward, part) for part in WORK}
    columns = lab.columns("work", "number", "share", tokens=counts.tokens(n))
    _shares(columns, work, lab.text("forward"), sizes.large)
    _memory(cost, size)
    training = {"rule": cost.rule_of_thumb(tokens), "counted": cost.training_flops(tokens)}
    rows = [Row(lab.text(f"training.{way}"), f"{sizes.scientific(flops)} FLOPs") for way, flops in training.items()]
    st.html(table.to_html(lab.columns("training", "operations", tokens=sizes.large(tokens)), rows))
    cost_notes.draw_no_attention(config)
    if (meets := cost.overtakes) is not None:
        products, whole = (counts.tokens(round(max(1, at))) for at in (meets.products, meets.whole))
        lab.say("overtaken", products=products, whole=whole)
    if n > config.max_positions and config.positions in ("learned", "sinusoidal", "rope"):
        lab.note("beyond", most=f"{config.max_positions:,}", n=f"{n:,}")
    _formula(config, cost, tokens)
    lesson.ask(six(subject))


@lab.asks("overtakes")
def overtakes(subject: Subject) -> lesson.Number | None:
    config, own = subject.config, len(subject.tokens)
    if (found := model_cost(config, own).overtakes) is None:
        return None
    meets = found.products
    said = lab.asked(
        "overtakes",
        subject.model,
        subject.text,
        wrong={"scores": 2 * meets, "one": meets / config.network_matrices, "width": config.d_model},
        form="short" if own < meets / 2 else "long",
        d=config.d_model,
        heads=counts.heads(config.n_heads),
        d_head=config.d_head,
        matrices=config.network_matrices,
        ff=config.d_ff,
        width=config.n_heads * config.d_head,
        n=f"{meets:,.0f}",
        own=own,
    )
    return lesson.Number(answer=meets, tolerance=1, written="{:,.0f}".format, **said)


@lab.asks("six")
def six(subject: Subject) -> lesson.Choice:
    return lab.choice("six", ("operations", "layers", "matrices"), "operations")


def _numbers() -> ModelConfig:
    *columns, last = (*st.columns(4), *st.columns(4))
    typed = {
        name: int(column.number_input(lab.text(name), low, high, **lab.setting(name, usual, Between(low, high))))
        for column, (name, (usual, low, high)) in zip(columns, BOXES.items(), strict=True)
    }
    return ModelConfig(
        vocab_size=typed["vocabulary"],
        d_model=typed["d"],
        n_heads=typed["heads"],
        n_kv_heads=typed["kv"],
        d_ff=typed["ff"],
        n_encoder_layers=typed["encoder"],
        n_decoder_layers=typed["decoder"],
        feedforward="gated" if last.toggle(lab.text("gated"), **lab.setting("gated", False)) else "plain",
        positions="none",
    )


def _described(config: ModelConfig) -> str:
    stacks = [count for count in (config.n_encoder_layers, config.n_decoder_layers) if count]
    return lab.text(
        "described",
        layers=" + ".join([*map(str, stacks[:-1]), counts.layers(stacks[-1])]),
        d=f"{config.d_model:,}",
        heads=counts.heads(config.n_heads),
        d_head=config.d_head,
        kv=config.kv_heads,
        ff=f"{config.d_ff:,}",
        tokens=f"{config.vocab_size:,}",
    )


def _shares(columns: Sequence[str], parts: Mapping[str, int], name: str, written: Callable[[int], str]) -> None:
    """A table of parts, of their shares of the sum, and of the sum under its `name`."""
    total = sum(parts.values())
    rows = [Row(part, Number(count, written(count)), share(count / total)) for part, count in parts.items()]
    st.html(table.to_html(columns, [*rows, Row(name, Number(total, written(total)), "", kind="sum")], bar=2))


def _memory(cost: ModelCost, size: int) -> None:
    """The bytes of one text, at `size` bytes a number."""
    cache, more = (labels.size(count * size) for count in (cost.kv_numbers, cost.kv_numbers_per_token))
    held = {
        "weights": labels.size(cost.total * size),
        "rows": labels.size(cost.activations.rows * size),
        "maps": labels.size(cost.activations.maps * size),
        "cache": lab.text("cached", all=cache, one=more) if cost.kv_numbers else lab.text("silent"),
    }
    rows = [Row(lab.text(f"memory.{part}"), said) for part, said in held.items()]
    st.html(table.to_html(lab.columns("memory", "bytes", tokens=counts.tokens(cost.n)), rows))


def _formula(config: ModelConfig, cost: ModelCost, tokens: float) -> None:
    matrices, width = config.network_matrices, config.d_ff
    parameters, flops = sizes.tex(cost.total), sizes.tex(cost.rule_of_thumb(tokens))
    training = rf"C &\approx 6 \cdot {parameters} \cdot {sizes.tex(tokens)} = {flops}"
    code = f"training = 6 * {cost.total} * {tokens:g}"
    if cost.overtakes is None:
        lesson.formula(r"C \approx 6 N D", live=training.replace("&", ""), code=code)
        return
    lesson.formula(
        r"\begin{aligned} 2 n^2 h\, d_\mathrm{head} &> m\, n\, d\, d_\mathrm{ff} \iff n > \frac{m\, d\, d_\mathrm{ff}}"
        r"{2 h\, d_\mathrm{head}} \\ C &\approx 6 N D \end{aligned}",
        live=r"\begin{aligned} "
        rf"n &> \frac{{{matrices} \cdot {config.d_model} \cdot {width}}}{{2 \cdot {config.n_heads} \cdot "
        rf"{config.d_head}}} = {cost.overtakes.products:.5g} \\ "
        rf"{training} \end{{aligned}}",
        code=f"matrices, d, d_ff, heads, d_head = {matrices}, {config.d_model}, {width}, {config.n_heads}, "
        f"{config.d_head}  # matrices of the feed-forward: 3 where it is gated\n"
        "overtakes = matrices * d * d_ff / (2 * heads * d_head)\n" + code,
    )

"""The laboratory Calculator: what a model of any configuration costs, and published ones."""

import streamlit as st

from vizformer.analysis.costs.model_costs import ModelCost
from vizformer.analysis.costs.published_models import PUBLISHED, Published
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.lessons.costs.wording import Between
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import counts, labels
from vizformer.web.words.i18n import _

OWN, NUMBERS = "own", "numbers"
BYTES = (4, 2, 1)
TOKENS = (1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13)
USUAL_TOKENS = 1e9  # where nothing is published


@laboratory
def calculator(subject: Subject) -> None:
    """Parameters, multiplications, activations, cache and training, for one configuration."""
    st.html(table.style())
    lesson.ask(overtakes_question(subject))
    published = {one.preset: one for one in PUBLISHED}
    names = {
        OWN: _("your model, {name}", name=subject.title),
        **{preset: one.name for preset, one in published.items()},
        NUMBERS: _("numbers of your own"),
    }
    chosen = st.selectbox(
        _("Configuration"),
        list(names),
        format_func=names.__getitem__,
        **lesson.setting("costs.model", OWN, tuple(names)),
    )
    known = published.get(chosen)
    if chosen == NUMBERS:
        config = _numbers()
    else:
        config = subject.config if known is None else known.config
    n = wording.length("costs.length", len(subject.tokens))
    size = st.select_slider(_("Bytes per number"), BYTES, **lesson.setting("costs.bytes", 4, BYTES))
    usual = USUAL_TOKENS if known is None or known.tokens is None else known.tokens
    amounts = sorted({*TOKENS, usual})
    tokens = st.select_slider(
        _("Tokens of the training, D"),
        amounts,
        format_func=wording.large,
        **lesson.setting(f"costs.{'tokens' if known is None else 'trained'}", usual, amounts),
    )
    cost = computations.model_cost(config, n)
    _parameters(cost, known)
    st.caption(_described(config))
    _costs(config, cost, size, tokens)
    _formula(config, cost, tokens)
    lesson.ask(six_question())


def _numbers() -> ModelConfig:
    """A configuration that is typed, number by number."""
    first, second = st.columns(4), st.columns(4)

    def box(where: int, label: str, name: str, usual: int, low: int, high: int) -> int:
        column = (*first, *second)[where]
        found = column.number_input(label, low, high, **lesson.setting(f"costs.{name}", usual, Between(low, high)))
        return int(found)

    encoder = box(0, _("Encoder layers"), "encoder", 6, 0, 500)
    decoder = box(1, _("Decoder layers"), "decoder", 6, 0, 500)
    d = box(2, "d_model", "d", 512, 2, 65_536)
    d_ff = box(3, "d_ff", "ff", 2048, 1, 262_144)
    heads = box(4, _("Heads"), "heads", 8, 1, 512)
    shared = box(5, _("Key/value heads"), "kv", 8, 1, 512)
    vocabulary = box(6, _("Vocabulary"), "vocabulary", 37_000, 1, 2_000_000)
    gated = second[3].toggle(_("Gated feed-forward"), **lesson.setting("costs.gated", False))
    return ModelConfig(
        vocab_size=vocabulary,
        d_model=d,
        n_heads=heads,
        n_kv_heads=shared,
        d_ff=d_ff,
        n_encoder_layers=encoder,
        n_decoder_layers=decoder,
        feedforward="gated" if gated else "plain",
        positions="none",
    )


def _described(config: ModelConfig) -> str:
    stacks = [count for count in (config.n_encoder_layers, config.n_decoder_layers) if count]
    layers = " + ".join([*map(str, stacks[:-1]), counts.layers(stacks[-1])])
    said = _(
        "{layers}, d_model {d}, {heads} of {d_head} ({kv} for keys and values), d_ff {ff}, {tokens} "
        "tokens in the vocabulary",
        layers=layers,
        d=f"{config.d_model:,}",
        heads=counts.heads(config.n_heads),
        d_head=config.d_head,
        kv=config.kv_heads,
        ff=f"{config.d_ff:,}",
        tokens=f"{config.vocab_size:,}",
    )
    if config.n_experts is not None:
        said += " · " + _(
            "{n} experts of width {width}, {k} of them for each token",
            n=config.n_experts,
            width=f"{config.expert_width:,}",
            k=config.experts_per_token,
        )
    return said


def _parameters(cost: ModelCost, known: Published | None) -> None:
    kinds = {
        "embedding": _("token embeddings"),
        "positions": _("table of positions"),
        "segments": _("table of segments"),
        "attention": _("self-attention"),
        "cross": _("cross-attention"),
        "feedforward": _("feed-forward"),
        "norm": _("norms"),
        "relative": _("table of distances"),
        "transform": _("dense layer before the logits"),
        "unembedding": _("output matrix"),
        "logit_bias": _("bias of the logits"),
    }
    total = cost.total
    rows = [
        Row((kinds.get(kind, kind), Number(count, f"{count:,}"), Number(count / total, labels.percent(count / total))))
        for kind, count in cost.components()
    ]
    rows.append(Row((_("together"), Number(total, f"{total:,}"), ""), "sum"))
    st.html(table.to_html((_("component"), _("parameters"), _("share")), rows, bar=2))
    if known is not None:
        st.caption(
            _(
                "Published: {count} parameters ({where}). Counted here: {share} of it.",
                count=wording.large(known.parameters),
                where=known.where,
                share=f"{total / known.parameters:.1%}",
            )
        )


def _costs(config: ModelConfig, cost: ModelCost, size: int, tokens: float) -> None:
    forward, kept = cost.forward, cost.activations
    parts = {
        _("attention: q kᵀ and weights · v"): forward.attention,
        _("the matrices of attention"): forward.projections,
        _("feed-forward"): forward.feedforward,
        _("logits"): forward.unembedding,
    }
    rows = [
        Row(
            (
                name,
                Number(count, wording.large(count)),
                Number(count / forward.total, labels.percent(count / forward.total)),
            )
        )
        for name, count in parts.items()
    ]
    rows.append(Row((_("one forward"), Number(forward.total, wording.large(forward.total)), ""), "sum"))
    columns = (_("multiplications for {tokens}", tokens=counts.tokens(cost.n)), _("number"), _("share"))
    st.html(table.to_html(columns, rows, bar=2))
    memory = [
        (_("weights"), labels.size(cost.total * size)),
        (_("activations kept for the backward pass, without maps"), labels.size(kept.rows * size)),
        (_("attention maps, where they are kept"), labels.size(kept.maps * size)),
        (
            _("KV cache"),
            _(
                "{all}, each more token {one}",
                all=labels.size(cost.kv_numbers * size),
                one=labels.size(cost.kv_numbers_per_token * size),
            )
            if cost.kv_numbers
            else _("none: this model writes nothing"),
        ),
    ]
    st.html(
        table.to_html(
            (_("memory for one text of {tokens}", tokens=counts.tokens(cost.n)), _("bytes")),
            [Row(line) for line in memory],
        )
    )
    counted, rule = cost.training_flops(tokens), cost.rule_of_thumb(tokens)
    training = [
        Row((_("rule of thumb, 6·N·D"), f"{wording.scientific(rule)} FLOPs")),
        Row((_("counted, product by product"), f"{wording.scientific(counted)} FLOPs")),
    ]
    st.html(table.to_html((_("training on {tokens} tokens", tokens=wording.large(tokens)), _("operations")), training))
    meets = cost.overtakes
    st.text(
        _(
            "From {products} on q kᵀ and weights · v take more multiplications than the feed-forward network "
            "of the same layer; the whole attention, with its matrices, does from {whole} on.",
            products=counts.tokens(round(max(1, meets.products))),
            whole=counts.tokens(round(max(1, meets.whole))),
        )
    )
    if cost.n > config.max_positions and config.positions in ("learned", "sinusoidal", "rope"):
        st.caption(
            _(
                "This model reads {most} positions at most; the numbers say what {n} would cost.",
                most=f"{config.max_positions:,}",
                n=f"{cost.n:,}",
            )
        )


def _formula(config: ModelConfig, cost: ModelCost, tokens: float) -> None:
    matrices, width = config.network_matrices, config.active_d_ff
    lesson.formula(
        r"\begin{aligned} 2 n^2 h\, d_\mathrm{head} &> m\, n\, d\, d_\mathrm{ff} \iff n > \frac{m\, d\, d_\mathrm{ff}}"
        r"{2 h\, d_\mathrm{head}} \\ C &\approx 6 N D \end{aligned}",
        live=r"\begin{aligned} "
        rf"n &> \frac{{{matrices} \cdot {config.d_model} \cdot {width}}}{{2 \cdot {config.n_heads} \cdot "
        rf"{config.d_head}}} = {cost.overtakes.products:.5g} \\ "
        rf"C &\approx 6 \cdot {wording.tex(cost.active)} \cdot {wording.tex(tokens)} = "
        rf"{wording.tex(cost.rule_of_thumb(tokens))} \end{{aligned}}",
        code=f"matrices, d, d_ff, heads, d_head = {matrices}, {config.d_model}, {width}, {config.n_heads}, "
        f"{config.d_head}  # matrices of the feed-forward: 3 where it is gated\n"
        "overtakes = matrices * d * d_ff / (2 * heads * d_head)\n"
        f"training = 6 * {cost.active} * {tokens:g}",
    )


def six_question() -> lesson.Choice:
    """Which are the six operations?"""
    return lesson.Choice(
        "costs",
        "six",
        _("In 6·N·D every parameter takes part in six operations per token. Which are these?"),
        [
            _("a multiplication and an addition, forward once and backward twice"),
            _("one for each of the six layers"),
            _("q, k, v, W_O and two matrices of the feed-forward"),
        ],
        0,
        _(
            "Forward each weight is multiplied once and added once. Backward the same happens twice: for the gradient "
            "of the input and for that of the weight. What depends on n, q kᵀ and weights · v, is left out, and a "
            "table that is only looked up is counted in: so the rule is good where models are large and texts short."
        ),
    )


def overtakes_question(subject: Subject) -> lesson.Number:
    config = subject.config
    meets = computations.model_cost(config, len(subject.tokens)).overtakes.products
    matrices = config.network_matrices
    return lesson.Number(
        "costs",
        "overtakes",
        _(
            "Your model: d = {d}, {heads} of {d_head}, a feed-forward network of {matrices} matrices {d} × "
            "{ff}. From how many tokens on do q kᵀ and weights · v take more multiplications than the feed-forward "
            "network?",
            d=config.d_model,
            heads=counts.heads(config.n_heads),
            d_head=config.d_head,
            matrices=matrices,
            ff=config.active_d_ff,
        ),
        meets,
        _(
            "2n²·{width} against {matrices}·n·{d}·{ff}: they are equal at n = {n}. Your text has {own} tokens, so "
            "that nearly all of the work is in matrices that do not know how long it is.",
            width=config.n_heads * config.d_head,
            matrices=matrices,
            d=config.d_model,
            ff=config.active_d_ff,
            n=f"{meets:,.0f}",
            own=len(subject.tokens),
        )
        if len(subject.tokens) < meets / 2
        else _(
            "2n²·{width} against {matrices}·n·{d}·{ff}: they are equal at n = {n}.",
            width=config.n_heads * config.d_head,
            matrices=matrices,
            d=config.d_model,
            ff=config.active_d_ff,
            n=f"{meets:,.0f}",
        ),
        tolerance=1,
        written="{:,.0f}".format,
        about=f"{subject.model} {subject.text}",
    )

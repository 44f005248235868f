"""The laboratory Family: what BERT, GPT, T5, BART and LLaMA changed, and shared heads and experts as arithmetic."""

from dataclasses import replace

import streamlit as st

from vizformer.analysis.costs.experts import Mixture
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.options.feedforward import ACTIVATION_NAMES
from vizformer.options.norms import NORM_PLACES
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.lessons.costs import computations, wording
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate

# preset -> the bundled model that is nearest, or the name on huggingface.co of a small one to be opened
NEAREST = {
    "transformer-base": "zh-en",
    "bert-base": "cloze",
    "gpt2-small": "openai-community/gpt2",
    "t5-base": "google-t5/t5-small",
    "bart-large": "facebook/bart-base",
    "llama-7b": "stories",
}
NAMES = {
    "transformer-base": "Transformer (2017)",
    "bert-base": "BERT (2018)",
    "gpt2-small": "GPT-2 (2019)",
    "t5-base": "T5 (2019)",
    "bart-large": "BART (2019)",
    "llama-7b": "LLaMA (2023)",
}
HEADS = (8, 16, 32, 64)
EXPERTS = (1, 2, 4, 8, 16, 64)
CODE = """def f(x, m):  # RoPE: pair i of x, turned by m * omega_i
    omega = 10_000.0 ** (-torch.arange(0, len(x), 2) / len(x))
    a, b, cos, sin = x[0::2], x[1::2], torch.cos(m * omega), torch.sin(m * omega)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten()
q, k, x = torch.randn(3, {d})
same = torch.allclose(f(q, 5) @ f(k, 2), f(q, 25) @ f(k, 22), atol=1e-4)  # only m - n counts
rms_norm = x / torch.sqrt((x**2).mean() + 1e-6)  # times a learned scale; no mean is taken off, nothing is added
W_gate, W_in, W_out = torch.randn(3, {d}, {d})
swiglu = (F.silu(x @ W_gate) * (x @ W_in)) @ W_out"""


@laboratory
def family(subject: Subject) -> None:
    """The table, models to open, then sliders for key/value heads and for experts."""
    st.html(table.style())
    _table(subject)
    _open(subject)
    lesson.formula(
        r"\begin{aligned} \text{RoPE:}\quad & f(x, m) = R_m x \\ & f(q, m) \cdot f(k, n) = g(q, k, m - n) \\"
        r"\text{RMSNorm:}\quad & x \cdot \gamma \,/\, \sqrt{\mathrm{mean}(x^2) + \epsilon} \\"
        r"\text{SwiGLU:}\quad & (\mathrm{SiLU}(x W_\mathrm{gate}) \odot x W_\mathrm{in})\, W_\mathrm{out} \end{aligned}",
        code=CODE.format(d=8),
    )
    with st.container(horizontal=True):
        for entry, part, label in (
            (sitemap.POSITIONS, "options", _("RoPE and five other schemes: lesson 3")),
            (sitemap.BLOCK, "norm", _("RMSNorm number by number: lesson 7")),
            (sitemap.BLOCK, "ffn", _("SwiGLU, the gated feed-forward: lesson 7")),
        ):
            st.page_link(entry.file, query_params={"part": part}, label=label)
    lesson.ask(smaller_question())
    left, right = st.columns(2, gap="large")
    with left:
        _shared_heads(subject)
    with right:
        _experts(subject)


def smaller_question() -> lesson.Choice:
    return lesson.Choice(
        "costs",
        "smaller",
        _("LLaMA 7B beside GPT-2: which of its changes makes the KV cache smaller?"),
        ["RMSNorm", "RoPE", "SwiGLU", _("none of these")],
        3,
        _(
            "The cache holds keys and values, of every layer, head and token. Norms and the feed-forward do not touch "
            "them, and RoPE turns keys without making them shorter. What helps are fewer key/value heads, as in Llama "
            "2 70B."
        ),
    )


def _options(config: ModelConfig) -> tuple[str, ...]:
    stacks = {
        "encoder-decoder": _("encoder and decoder"),
        "encoder-only": _("encoder"),
        "decoder-only": _("decoder"),
    }
    norms = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm", "deviation_norm": _("LayerNorm by hand")}
    place = translate(NORM_PLACES[config.norm_order])
    activation = ACTIVATION_NAMES[config.activation]
    gated = {"silu": "SwiGLU", "gelu": "GEGLU", "gelu_tanh": "GEGLU"}.get(config.activation, activation)
    shared = config.kv_heads == config.n_heads
    return (
        stacks[config.architecture],
        f"{norms[config.norm]}, {place}" if config.has_norms else _("none"),
        labels.places(config),
        gated if config.feedforward == "gated" else activation,
        _("each head its own") if shared else _("{g} for {h} heads", g=config.kv_heads, h=config.n_heads),
        _("one table") if config.tied_unembedding else _("two tables"),
    )


def _table(subject: Subject) -> None:
    trained = {
        "transformer-base": _("the next token of a translation"),
        "bert-base": _("hidden tokens, and whether two sentences follow each other"),
        "gpt2-small": _("the next token"),
        "t5-base": _("what stood in gaps that were cut out"),
        "bart-large": _("the text that was damaged"),
        "llama-7b": _("the next token"),
    }
    rows = [Row((_("your model"), *_options(subject.config), "", ""), "marked")]
    rows += [
        Row((name, *_options(ModelConfig.preset(preset)), trained[preset], NEAREST[preset]))
        for preset, name in NAMES.items()
    ]
    columns = (
        _("model"),
        _("stacks"),
        _("norm"),
        _("positions"),
        _("activation"),
        _("keys and values"),
        _("input and output"),
        _("trained to say"),
        _("to be opened"),
    )
    st.html(table.to_html(columns, rows))


def _open(subject: Subject) -> None:
    """A button for each bundled model; how the others are opened."""
    with st.container(horizontal=True):
        for preset, name in NEAREST.items():
            if "/" in name or str(subject.model) == name:
                continue
            label = _("Open {model}, the bundled model nearest to {family}", model=name, family=NAMES[preset])
            if presses.button(label, key=f"costs.open.{name}"):
                state.update(model=ModelRef.parse(name))
                st.rerun()  # the whole page: the sentence is read by another model
    st.caption(
        _(
            "Names with a slash are on huggingface.co: “Open your own” beside the model opens them where the server "
            "may reach it, or a folder with their files where it may not."
        )
    )


def _shared_heads(subject: Subject) -> None:
    st.subheader(_("Fewer keys and values (MQA, GQA)"), anchor=False)
    first, second = st.columns(2)
    heads = first.select_slider(_("Query heads"), HEADS, **lesson.setting("costs.query_heads", 32, HEADS))
    layers = second.slider(_("Layers"), 1, 96, **lesson.setting("costs.layers", 32, wording.Between(1, 96)))
    n = wording.length("costs.cached", len(subject.tokens), 4096)
    base = replace(ModelConfig.preset("llama-7b"), n_heads=heads, d_model=128 * heads, n_decoder_layers=layers)
    rows = []
    for g in [2**e for e in range(heads.bit_length())]:
        cost = computations.model_cost(replace(base, n_kv_heads=g), n)
        name = "MQA" if g == 1 else _("every head its own") if g == heads else f"GQA, {heads // g} : 1"
        rows.append(
            Row(
                (
                    Number(g, str(g)),
                    name,
                    Number(cost.kv_numbers, labels.size(2 * cost.kv_numbers)),
                    Number(cost.kv_numbers_per_token, labels.size(2 * cost.kv_numbers_per_token)),
                )
            )
        )
    columns = (_("key/value heads"), "", _("KV cache at {n} tokens", n=f"{n:,}"), _("each more token"))
    caption = _("Heads of 128, 2 bytes per number, one text")
    st.html(table.to_html(columns, rows, caption=caption))
    lesson.formula(
        r"2 \cdot \text{layers} \cdot g \cdot d_\mathrm{head} \cdot n \cdot 2 \;\text{bytes}",
        live=rf"2 \cdot {layers} \cdot {heads} \cdot 128 \cdot {n} \cdot 2 = "
        rf"{wording.tex(4 * layers * heads * 128 * n)} \quad (g = {heads})",
    )
    st.page_link(
        sitemap.HEADS.file, query_params={"part": "groups"}, label=_("Who reads which, in your model: lesson 5")
    )


def _experts(subject: Subject) -> None:
    st.subheader(_("More parameters, the same work (mixture of experts)"), anchor=False)
    lesson.ask(experts_question(subject))
    first, second = st.columns(2)
    experts = first.select_slider(_("Experts"), EXPERTS, **lesson.setting("costs.experts", 8, EXPERTS))
    top_k = min(experts, 2)
    if experts > 1:
        most = min(experts, 8)
        top_k = second.slider(
            _("Used by a token"), 1, most, **lesson.setting("costs.used", min(2, most), wording.Between(1, most))
        )
    shown: dict[str, Mixture] = {
        _("your model"): computations.mixture(subject.config, experts, top_k),
        "Mistral 7B": computations.mixture(ModelConfig.preset("mistral-7b"), experts, top_k),
    }
    rows = [_mixture_row(name, one) for name, one in shown.items()]
    if (own_experts := computations.own_mixture(subject.config)) is not None:
        rows.insert(0, _mixture_row(_("your model, with the experts that it has"), own_experts))
    columns = (_("with {n} experts, {k} used", n=experts, k=top_k), _("stored"), _("used by a token"), _("share"))
    st.html(table.to_html(columns, rows, bar=3))
    own = shown[_("your model")]
    layers = subject.config.depth
    lesson.formula(
        r"\begin{aligned} \text{stored} &= \text{others} + L\, (E \cdot \mathrm{ffn} + E\, d) \\ \text{used} &= "
        r"\text{others} + L\, (k \cdot \mathrm{ffn} + E\, d) \end{aligned}",
        live=rf"{layers} \cdot ({experts} - {top_k}) \cdot {own.expert:,} = {own.total - own.active:,}".replace(
            ",", "{,}"
        )
        + r" \;\text{unused}",
    )
    st.caption(
        _(
            "Mistral 7B with 8 experts, of which 2 are used, is Mixtral 8x7B: 47 · 10⁹ parameters, 13 · 10⁹ used "
            "(Jiang et al. 2024)."
        )
    )


def _mixture_row(name: str, one: Mixture) -> Row:
    return Row(
        (
            name,
            Number(one.total, wording.large(one.total)),
            Number(one.active, wording.large(one.active)),
            Number(one.active / one.total, f"{one.active / one.total:.0%}"),
        )
    )


def experts_question(subject: Subject) -> lesson.Number:
    one, eight = computations.mixture(subject.config, 1, 1), computations.mixture(subject.config, 8, 1)
    return lesson.Number(
        "costs",
        "experts",
        _(
            "Suppose every feed-forward network of your model ({one} parameters each) became 8 experts, 1 of them "
            "used by a token. How many times as many parameters would the model have?",
            one=f"{one.expert:,}",
        ),
        eight.total / one.total,
        _(
            "{before} would become {after}, {times} times as many: only the feed-forward networks are multiplied, not "
            "attention and tables. A token is multiplied with as many as before (and the router).",
            before=f"{one.total:,}",
            after=f"{eight.total:,}",
            times=f"{eight.total / one.total:.2f}",
        ),
        tolerance=0.3,
        written="{:.2f}".format,
        about=f"{subject.model}",
    )

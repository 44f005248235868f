"""The laboratory Family: what BERT, GPT, T5, BART and LLaMA changed, and shared heads and experts as arithmetic."""

from dataclasses import replace

import streamlit as st

from vizformer.analysis.costs import model_costs
from vizformer.components import table
from vizformer.components.table import Number, Row, numbers
from vizformer.config import ModelConfig
from vizformer.options.feedforward import ACTIVATION_NAMES
from vizformer.options.norms import NORM_PLACES
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.lessons.costs import sizes
from vizformer.web.lessons.costs.sizes import model_cost
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import translate

lab = Laboratory("costs", "family", wide=True)
# preset -> its name, the bundled model that is nearest, or the name on huggingface.co of a small one to be opened
RELATIVES = {
    "transformer-base": ("Transformer (2017)", "zh-en"),
    "bert-base": ("BERT (2018)", "cloze"),
    "gpt2-small": ("GPT-2 (2019)", "openai-community/gpt2"),
    "t5-base": ("T5 (2019)", "google-t5/t5-small"),
    "bart-large": ("BART (2019)", "facebook/bart-base"),
    "llama-7b": ("LLaMA (2023)", "stories"),
}
GOES_ON = {"rope": (sitemap.POSITIONS, "options"), "norm": (sitemap.BLOCK, "norm"), "gate": (sitemap.BLOCK, "ffn")}
STACKS = ("encoder-decoder", "encoder-only", "decoder-only")
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


mixture = cached(model_costs.mixture)


@lab.draws
def draw(subject: Subject) -> None:
    """The table, models to open, then sliders for key/value heads and for experts."""
    rows = [Row(lab.text("your_model"), *_options(subject.config), "", "", kind="marked")]
    for preset, (name, nearest) in RELATIVES.items():
        rows.append(Row(name, *_options(ModelConfig.preset(preset)), lab.text("trained", form=preset), nearest))
    names = ("model", "stacks", "norm", "positions", "activation", "keys", "tables", "trained", "opened")
    st.html(table.style() + table.to_html(lab.columns(*names), rows))
    _open(subject)
    lesson.formula(
        r"\begin{aligned} \text{RoPE:}\quad & f(x, m) = R_m x \\ & f(q, m) \cdot f(k, n) = g(q, k, m - n) \\"
        r"\text{RMSNorm:}\quad & x \cdot \gamma \,/\, \sqrt{\mathrm{mean}(x^2) + \epsilon} \\"
        r"\text{SwiGLU:}\quad & (\mathrm{SiLU}(x W_\mathrm{gate}) \odot x W_\mathrm{in})\, W_\mathrm{out} \end{aligned}",
        code=CODE.format(d=8),
    )
    with st.container(horizontal=True):
        for name, (entry, part) in GOES_ON.items():
            st.page_link(entry.file, query_params=state.lead(part=part), label=lab.text(f"also.{name}"))
    lesson.ask(smaller(subject))
    left, right = st.columns(2, gap="large")
    with left:
        _shared_heads(subject)
    with right:
        _experts(subject)


@lab.asks("smaller")
def smaller(subject: Subject) -> lesson.Choice:
    return lab.choice("smaller", ("norm", "rope", "gate", "none"), "none")


@lab.asks("experts")
def times(subject: Subject) -> lesson.Number:
    one, eight = mixture(subject.config, 1, 1), mixture(subject.config, 8, 1)
    values = {"one": one.expert, "before": one.total, "after": eight.total}
    written = {name: f"{value:,}" for name, value in values.items()}
    wrong = {"whole": 8, "used": 1}
    said = lab.asked("experts", subject.model, wrong=wrong, times=f"{eight.total / one.total:.2f}", **written)
    return lesson.Number(answer=eight.total / one.total, tolerance=0.3, written="{:.2f}".format, **said)


def _options(config: ModelConfig) -> tuple[str, ...]:
    norm = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}[config.norm]
    activation = ACTIVATION_NAMES[config.activation]
    gated = {"silu": "SwiGLU", "gelu": "GEGLU", "gelu_tanh": "GEGLU"}.get(config.activation, activation)
    g, h = config.kv_heads, config.n_heads
    return (
        lab.texts("stacks", STACKS)[config.architecture],
        f"{norm}, {translate(NORM_PLACES[config.norm_order])}" if config.has_norms else lab.text("none"),
        labels.places(config),
        gated if config.feedforward == "gated" else activation,
        lab.text("heads", form="own" if g == h else "shared", g=g, h=h),
        lab.text("tables", form="one" if config.tied_unembedding else "two"),
    )


def _open(subject: Subject) -> None:
    """A button for each bundled model; how the others are opened."""
    with st.container(horizontal=True):
        for family, name in RELATIVES.values():
            if "/" in name or str(subject.model) == name:
                continue
            if presses.button(lab.text("open", model=name, family=family), key=f"costs.open.{name}"):
                state.update(model=ModelRef.parse(name))
                st.rerun()  # the whole page: the sentence is read by another model
    lab.note("elsewhere")


def _shared_heads(subject: Subject) -> None:
    st.subheader(lab.text("fewer"), anchor=False)
    first, second = st.columns(2)
    with first:
        heads = lab.steps("query_heads", HEADS, 32)
    with second:
        layers = lab.slider("layers", 1, 96, 32)
    n = sizes.length(lab, "cached", len(subject.tokens), 4096)
    base = replace(ModelConfig.preset("llama-7b"), n_heads=heads, d_model=128 * heads, n_decoder_layers=layers)
    rows = []
    for g in [2**e for e in range(heads.bit_length())]:
        cost = model_cost(replace(base, n_kv_heads=g), n)
        name = "MQA" if g == 1 else lab.text("own_keys") if g == heads else f"GQA, {heads // g} : 1"
        nbytes = (2 * cost.kv_numbers, 2 * cost.kv_numbers_per_token)
        rows.append(Row(Number(g, str(g)), name, *(Number(value, labels.size(value)) for value in nbytes)))
    groups, cache, more = lab.columns("groups", "cache", "more", n=f"{n:,}")
    st.html(table.to_html((groups, "", cache, more), rows, caption=lab.text("of_128")))
    lesson.formula(
        r"2 \cdot \text{layers} \cdot g \cdot d_\mathrm{head} \cdot n \cdot 2 \;\text{bytes}",
        live=rf"2 \cdot {layers} \cdot {heads} \cdot 128 \cdot {n} \cdot 2 = "
        rf"{sizes.tex(4 * layers * heads * 128 * n)} \quad (g = {heads})",
    )
    st.page_link(sitemap.HEADS.file, query_params=state.lead(part="groups"), label=lab.text("who"))


def _experts(subject: Subject) -> None:
    st.subheader(lab.text("more"), anchor=False)
    lesson.ask(times(subject))
    first, second = st.columns(2)
    with first:
        n = lab.steps("experts", EXPERTS, 8)
    most = min(n, 8)
    with second:
        used = lab.slider("used", 1, most, min(2, most)) if n > 1 else 1
    own = mixture(subject.config, n, used)
    shown = {
        lab.text("your_model"): own,
        "Mistral 7B": mixture(ModelConfig.preset("mistral-7b"), n, used),
    }
    rows = [
        Row(name, sizes.cell(one.total), sizes.cell(one.active), *numbers(".0%", one.active / one.total))
        for name, one in shown.items()
    ]
    st.html(table.to_html(lab.columns("with", "stored", "used", "share", n=n, k=used), rows, bar=3))
    lesson.formula(
        r"\begin{aligned} \text{stored} &= \text{others} + L\, (E \cdot \mathrm{ffn} + E\, d) \\ \text{used} &= "
        r"\text{others} + L\, (k \cdot \mathrm{ffn} + E\, d) \end{aligned}",
        live=rf"{subject.config.depth} \cdot ({n} - {used}) \cdot {own.expert:,} = {own.total - own.active:,}".replace(
            ",", "{,}"
        )
        + r" \;\text{unused}",
    )
    lab.note("mixtral")

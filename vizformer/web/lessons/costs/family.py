"""The laboratory Family: what BERT, GPT, T5, BART and LLaMA changed, and experts as arithmetic."""

import streamlit as st

from vizformer.analysis.costs import parameter_count
from vizformer.components import table
from vizformer.components.table import Filled, Row, numbers
from vizformer.config import ModelConfig
from vizformer.options import ACTIVATION_NAMES, NORM_PLACES
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses, sitemap
from vizformer.web.lessons.costs import sizes
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
GOES_ON = {
    **{"rope": (sitemap.POSITIONS, "options"), "norm": (sitemap.BLOCK, "norm")},
    **{"gate": (sitemap.BLOCK, "ffn"), "who": (sitemap.HEADS, "groups")},
}
STACKS = ("encoder-decoder", "encoder-only", "decoder-only")
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


mixture = cached(parameter_count.mixture)


@lab.draws
def draw_model_family(subject: Subject) -> None:
    """A map of what each model exchanged, models to open, then sliders for experts."""
    rows = [Row(lab.text("your_model"), *_exchanged(subject.config), "", "", kind="marked")]
    for preset, (name, nearest) in RELATIVES.items():
        rows.append(Row(name, *_exchanged(ModelConfig.preset(preset)), lab.text("trained", form=preset), nearest))
    names = ("model", "stacks", "norm", "positions", "activation", "keys", "tables", "trained", "opened")
    st.html(table.style() + table.to_html(lab.columns(*names), rows))
    lab.note("filled")
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


def _exchanged(config: ModelConfig) -> list[str]:
    """The options, filled where the Transformer of the paper has another one."""
    paper = _options(ModelConfig.preset("transformer-base"))
    return [one if one == first else Filled(one) for one, first in zip(_options(config), paper, strict=True)]


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

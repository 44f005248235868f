"""The laboratory Memory: what published models keep of the tokens before, in bytes, against the length of the text."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.costs.state_bytes import deepseek_v3, kept_bytes, qwen3_next
from vizformer.assets import HYBRID
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.config import ModelConfig
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.link import state
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words import labels

lab = Laboratory("mixers", "memory")
LENGTHS = tuple(2**power for power in range(4, 21))
GPT3, LLAMA2, MISTRAL, DEEPSEEK = "GPT-3", "Llama 2 70B", "Mistral 7B", "DeepSeek-V3"
MIB = 2**20
OWN_HYBRID = ModelRef("bundled", HYBRID)


def _models() -> dict[str, tuple[ModelConfig, str]]:
    """Name -> the model, and which of its bytes: those of caches, of states, or both."""
    hybrid, name = qwen3_next(), "Qwen3-Next 80B"
    return {
        GPT3: (ModelConfig.preset("gpt3-175b"), "total"),
        LLAMA2: (ModelConfig.preset("llama2-70b"), "total"),
        MISTRAL: (ModelConfig.preset("mistral-7b"), "total"),
        lab.text("whole", name=DEEPSEEK): (deepseek_v3(keys_and_values=True), "total"),
        lab.text("latent", name=DEEPSEEK): (deepseek_v3(), "total"),
        lab.text("only", name=name): (qwen3_next(attention_only=True), "total"),
        lab.text("cache", name=name): (hybrid, "cache"),
        lab.text("state", name=name): (hybrid, "state"),
    }


@lab.draws
def draw(subject: Subject) -> None:
    """Curves of bytes, both axes logarithmic; the bytes at one length; a layer by hand."""
    with controls():
        n = lab.steps("n", LENGTHS, 4096, "{:,}".format)
    models = _models()
    kept = {name: [_bytes(*of, one) for one in LENGTHS] for name, of in models.items()}
    at = LENGTHS.index(n)
    drawn = figures.line_curves(
        np.array(LENGTHS),
        {name: np.array(values) / MIB for name, values in kept.items()},
        place_title=lab.text("place"),
        value_title="MiB",
        hover=lab.text("hover"),
        dots=(np.array([n]), {name: np.array([values[at]]) / MIB for name, values in kept.items()}, [f"{n:,}"]),
        digits=1,
        height=440,
        title=lab.text("picture"),
    )
    drawn.update_xaxes(type="log", dtick=1, exponentformat="power").update_yaxes(
        type="log", dtick=1, exponentformat="power"
    )
    chart.show(drawn, key="mixers.memory", title_above=True)
    rows = []
    for name, of in models.items():
        now, more = _bytes(*of, n), _bytes(*of, n + 1)
        rows.append(Row(name, Number(now, labels.size(now)), Number(more - now, labels.size(more - now))))
    st.html(table.style() + table.to_html(lab.columns("model", "bytes", "token", n=f"{n:,}"), rows))
    own = kept_bytes(subject.config, n)
    if own.total:
        lab.say(
            "own", form="state" if own.state else "cache", model=subject.title, n=f"{n:,}", bytes=labels.size(own.total)
        )
    if subject.model != OWN_HYBRID and presses.button(lab.text("open", model=OWN_HYBRID.name), key="mixers.open"):
        state.update(model=OWN_HYBRID)
        st.rerun()  # the whole page: the sentence is read by another model
    lab.note("how")
    _formula(n)
    lesson.ask(equal(subject))
    lesson.ask(ends(subject))


@lab.asks("equal")
def equal(subject: Subject) -> lesson.Number:
    said = lab.asked("equal", wrong={"one": 2048, "bytes": 512, "heads": 32})
    return lesson.Number(answer=1024, **said)


@lab.asks("ends")
def ends(subject: Subject) -> lesson.Choice:
    return lab.choice("ends", ("heads", "state", "both", "all"), "both")


def _bytes(config: ModelConfig, what: str, n: int) -> int:
    found: int = getattr(kept_bytes(config, n), what)
    return found


def _formula(n: int) -> None:
    """A layer of either kind, of the shapes of Qwen3-Next."""
    config = qwen3_next()
    (__, heads), (d_key, d_value), kv, d_head = config.state_heads, config.state_dims, config.kv_heads, config.d_head
    numbers = (2 * kv * d_head * n * 2, heads * d_key * d_value * 4)
    cache, state = (f"{value:,}".replace(",", "{,}") for value in numbers)
    lesson.formula(
        r"\text{cache: } 2\,n_\mathrm{kv}\,d_\mathrm{head}\,n \cdot 2, \qquad \text{state: } h\,d_k\,d_v \cdot 4",
        live=rf"2 \cdot {kv} \cdot {d_head} \cdot {n} \cdot 2 = {cache}, \qquad "
        rf"{heads} \cdot {d_key} \cdot {d_value} \cdot 4 = {state}",
        code="cache = 2 * n_kv * d_head * n * 2  # bfloat16\nstate = n_heads * d_key * d_value * 4  # float32, at every n",
        given={"n_kv": kv, "d_head": d_head, "n": n, "n_heads": heads, "d_key": d_key, "d_value": d_value},
    )

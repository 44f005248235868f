"""A laboratory of the lesson The map: how strongly early tokens are felt at the last one, by a GRU and a Transformer."""

import json
from itertools import chain

import numpy as np
import streamlit as st
from jaxtyping import Float

from vizformer import figures
from vizformer.analysis.training import depth_gradients
from vizformer.analysis.training.depth_gradients import felt, jacobian_cost, least_felt
from vizformer.assets import asset
from vizformer.explain import latex
from vizformer.text import Token, Tokenizer
from vizformer.training.repeater import GRULanguageModel, load_gru
from vizformer.web.catalogue import model_cache, sources
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.beginnings import TEXTS
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.widgets import chart, lesson, model_suggestions
from vizformer.web.widgets.lab import Laboratory, aside, controls
from vizformer.web.words import labels

lab = Laboratory("map", "gru")
STORIES = ModelRef("bundled", "stories")  # the tokens and the training text of the GRU
EXAMPLES = {
    "zh": "坐在窗户旁边看书的那个女孩是我们的新老师。",
    "en": "The old man who lived in the little house at the end of the road had a dog that was very fond of him.",
}
NEAR, FAR, EARLY = slice(1, 4), slice(8, -1), slice(-6, -1)  # places before the last; the start mark does not count
LONGEST = 48
"""Tokens whose gradients are computed: an exact Jacobian takes a second for 27 of them, and grows with their number."""
AFFORDABLE = 6 * 10**10
"""The most that an exact Jacobian may cost (`jacobian_cost`): the bundled models stay below with `LONGEST` tokens."""
CODE = """t = {t}
x = torch.randn(1, {n}, {d_x})  # stands in for the vectors of the {n} tokens
gru = torch.nn.GRU({d_x}, {d_h}, batch_first=True)  # untrained here
jacobian = torch.autograd.functional.jacobian(lambda tokens: gru(tokens)[0][0, -1], x)[:, 0]  # [d_h, n, d_x]
sizes = jacobian.norm(dim=(0, 2))  # [n]
share = sizes[t] / sizes[-1]"""


@cached
def trained() -> tuple[GRULanguageModel, Tokenizer]:
    prepare_torch()
    return load_gru(asset("lessons", "map"))


@cached
def losses() -> tuple[float, float]:
    """Held-out losses on Chinese of the GRU and of `stories`, nats a token."""
    files = (asset("lessons", "map", "gru.json"), asset("models", "stories", "training.json"))
    own, other = (json.loads(file.read_text(encoding="utf-8"))["held_out"]["chinese"] for file in files)
    return own, other


@cached
def ten_sentences() -> dict[str, list[np.ndarray]]:
    """What `recipes.felt_tokens` measured of the GRU and of `stories`: shares of the last token's own, from it back."""
    found = json.loads(asset("lessons", "map", "ten_sentences.json").read_text(encoding="utf-8"))
    return {name: [np.array(shares) for shares in found[name]] for name in ("gru", "stories")}


def read(text: str) -> tuple[Token, ...]:
    """The first tokens of the text as the GRU reads them."""
    return trained()[1].encode(text)[:LONGEST]


@cached
def gru_gradients(text: str) -> Float[np.ndarray, " n"]:
    """|d h_last / d x_t| of the GRU for every token."""
    return depth_gradients.gru_gradients(trained()[0], [token.id for token in read(text)])


@cached
def transformer_gradients(model: ModelRef, text: str) -> Float[np.ndarray, " n"]:
    """|d y_last / d x_t| of the stack that reads the text, for its first tokens."""
    loaded = model_cache.checkpoint(model)
    tokens = loaded.encode(text)[:LONGEST]
    return depth_gradients.transformer_gradients(loaded.model, [token.id for token in tokens], loaded.segments(tokens))


@lab.draws
def draw_gru(subject: Subject) -> None:
    text, model = subject.text, subject.model
    lesson.ask(gru_question(subject))
    settings, example = controls(), EXAMPLES.get(model_suggestions.written_in(text) or "zh", EXAMPLES["zh"])
    if text != example:
        untouched = text in TEXTS  # short ones, in which no token is far from the last
        with settings:
            if lab.toggle("long", untouched, text=example):
                text, model = example, STORIES
    curves = _curves(model, text)
    spread = dict(zip(curves, map(_band, ten_sentences().values()), strict=False)) if model == STORIES else {}
    furthest = min(len(sizes) for texts, sizes in curves.values()) - 1
    with settings:
        back = lab.slider("back", 0, furthest, furthest) if furthest > 0 else furthest
        logarithmic = lab.buttons("scale", ("log", "linear")) == "log"
    title = lab.text("strongly")
    chart.show(
        figures.gradient_reach(curves, spread, back=back, logarithmic=logarithmic, title=title), key="map.gradients"
    )
    if spread:
        _count()
    for name, (texts, sizes) in curves.items():
        at, least = felt(sizes, back), least_felt(sizes)
        here = {"at": at.token, "token": texts[at.token], "share": labels.percent(at.share)}
        weakest = {"where": least.token, "what": texts[least.token], "least": labels.percent(least.share)}
        lab.say("counts", name=name, **here, **weakest)
    tokens = {name: texts for name, (texts, __) in curves.items()}
    if len(tokens) == 2:
        (first, own), (second, other) = tokens.items()
        if own != other:
            ends = {"last": own[-1], "end": other[-1]}
            lab.note("differ", first=first, second=second, own=len(own), other=len(other), **ends)
    aside(labels.bytes_said([*chain(*tokens.values())]))
    if any((sizes == 0).any() for __, sizes in curves.values()):
        lab.note("missing")
    _formula(gru_gradients(text), back)
    if max(map(len, tokens.values())) >= LONGEST:
        lab.note("first", n=LONGEST)
    loss, other_loss = losses()
    lab.note("about", parameters=trained()[0].n_parameters, loss=loss, other=other_loss)


@lab.asks("felt")
def gru_question(subject: Subject) -> lesson.Number | None:
    tokens = read(subject.text)
    last = len(tokens) - 1
    first = next((i for i, token in enumerate(tokens) if not token.special), last)
    if first == last:  # the first word is the last token
        return None
    share = felt(gru_gradients(subject.text), last - first).share
    values = {
        "first": first,
        "token": labels.texts(tokens)[first],
        "share": labels.percent(share),
        "steps": last - first,
    }
    wrong = {"all": 100, "half": 100 / 2 ** (last - first), "even": 100 / (last + 1)}
    said = lab.asked("felt", subject.text, wrong=wrong, **values)
    return lesson.Number(answer=100 * share, tolerance=10, written="{:.1f}".format, **said)


def _band(sentences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest of several sentences, as far back as all of them reach."""
    shares = np.stack([one[: min(map(len, sentences))] for one in sentences])
    return shares.min(0), shares.max(0)


def _count() -> None:
    """Draws how often each network has the larger gradient in the ten sentences, near the last token and far from it."""
    recurrent, attending = ten_sentences().values()
    more = [other > own for own, other in zip(recurrent, attending, strict=True)]
    near, far = (np.concatenate([one[part] for one in more]) for part in (NEAR, FAR))
    early = [sum(int(shares[EARLY].max() >= shares[1]) for shares in listed) for listed in (attending, recurrent)]
    counted = {"near": len(near), "own": int((~near).sum()), "far": len(far), "other": int(far.sum())}
    counted |= {"n": len(more), "early": early[0], "early_own": early[1]}
    lab.note("spread", command="python -m recipes.felt_tokens", **counted)


def _curves(model: ModelRef, text: str) -> dict[str, tuple[list[str], np.ndarray]]:
    """Name -> tokens of the text, and how strongly each is felt at the last one."""
    checkpoint = model_cache.checkpoint(model)
    tokens = labels.texts(checkpoint.encode(text))[:LONGEST]
    with st.spinner(lab.text("computing"), show_time=False):
        found = {"GRU": (labels.texts(read(text)), gru_gradients(text))}
        if jacobian_cost(checkpoint.model, len(tokens)) <= AFFORDABLE:
            found[lab.text("transformer", model=sources.title(model))] = tokens, transformer_gradients(model, text)
        else:
            st.info(lab.text("large"))
    return found


def _formula(sizes: np.ndarray, back: int) -> None:
    """The norm of the Jacobian, and its value for the chosen token."""
    t, last, cell = len(sizes) - 1 - back, len(sizes) - 1, trained()[0].gru
    size, end = float(sizes[t]), float(sizes[last])
    st.latex(r"\frac{\partial h_n}{\partial h_t} = \prod_{s=t}^{n-1} \frac{\partial h_{s+1}}{\partial h_s}")
    lesson.formula(
        r"\left\|\frac{\partial h_n}{\partial x_t}\right\|_F = \sqrt{\textstyle\sum_{i,j}"
        r" \left(\frac{\partial h_{n,i}}{\partial x_{t,j}}\right)^2}",
        live=rf"\left\|\tfrac{{\partial h_{{{last}}}}}{{\partial x_{{{t}}}}}\right\|_F \Big/ "
        rf"\left\|\tfrac{{\partial h_{{{last}}}}}{{\partial x_{{{last}}}}}\right\|_F"
        rf" = \frac{{{latex.number(size)}}}{{{latex.number(end)}}} = {latex.number(size / end)}",
        code=CODE.format(n=len(sizes), t=t, d_x=cell.input_size, d_h=cell.hidden_size),
    )

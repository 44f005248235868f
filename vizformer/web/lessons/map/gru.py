"""The laboratory of A GRU beside it in the lesson The map: how strongly early tokens are felt at the last one."""

import numpy as np
import streamlit as st

from vizformer import figures
from vizformer.analysis.training.recurrent import felt, least_felt
from vizformer.explain import latex
from vizformer.figures import reach as reach_figures
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.map import computations
from vizformer.web.link.view import View
from vizformer.web.widgets import chart, lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.errors import plain
from vizformer.web.words.figure_words import words
from vizformer.web.words.i18n import _

CODE = """t = {t}
x = torch.randn(1, {n}, {d_x})  # stands in for the vectors of the {n} tokens
gru = torch.nn.GRU({d_x}, {d_h}, batch_first=True)  # untrained here
jacobian = torch.autograd.functional.jacobian(lambda tokens: gru(tokens)[0][0, -1], x)[:, 0]  # [d_h, n, d_x]
sizes = jacobian.norm(dim=(0, 2))  # [n]
share = sizes[t] / sizes[-1]"""
EXAMPLE = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"


@laboratory
def gru(subject: Subject) -> None:
    """How much every token still counts at the last one: in a small trained GRU, and in the chosen model."""
    text = subject.text
    if text != EXAMPLE and model_cache.reads(subject.model, EXAMPLE):
        untouched = text == View().text  # a short one, in which no token is far from the last
        chosen = st.toggle(_("Read this long sentence: {text}", text=EXAMPLE), **lesson.setting("map.long", untouched))
        text = EXAMPLE if chosen else text
    curves = gradients(subject, text)
    recurrent = curves[_("GRU")][1]
    lesson.ask(felt_question(subject))
    furthest = min(len(sizes) for texts, sizes in curves.values()) - 1
    scales = {"log": _("logarithmic"), "linear": _("linear")}
    back = furthest
    if furthest > 0:
        back = st.slider(
            _("Tokens before the last"), 0, furthest, **lesson.setting("map.back", furthest, range(furthest + 1))
        )
    scale = st.segmented_control(
        _("Scale"),
        list(scales),
        format_func=scales.__getitem__,
        required=True,
        **lesson.setting("map.scale", "log", tuple(scales)),
    )
    chart.show(
        figures.gradient_reach(
            curves,
            back=back,
            logarithmic=scale == "log",
            title=_("How strongly a token is felt at the last position"),
            words=words(reach_figures.ENGLISH),
        ),
        key="map.gradients",
    )
    for name, (texts, sizes) in curves.items():
        at, least = felt(sizes, back), least_felt(sizes)
        st.text(
            _(
                "{name}: token {at} “{token}” counts {share} of the last token's own; the least is {least} at token "
                "{where} “{what}”.",
                name=name,
                at=at.token,
                token=texts[at.token],
                share=labels.percent(at.share),
                least=labels.percent(least.share),
                where=least.token,
                what=texts[least.token],
            )
        )
    own_tokens({name: texts for name, (texts, __) in curves.items()})
    if any((sizes == 0).any() for __, sizes in curves.values()):
        st.caption(
            _(
                "Where a curve is missing, nothing arrives: layer after layer, the window of this model reaches no "
                "further back."
            )
        )
    gradient_formula(recurrent, back)
    about = computations.gru_training()
    if max(len(sizes) for texts, sizes in curves.values()) >= computations.LONGEST:
        st.caption(_("The first {n} tokens are read here.", n=computations.LONGEST))
    st.caption(
        _(
            "The GRU: {parameters:,} parameters, the tokens and the training text of stories. Loss on Chinese sentences "
            "it never saw: {loss:.2f} nats a token; the Transformer stories has {other:.2f}.",
            parameters=about.parameters,
            loss=about.loss,
            other=about.transformer_loss,
        )
    )


def gradients(subject: Subject, text: str) -> dict[str, tuple[list[str], np.ndarray]]:
    """Name -> tokens of the text, and how strongly each is felt at the last one."""
    tokens = labels.texts(model_cache.checkpoint(subject.model).encode(text))[: computations.LONGEST]
    with st.spinner(_("Computing every derivative …"), show_time=False):
        found = {_("GRU"): (labels.texts(computations.gru_tokens(text)), computations.gru_gradients(text))}
        if computations.affordable(subject.model, len(tokens)):
            name = _("Transformer {model}", model=subject.title)
            found[name] = (tokens, computations.transformer_gradients(subject.model, text))
        else:
            st.info(
                _(
                    "This model is too large for its exact gradient to be computed while you wait: here is the GRU "
                    "alone. The bundled models are small enough."
                )
            )
    return found


def felt_question(subject: Subject) -> lesson.Number | None:
    """How much of the first word arrives at the last position of the GRU?"""
    tokens, sizes = computations.gru_tokens(subject.text), computations.gru_gradients(subject.text)
    texts, last = labels.texts(tokens), len(tokens) - 1
    first = next((i for i, token in enumerate(tokens) if not token.special), last)
    if first == last:  # the first word is the last token
        return None
    share = felt(sizes, last - first).share
    return lesson.Number(
        "map",
        "felt",
        _(
            "The GRU reads your sentence token by token. How strongly is token {first}, “{token}”, felt at the last "
            "position, in percent of the last token itself?",
            first=first,
            token=texts[first],
        ),
        100 * share,
        _(
            "Measured: {share}. What the GRU knows of “{token}” has passed through {steps} more cells, and each of them "
            "writes over a part of it. The curve shows every token.",
            share=labels.percent(share),
            token=texts[first],
            steps=last - first,
        ),
        tolerance=10,
        written="{:.1f}".format,
        about=subject.text,
    )


def own_tokens(read: dict[str, list[str]]) -> None:
    """Says where the two curves are over different tokens, and what labels of bytes mean."""
    if len(read) == 2:
        (first, own), (second, other) = read.items()
        if own != other:
            st.caption(
                _(
                    "The two curves are over different tokens, as each network has a tokenizer of its own: {first} "
                    "reads {n} and ends with “{last}”, {second} reads {m} and ends with “{end}”. With the model stories "
                    "both read the same ones.",
                    first=plain(first),
                    second=plain(second),
                    n=len(own),
                    m=len(other),
                    last=plain(own[-1]),
                    end=plain(other[-1]),
                )
            )
    if said := labels.bytes_said([text for texts in read.values() for text in texts]):
        st.caption(said)


def gradient_formula(recurrent: np.ndarray, back: int) -> None:
    """The norm of the Jacobian, and its value for the chosen token."""
    t, last = len(recurrent) - 1 - back, len(recurrent) - 1
    size, end, cell = float(recurrent[t]), float(recurrent[last]), computations.gru()[0].gru
    st.latex(r"\frac{\partial h_n}{\partial h_t} = \prod_{s=t}^{n-1} \frac{\partial h_{s+1}}{\partial h_s}")
    lesson.formula(
        r"\left\|\frac{\partial h_n}{\partial x_t}\right\|_F = \sqrt{\textstyle\sum_{i,j}"
        r" \left(\frac{\partial h_{n,i}}{\partial x_{t,j}}\right)^2}",
        live=rf"\left\|\tfrac{{\partial h_{{{last}}}}}{{\partial x_{{{t}}}}}\right\|_F \Big/ "
        rf"\left\|\tfrac{{\partial h_{{{last}}}}}{{\partial x_{{{last}}}}}\right\|_F"
        rf" = \frac{{{latex.number(size)}}}{{{latex.number(end)}}} = {latex.number(size / end)}",
        code=CODE.format(n=len(recurrent), t=t, d_x=cell.input_size, d_h=cell.hidden_size),
    )

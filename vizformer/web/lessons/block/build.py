"""A laboratory of the lesson Add & norm, feed-forward: a toy layer, line by line, until it is what PyTorch computes."""

import streamlit as st

from vizformer.components import matrix
from vizformer.explain import toy_model
from vizformer.web.catalogue import toy_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import LAYER
from vizformer.web.widgets import lesson
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import translate

lab = Laboratory("block", "build")


toy_program = cached(toy_model.toy_program)
toy_difference = cached(toy_model.toy_difference)


@lab.draws
def draw(subject: Subject) -> None:
    """The toy's encoder layer, up to a line; after the last one PyTorch's own layer is asked."""
    st.html(matrix.style())
    steps = toy_cache.toy_layer("encoder")
    last = len(steps)
    done = lab.slider("line", 1, last, 1)
    step = steps[done - 1]
    if step.result.ndim <= 2:
        st.html(matrix.to_html(step.result, caption=step.variable))
    else:
        for head, values in enumerate(step.result):
            st.html(matrix.to_html(values, caption=f"{step.variable}[{head}]"))
    st.markdown(f"**{done} · {plain(translate(step.title))}**")
    st.text(translate(step.text))
    lesson.formula(step.formula, live=step.live)
    code, given = toy_program(done)
    lab.note("paste")
    st.code(lesson.pasteable(code, given), language="python", wrap_lines=True)
    if done == last:
        st.success(lab.text("same", difference=f"{toy_difference():.1g}"))
    else:
        st.info(lab.text("left", n=last - done))
    st.page_link(LAYER.file, label=lab.text("by_hand"))
    lesson.ask(question(subject))


@lab.asks("order")
def question(subject: Subject) -> lesson.Choice:
    return lab.choice("order", ("pre", "post", "between"), "post")

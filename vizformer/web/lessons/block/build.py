"""The laboratory By hand: the lectures' toy layer, line by line, until it is what PyTorch computes."""

import streamlit as st

from vizformer.components import matrix
from vizformer.explain import Step
from vizformer.web.catalogue import toy_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame.sitemap import LAYER
from vizformer.web.lessons.block import computations
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, translate


@laboratory
def build(subject: Subject) -> None:
    """The toy's encoder layer, up to a line; after the last one PyTorch's own layer is asked."""
    st.html(matrix.style())
    steps: list[Step] = toy_cache.toy_layer("encoder")
    last = len(steps)
    done = st.slider(_("Lines that are written"), 1, last, **lesson.setting("block.line", 1, range(1, last + 1)))
    step = steps[done - 1]
    if step.result.ndim <= 2:
        st.html(matrix.to_html(step.result, caption=step.variable))
    else:
        for head, values in enumerate(step.result):
            st.html(matrix.to_html(values, caption=f"{step.variable}[{head}]"))
    st.markdown(f"**{done} · {plain(translate(step.title))}**")
    st.text(translate(step.text))
    lesson.formula(step.formula, live=step.live)
    code, given = computations.toy_program(done)
    st.caption(_("Everything so far, to be pasted"))
    st.code(lesson.pasteable(code, given), language="python", wrap_lines=True)
    if done == last:
        difference = computations.toy_difference()
        st.success(
            _(
                "torch.allclose(x, expected) is True: the layer that was built and torch.nn.TransformerEncoderLayer differ "
                "by {difference}.",
                difference=f"{difference:.1g}",
            )
        )
    else:
        st.info(_("{n} lines are left. After the last one PyTorch's own layer is built and compared.", n=last - done))
    st.page_link(LAYER.file, label=_("The same layer with every number to be changed: A layer by hand"))
    lesson.ask(order_question())


def order_question() -> lesson.Choice:
    return lesson.Choice(
        "block",
        "order",
        _("In which order do these stand in this layer, a post-norm encoder layer?"),
        [
            _("norm, attention, add, norm, feed-forward, add"),
            _("attention, add, norm, feed-forward, add, norm"),
            _("attention, norm, add, feed-forward, norm, add"),
        ],
        1,
        _("Each sublayer, then its sum, then its norm: norm(x + f(x)), twice. The first of the three is pre-norm."),
    )

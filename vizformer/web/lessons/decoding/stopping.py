"""The laboratory Token by token: a text from its prompt to its end mark."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.decoding import computations
from vizformer.web.lessons.decoding.other_model import writes
from vizformer.web.link import state
from vizformer.web.widgets import lesson
from vizformer.web.widgets.laboratory import laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

EXAMPLES = {"encoder-decoder": ("今天天气", "这是我的。"), "decoder-only": ("Once upon a time", "The little girl")}
BEST = 3  # candidates of a step


@laboratory
def stopping(subject: Subject) -> None:
    """Each step with what it has read, its best candidates and its choice, until the text ends."""
    if not writes(subject):
        return
    st.html(table.style())
    lesson.ask(end_question())
    found, beginning, known = computations.steps(subject)
    so_far = [token.text for token in beginning]
    rows = []
    for step, id in enumerate(found.ids):
        leading = [int(one) for one in found.candidates[step, :BEST]]
        named = [one for one in leading if one in known]
        names = dict(zip(named, labels.told_apart([known[one] for one in named]), strict=True))
        best = [
            f"{names.get(one, f'#{one}')} {labels.percent(float(p))}"
            for one, p in zip(leading, found.before[step, :BEST], strict=True)
        ]
        chosen = known[id].text if id in known else f"#{id}"
        rows.append(Row((Number(step, str(step)), " ".join(so_far[-8:]), *best, chosen)))
        so_far.append(chosen)
    columns = (_("step"), _("has read (the last 8)"), _("best"), _("second"), _("third"), _("takes"))
    st.html(table.to_html(columns, rows))
    st.text(_end(found.end))
    read = [text for text in EXAMPLES[subject.config.architecture] if model_cache.reads(subject.model, text)]
    if read:
        with st.container(horizontal=True):
            for text in read:
                if presses.button(text, key=f"decoding.example.{text}"):
                    state.update(text=text)
                    st.rerun()  # the whole page: it is another sentence
    lesson.formula(
        r"y_{t+1} = \arg\max_y P(y \mid y_1, \dots, y_t, x) \quad \text{until } y_{t+1} = \texttt{</s>}",
        code="logits = torch.randn(20, 6)  # of 20 steps, over a vocabulary of 6\n"
        "ids, end = [], 5\n"
        "for step in logits:  # a model reads ids here\n"
        "    ids.append(int(step.argmax()))\n"
        "    if ids[-1] == end:\n"
        "        break",
    )


def end_question() -> lesson.Choice:
    return lesson.Choice(
        "decoding",
        "end",
        _("Who decides where the text ends?"),
        [_("the model: the end mark is a token like others"), _("a rule: a full stop ends it"), _("a fixed length")],
        0,
        _(
            "The end mark has a row in the vocabulary and gets a probability in every step. The limit is only a safety net."
        ),
    )


def _end(end: str | None) -> str:
    if end == "eos":
        return _("It ends because the end mark was the most probable token.")
    if end == "context":
        return _("It ends because the model has no position left.")
    return _("It stops at the limit of {n} tokens; the end mark did not come.", n=computations.MOST_NEW)

"""The laboratory Token by token: a text from its prompt to its end mark."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.text import Token
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.frame import presses
from vizformer.web.lessons.decoding.writing import MOST_NEW, greedy, say_unless_writes
from vizformer.web.link import state
from vizformer.web.widgets import lesson, source_language
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.words import labels
from vizformer.web.words.i18n import _

lab = Laboratory("decoding", "steps")
EXAMPLES = {
    "encoder-decoder": ("今天天气", "这家店的面包比那家的便宜。"),
    "decoder-only": ("Once upon a time", "The little girl"),
}
BEST = 3  # candidates of a step


@cached
def named(subject: Subject) -> tuple[tuple[Token, ...], dict[int, Token]]:
    """What the greedy text begins with, and the tokens of the ids that it is chosen from."""
    checkpoint, found = subject.checkpoint, greedy(subject)
    known = [id for id in {*found.seen, *found.ids} if id < checkpoint.tokenizer.vocab_size]
    return checkpoint.opening(subject.text)[1], dict(zip(known, checkpoint.tokenizer.tokens(known), strict=True))


@lab.draws
def draw(subject: Subject) -> None:
    """Each step with what it has read, its best candidates and its choice, until the text ends."""
    if not say_unless_writes(lab, subject):
        return
    lesson.ask(end(subject))
    found, (beginning, known) = greedy(subject), named(subject)
    so_far = [token.text for token in beginning]
    rows = []
    for step, id in enumerate(found.ids):
        leading = [int(one) for one in found.candidates[step, :BEST]]
        readable = [one for one in leading if one in known]
        names = dict(zip(readable, labels.told_apart([known[one] for one in readable]), strict=True))
        best = [
            f"{names.get(one, f'#{one}')} {labels.percent(float(p))}"
            for one, p in zip(leading, found.before[step, :BEST], strict=True)
        ]
        chosen = known[id].text if id in known else f"#{id}"
        rows.append(Row(Number(step, str(step)), " ".join(so_far[-8:]), *best, chosen))
        so_far.append(chosen)
    columns = lab.columns("step", "read", "best", "second", "third", "takes")
    st.html(table.style() + table.to_html(columns, rows))
    lab.say("end", form=found.end if found.end in ("eos", "context") else "limit", n=MOST_NEW)
    offered = [text for text in EXAMPLES[subject.config.architecture] if model_cache.reads(subject.model, text)]
    with st.container(horizontal=True, vertical_alignment="center"):
        if offered:
            st.caption(_("Examples"), width="content")
        for text in offered:
            if presses.button(source_language.with_meaning(text, text), key=f"decoding.example.{text}"):
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


@lab.asks("end")
def end(subject: Subject) -> lesson.Choice:
    return lab.choice("end", ("model", "rule", "length"), "model")

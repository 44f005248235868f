"""What the model in training answers to the reader's own input, and how sure it is."""

import streamlit as st

from vizformer import figures
from vizformer.errors import VizformerError
from vizformer.training.live import Plan
from vizformer.web.catalogue import trainings
from vizformer.web.widgets import chart
from vizformer.web.words import errors
from vizformer.web.words.i18n import _, show_note, show_text


def question(plan: Plan) -> str:
    """What the model is asked; if it cannot be, one sentence says why and the last question stays."""
    key, good = f"train.text.{plan.task}", f"train.asked.{plan.task}"
    if key not in st.session_state:
        st.session_state[key] = plan.on.example
    typed = st.text_input(_("Your own input"), key=key, persist_state="session")
    try:
        example = plan.on.read(typed)
    except VizformerError as error:
        errors.show(error.message)
        return str(st.session_state.get(good, plan.on.example))
    if len(example.question) > plan.on.longest:
        show_note("Longer than anything in training ({n} symbols at most): most models fail there.", n=plan.on.longest)
    st.session_state[good] = typed
    return typed


def draw_answer(name: str, index: int, text: str) -> None:
    """What the model makes of the question, and how sure it is."""
    look = trainings.look(name, index, text)
    right = "".join(symbol for symbol in look.right if symbol != "</s>")
    mark = _("right") if look.own == right else _("wrong")
    show_text("The model's own answer: {answer} ({mark})", answer=look.own or "–", mark=mark)
    figure = figures.answer_map(look.probabilities, look.symbols, look.right)
    chart.show(figure, key="train.answer")
    show_note("Each column: how probable every symbol is there, given the right ones before it (framed).")

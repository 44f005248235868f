"""An exercise of the lesson Find the error: what a program gives, its wrong line to be found, and then the proof."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import streamlit as st

from vizformer.analysis import Kind, n_layers, site_name
from vizformer.analysis.own_steps.copied_errors import EXERCISES, run
from vizformer.analysis.own_steps.error_contrasts import Contrast, scales_its_embedding
from vizformer.components import matrix
from vizformer.model import AttentionRecord
from vizformer.web.catalogue import sources
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import state
from vizformer.web.link.view import View
from vizformer.web.widgets import lesson, source_language, telling
from vizformer.web.widgets.lab import Laboratory, controls
from vizformer.web.words.errors import plain
from vizformer.web.words.i18n import _, translate

READS: tuple[Kind, ...] = ("encoder", "decoder")  # the stack that reads the text
WRITES: tuple[Kind, ...] = ("decoder", "encoder")  # the causal one where there is such; else the mask is laid over it
SHOWN = 7  # rows and columns of two tables beside each other


class Exercise(Laboratory):
    """A part of the lesson, whose question is which line of a program is wrong.

    scaled: whether it needs a model that scales its embedding and adds positions.
    result: draws what the program gives and what it should give; it must not tell which line is wrong.
    """

    def __init__(
        self, key: str, given: Callable[[Subject], Mapping[str, Any]], *, stops: bool = False, scaled: bool = False
    ) -> None:
        super().__init__("errors", key)
        self.given, self.stops, self.scaled = given, stops, scaled
        self.result: Callable[[Subject], None]

    def shows(self, result: Callable[[Subject], None]) -> None:
        """Has this function draw, above the program, what it gives and what it should give."""
        self.result = result

    def proves(self, proof: Callable[[Subject], None]) -> None:
        """Has this function draw what follows once the line has been found."""
        self.asks(self.key)(self.question)

        @self.draws
        @wraps(proof)
        def draw(subject: Subject) -> None:
            shown = self._usable(subject) if self.scaled else subject
            self.result(shown)
            for name, question in self.questions.items():
                lesson.ask(question(shown), here=name == self.key)
            if self._is_found(shown):
                proof(shown)

    def question(self, subject: Subject) -> lesson.Choice:
        """Which line of the program is wrong?"""
        program = EXERCISES[self.key]
        error = run(self.key, self.given(subject), corrected=False).error if self.stops else ""
        wrong = {f"line{index + 1}": index for index in range(len(program.lines)) if index != program.wrong}
        said = self.asked(self.key, wrong=wrong, error=error)
        return lesson.Choice(choices=program.lines, answer=program.wrong, code=True, **said)

    def _is_found(self, subject: Subject) -> bool:
        """Whether the line has been chosen; then what belongs there is shown."""
        program, found = EXERCISES[self.key], lesson.is_answered(self.lesson, self.key)
        if found:
            st.markdown(self.text("found", n=program.wrong + 1))
            st.code(program.right.strip(), language="python", wrap_lines=True)
        with st.expander(self.text("corrected" if found else "paste")):
            code = lesson.pasteable(program.program(corrected=found), self.given(subject))
            st.code(code, language="python", wrap_lines=True)
        return found

    def _usable(self, subject: Subject) -> Subject:
        """The subject, if its model scales its embedding and adds positions; else the first model and its sentence."""
        if scales_its_embedding(subject.checkpoint):
            return subject
        usual = View()
        model, other = subject.title, sources.title(usual.model)
        self.note("other", model=model, other=other, text=source_language.with_meaning(usual.text, usual.text))
        return Subject(sources.stamped(usual.model), usual.text, "")

    def proof(self, found: Contrast) -> None:
        """How far each of the two is from what the model computed."""
        anchor = translate(found.proof.anchor, plain)
        differences = {"right": f"{found.proof.difference:.1g}", "wrong": f"{found.off:.3g}"}
        (st.success if found.proof.holds else st.error)(self.text("compared", anchor=anchor, **differences))

    def tables(self, found: Contrast, rows: Sequence[str], columns: Sequence[str] | None = None) -> None:
        """Both results beside each other."""
        st.html(matrix.style())
        names = {"wrong": found.wrong, "right": found.right}
        for place, (name, values) in zip(st.columns(2), names.items(), strict=True):
            shown = matrix.to_html(
                values, rows=rows, columns=columns, caption=self.text(f"line.{name}"), digits=3, shown=SHOWN
            )
            place.html(shown)

    def writes(self, right: str, wrong: str) -> None:
        """What a translator writes from both."""
        said = [self.text(f"writes.{name}", text=plain(text)) for name, text in (("right", right), ("wrong", wrong))]
        st.markdown("\n\n".join(said))


def stack_of(subject: Subject, order: Sequence[Kind]) -> Kind:
    """The first of these stacks that the model has."""
    return next(kind for kind in order if kind in subject.trace.tokens)


def head_of(subject: Subject, order: Sequence[Kind]) -> tuple[AttentionRecord, int]:
    """The head in the self-attention of the first of these stacks: the telling one, where nobody has chosen."""
    kind = stack_of(subject, order)
    _open(subject, kind)
    view = state.view()
    return subject.trace[site_name(kind, view.layer)], view.head


def chosen_head(subject: Subject, order: Sequence[Kind]) -> tuple[tuple[AttentionRecord, int], str]:
    """The same, with boxes for its layer and its number; why they open on this head, if nobody chose it."""
    kind = stack_of(subject, order)
    why = _open(subject, kind)
    with controls():
        st.selectbox(_("Layer"), range(n_layers(subject.trace, kind)), width=80, **state.bind("layer"))
        st.selectbox(_("Head"), range(subject.config.n_heads), width=80, **state.bind("head"))
    return head_of(subject, order), why


def _open(subject: Subject, kind: Kind) -> str:
    state.fit(layer=n_layers(subject.trace, kind), head=subject.config.n_heads)
    return telling.open_on_a_head(subject, kind)

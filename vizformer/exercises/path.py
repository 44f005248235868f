"""The exercises in the order of the path, and one of them as a student has it before her."""

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vizformer.errors import TraceError
from vizformer.exercises import (
    add_norm,
    attention_over_source,
    decoder,
    encoder,
    feedforward,
    greedy_and_beam,
    one_head,
    one_update,
    shift_and_loss,
    sines_and_cosines,
    softmax_with_mask,
    split_and_join,
)
from vizformer.exercises.checking import Checked, checked
from vizformer.exercises.task import SENTENCE, Task
from vizformer.messages import Message
from vizformer.web.link.languages import SOURCE, match, render

TASKS: dict[str, Task] = {
    module.TASK.name: module.TASK
    for module in (
        softmax_with_mask,
        sines_and_cosines,
        one_head,
        split_and_join,
        add_norm,
        feedforward,
        attention_over_source,
        encoder,
        decoder,
        shift_and_loss,
        greedy_and_beam,
        one_update,
    )
}


def exercise(name: str, language: str = SOURCE) -> "Exercise":
    """An exercise by its name: vf.exercise("head").check(my_head).

    Args:
        name: of `TASKS`: "softmax", "positions", "head", ....
        language: "en" or "zh": in which it is told, and what is found.

    Raises:
        TraceError: no exercise of that name, no such language.
    """
    if name not in TASKS:
        raise TraceError("There is no exercise {name!r}. There are: {names}.", name=name, names=", ".join(TASKS))
    code = match(language)
    if code is None:
        raise TraceError("There is no language {language!r} here: choose en or zh.", language=language)
    return Exercise(TASKS[name], code)


@dataclass(frozen=True, repr=False)
class Exercise:
    """An exercise in a language; shows what is to be written."""

    task: Task
    language: str = SOURCE

    @property
    def number(self) -> int:
        """Its place on the path, from 1."""
        return [*TASKS].index(self.task.name) + 1

    @property
    def title(self) -> str:
        return self.said(self.task.title)

    @property
    def statement(self) -> str:
        """What is to be written, with formula and shapes."""
        lines = (self.said(self.task.statement), "", *self.task.formula, "", *self.task.shapes)
        return "\n".join(lines)

    @property
    def stub(self) -> str:
        """The functions that are to be written, without their bodies; before them those that are given."""
        ready = [inspect.getsource(helper).strip() for helper in self.task.helpers]
        bare = [f"{_signature(solution)}\n    raise NotImplementedError" for solution in self.task.solutions]
        return "\n\n\n".join([*ready, *bare])

    @property
    def solution(self) -> str:
        """The functions as they could be written."""
        text = "\n\n\n".join(inspect.getsource(solution).strip() for solution in self.task.solutions)
        return re.sub(r"  # type: ignore.*", "", text)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its functions."""
        return tuple(solution.__name__ for solution in self.task.solutions)

    def check(self, *functions: Callable[..., Any], text: str = SENTENCE) -> Checked:
        """Runs functions on numbers made by hand, on random ones and on those of the bundled model reading `text`.

        Args:
            functions: yours, in the order of `names`; they run in this process, as any function of yours.

        Raises:
            TraceError: a sentence that the model cannot read.
        """
        return checked(self.task, functions, text, self.language)

    def said(self, message: Message) -> str:
        return render(message, self.language)

    def __repr__(self) -> str:
        wrapped = "\n".join(textwrap.fill(line, 100) for line in self.statement.splitlines())
        return f"{self.number}. {self.title}\n\n{wrapped}\n\n{self.stub}"

    def _repr_html_(self) -> str:
        said, _, symbols = self.statement.partition("\n\n")
        return (
            f"<h3>{self.number}. {html.escape(self.title)}</h3><p>{html.escape(said)}</p>"
            f"<pre>{html.escape(symbols)}\n\n{html.escape(self.stub)}</pre>"
        )


def _signature(solution: Callable[..., Any]) -> str:
    """The lines of a function down to its colon."""
    source = inspect.getsource(solution)
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return "\n".join(source.splitlines()[: node.body[0].lineno - 1])

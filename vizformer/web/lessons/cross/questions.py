"""The questions of the lesson Encoder meets decoder: those of cross-attention are asked where a model has such."""

from collections.abc import Callable

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.cross import alignment, bottleneck, changed_memory, computations, memory, three_attentions
from vizformer.web.lessons.cross.other_model import has_two_stacks
from vizformer.web.widgets.questions import Choice, Question, Registry


def _shape(subject: Subject) -> Choice:
    (cross,) = computations.attended(subject, ("decoder.0.cross",))
    return three_attentions.shape_question(subject, cross)


def _of_two_stacks(asks: Callable[[Subject], Question | None]) -> Callable[[Subject], Question | None]:
    return lambda subject: asks(subject) if has_two_stacks(subject.model) else None


QUESTIONS: Registry = {
    "shape": _of_two_stacks(_shape),
    "memory": _of_two_stacks(memory.memory_question),
    "keys": _of_two_stacks(memory.keys_question),
    "cell": _of_two_stacks(alignment.cell_question),
    "empty": _of_two_stacks(changed_memory.empty_question),
    "length": lambda subject: bottleneck.length_question(),
}

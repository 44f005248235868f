"""The question which line of a short program is wrong: one of the errors that tutorials copy from each other."""

from vizformer.analysis.own_steps.copied_errors import EXERCISES
from vizformer.web.widgets.lab import Laboratory
from vizformer.web.widgets.questions import Choice


def wrong_line(lab: Laboratory, program: str, name: str = "line") -> Choice:
    """The lines are the choices; the words of the question `name` say of each right one why it is right."""
    exercise = EXERCISES[program]
    wrong = {f"line{index + 1}": index for index in range(len(exercise.lines)) if index != exercise.wrong}
    said = lab.asked(name, wrong=wrong, right=exercise.right.strip(), error=exercise.error)
    return Choice(choices=exercise.lines, answer=exercise.wrong, code=True, **said)

"""A function of a student's on every case of an exercise: the first result that departs, and which known mistake gives it.

What runs here is what its caller handed in, in her own process: no page and no server comes to this room (a contract of
import-linter holds that).
"""

import html
import inspect
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.other_programs.first_departure import differences
from vizformer.exercises.diagnosis import Departure, departure_of, diagnosed, numbers
from vizformer.exercises.task import Function, Task, UnusableError
from vizformer.messages import N_, Message
from vizformer.web.link.languages import SOURCE, render

MOST_SHOWN = 24  # numbers of a result that is shown as a whole


@dataclass(frozen=True, repr=False)
class Checked:
    """What came of a check; prints itself, in a terminal and in a notebook.

    Attributes:
        agreed: the cases that agree, up to the first that does not.
        difference: the largest |given - right| of these.
        case: the first one that does not agree; None: all do.
        departure: what departs there, where it can be compared.
        trouble: what kept it from being compared.
        known: the mistakes that give exactly these numbers; `elsewhere` says of which case, where it is another one.
        alike: what can be said without a known mistake.
        partly: whether the mistakes give the result that departs, and not all others.
    """

    task: Task
    language: str
    agreed: tuple[Message, ...]
    difference: float = 0.0
    case: Message | None = None
    departure: Departure | None = None
    trouble: Message | None = None
    known: tuple[Message, ...] = ()
    elsewhere: Message | None = None
    alike: tuple[Message, ...] = ()
    partly: bool = False

    @property
    def passed(self) -> bool:
        return self.case is None and self.trouble is None

    def __bool__(self) -> bool:
        return self.passed

    def messages(self) -> list[Message]:
        """All that is said, a line each."""
        if self.passed:
            return [
                N_("✓ {title}: all {n} cases agree.", title=self.task.title, n=len(self.agreed)),
                N_("The largest difference is {difference}.", difference=f"{self.difference:.1e}"),
            ]
        if self.case is None:
            return [N_("✗ {title}", title=self.task.title), *([] if self.trouble is None else [self.trouble])]
        lines = [N_("✗ {title}: {case}", title=self.task.title, case=self.case)]
        if self.trouble is not None:
            lines.append(self.trouble)
        if (found := self.departure) is not None:
            lines += _told(found)
        if self.elsewhere is not None:
            lines.append(
                N_("In another case ({case}) this mistake gives exactly your numbers:", case=self.elsewhere)
                if len(self.known) == 1
                else N_(
                    "In another case ({case}) each of these mistakes gives exactly your numbers; yours is one of them:",
                    case=self.elsewhere,
                )
            )
        elif self.partly:
            lines.append(
                N_("This mistake gives these numbers, but not all of yours: you made another one, or more than one.")
            )
        elif len(self.known) == 1:
            lines.append(N_("This mistake gives exactly these numbers:"))
        elif self.known:
            lines.append(N_("Each of these mistakes gives exactly these numbers; yours is one of them:"))
        lines += [N_("→ {said}", said=said) for said in self.known or self.alike]
        if self.departure is not None and not self.known and not self.alike:
            lines.append(
                N_(
                    "No known mistake gives these numbers. Compute the first number that differs by hand, "
                    "with the formula."
                )
            )
        return lines

    def __repr__(self) -> str:
        return "\n".join(render(line, self.language) for line in self.messages())

    def _repr_html_(self) -> str:
        first, *rest = (html.escape(render(line, self.language)) for line in self.messages())
        colour = "#009e73" if self.passed else "#d55e00"
        lines = "".join(f'<div style="white-space:pre-wrap">{line}</div>' for line in rest)
        return f'<div style="border-left:4px solid {colour};padding-left:8px"><b>{first}</b>{lines}</div>'


def _told(found: Departure) -> list[Message]:
    if found.index is None:
        return [
            N_(
                "{name} has the shape {given}; it should be {right}.",
                name=found.name,
                given=list(found.given.shape),
                right=list(found.right.shape),
            )
        ]
    lines = [
        N_(
            "{name}{index} is {given}; it should be {right}.",
            name=found.name,
            index=list(found.index) if found.index else "",
            given=f"{found.given[found.index]:.6g}",
            right=f"{found.right[found.index]:.6g}",
        )
    ]
    if found.right.size > 1:
        lines.append(
            N_(
                "It is the first of {off} numbers that differ, of {n}; the largest difference is {largest}.",
                off=found.off,
                n=found.right.size,
                largest=f"{found.largest:.3g}",
            )
        )
    if 1 < found.right.size <= MOST_SHOWN:
        for said, x in ((N_("yours"), found.given), (N_("right"), found.right)):
            numbers_shown = np.array2string(x, precision=4, suppress_small=True, separator=", ")
            lines.append(N_("{whose}: {numbers}", whose=said, numbers=numbers_shown))
    return lines


def checked(task: Task, functions: tuple[Function, ...], text: str, language: str = SOURCE) -> Checked:
    """Runs functions of a student's on all cases of an exercise, up to the first that does not agree.

    Raises:
        TraceError: a sentence that the model cannot read.
    """
    if (wrong := _no_functions(task, functions)) is not None:
        return Checked(task, language, (), trouble=wrong)
    agreed: list[Message] = []
    difference = 0.0
    cases = list(task.cases(text))
    for number, case in enumerate(cases):
        right = task.results(task.solutions, case.arguments())
        try:
            arguments = case.arguments()
            given = task.results(functions, arguments)
            arrays = {name: _array(name, given[name], value) for name, value in right.items()}
        except UnusableError as wrong_result:
            return Checked(task, language, tuple(agreed), case=case.title, trouble=wrong_result.said)
        except Exception as error:  # whatever a student's function raises is told, not raised
            return Checked(task, language, tuple(agreed), case=case.title, trouble=_raised(error, functions))
        for name, value in right.items():
            departure = departure_of(name, arrays[name], numbers(value))
            if departure is not None:
                found = diagnosed(task, functions, cases[number:])
                return Checked(task, language, tuple(agreed), difference, case.title, departure, None, *found)
            difference = max(difference, float(differences(arrays[name], numbers(value)).max(initial=0.0)))
            if (said := _other_type(name, given[name], value)) is not None:
                return Checked(task, language, tuple(agreed), case=case.title, trouble=said)
        if not task.trains and (moved := _changed(task, arguments, case.arguments())) is not None:
            trouble = N_(
                "The numbers are right, but your function changes {name}, which it was given: work on a copy, without "
                "methods that end in _ and without assigning to its cells.",
                name=moved,
            )
            return Checked(task, language, tuple(agreed), case=case.title, trouble=trouble)
        agreed.append(case.title)
    return Checked(task, language, tuple(agreed), difference)


def _no_functions(task: Task, functions: tuple[Function, ...]) -> Message | None:
    wanted = [solution.__name__ for solution in task.solutions]
    if len(functions) != len(wanted) or not all(map(callable, functions)):
        return N_("Pass your function itself: check({names}).", names=", ".join(wanted))
    for function, solution in zip(functions, task.solutions, strict=True):
        parameters = inspect.signature(solution).parameters
        try:
            inspect.signature(function).bind(*parameters)
        except TypeError as error:
            return N_(
                "Your function cannot be called with {arguments}: {reason}.",
                arguments=", ".join(parameters),
                reason=str(error),
            )
        except ValueError:  # of a builtin, which tells nothing of its arguments
            continue
    return None


def _raised(error: Exception, functions: tuple[Function, ...]) -> Message:
    """What a student's function raised, and in which of her lines."""
    if isinstance(error, NotImplementedError):
        return N_("It is not written yet: replace the line that raises NotImplementedError.")
    codes = [getattr(inspect.unwrap(function), "__code__", None) for function in functions]
    files = {code.co_filename for code in codes if code is not None}
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    said = " ".join(str(error).split())[:300]
    where = f" ({own[-1].lineno}: {own[-1].line})" if own and own[-1].line else ""
    return N_("It raises {kind}{where}: {said}", kind=type(error).__name__, where=where, said=said)


def _array(name: str, given: object, right: object) -> ndarray:
    """The numbers of a result.

    Raises:
        UnusableError: it holds none.
    """
    if isinstance(given, Tensor | ndarray | float | int | list | tuple):
        if isinstance(given, Tensor) and (given.is_meta or given.is_sparse):
            raise UnusableError(N_("{name} holds no numbers.", name=name))
        try:
            return numbers(given)
        except (TypeError, ValueError, RuntimeError):
            pass
    raise UnusableError(
        N_(
            "{name} is of the type {given}; {right} is needed.",
            name=name,
            given=type(given).__name__,
            right=type(right).__name__,
        )
    )


def _other_type(name: str, given: object, right: object) -> Message | None:
    """What to say of the right numbers in something that the next function cannot use."""
    if not isinstance(right, Tensor):
        return None
    if not isinstance(given, Tensor):
        return N_("{name} has the right numbers, but is no tensor: return a torch.Tensor.", name=name)
    if given.dtype == right.dtype:
        return None
    return N_(
        "{name} has the right numbers, but as {given}; {right} is needed: end with .float().",
        name=name,
        given=str(given.dtype).removeprefix("torch."),
        right=str(right.dtype).removeprefix("torch."),
    )


def _changed(task: Task, after: tuple[Any, ...], before: tuple[Any, ...]) -> str | None:
    """The first argument that a function has changed."""
    names = [name for solution in task.solutions for name in inspect.signature(solution).parameters]
    for name, now, then in zip(names, after, before, strict=False):
        pairs = [(now.get(key), then[key]) for key in then] if isinstance(then, dict) else [(now, then)]
        if any(isinstance(y, Tensor) and (x is None or x.shape != y.shape or not torch.equal(x, y)) for x, y in pairs):
            return name
    return None

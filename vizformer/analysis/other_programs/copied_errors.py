"""Errors that are copied from one tutorial to the next: nine short programs with one wrong line each.

Every program runs as it stands (`program`), with the wrong line or with the right one in its place, but for those that
Python stops (`error`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from vizformer.word_tables import data_of


@dataclass(frozen=True)
class Exercise:
    """A program, the index of its wrong line, what belongs there, the name that holds the result, and what Python says."""

    lines: tuple[str, ...]
    wrong: int
    right: str
    result: str
    error: str = ""

    def program(self, *, corrected: bool) -> str:
        """The code, with the wrong line or with the right one."""
        lines = list(self.lines)
        if corrected:
            lines[self.wrong] = self.right
        return "\n".join(lines)


EXERCISES: Mapping[str, Exercise] = {
    name: Exercise(tuple(one["program"].splitlines()), one["wrong"], one["right"], one["result"], one.get("error", ""))
    for name, one in data_of(__file__).items()
}

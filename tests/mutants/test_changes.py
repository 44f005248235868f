"""The changes that are tried: programs that run, each another one, and found again after the file has changed."""

import ast
from pathlib import Path

import pytest

from tests.mutants.changes import Change, choose, lines_of_statement

PROGRAM = """
LIMIT = 3
NAMES = {"a": 1}


def f(x, scale: float = 2.0) -> float:
    \"\"\"1 + 1.\"\"\"
    if x.shape[0] > LIMIT and not x:
        raise ValueError(f"{x + 1}")
    return (
        min(x, scale) - sum(x[1:head])
        / scale
    )
"""


def test_changes_are_programs_that_differ_in_one_line(tmp_path: Path) -> None:
    room = tmp_path / "vizformer" / "model"
    room.mkdir(parents=True)
    (room / "f.py").write_text(PROGRAM)
    seen = set()
    for seed in range(60):
        for change in choose(tmp_path, ("model",), 9, seed):
            changed = change.written(PROGRAM)
            assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(PROGRAM))
            differ = [
                i for i, (a, b) in enumerate(zip(PROGRAM.split("\n"), changed.split("\n"), strict=True), 1) if a != b
            ]
            assert differ == [change.line]
            seen.add(change.after)
    assert {'NAMES = {"a": 2}', "if False:", "if x.shape[1] > LIMIT and not x:", "* scale"} <= seen
    assert not any("LIMIT = " in one or "raise" in one for one in seen)  # a named limit, a text
    assert choose(tmp_path, ("model",), 9, 1)[:3] == choose(tmp_path, ("model",), 3, 1)


def test_a_line_is_found_where_it_went_and_the_lines_of_its_statement() -> None:
    change = Change("f.py", 3, "return (", "return -(")
    assert change.found(PROGRAM) == 10
    with pytest.raises(ValueError, match="no line"):
        change.found("")
    assert lines_of_statement(PROGRAM, 12) == {10, 11, 12, 13}
    assert lines_of_statement(PROGRAM, 8) == {8}
    assert lines_of_statement(PROGRAM, 3) is None

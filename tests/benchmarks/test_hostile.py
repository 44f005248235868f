"""The benchmark of costly files runs, with one reader and one file; its figures are not judged here."""

import sys

import pytest
from click.testing import CliRunner

from tests.benchmarks import hostile


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
@pytest.mark.parametrize("through", ["models", "uploads"])
def test_the_table_says_what_became_of_a_file(through: str):
    arguments = ["--readers", "1", "--every", "0.2", "--only", "a program zip", "--through", through]
    result = CliRunner().invoke(hostile.main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    rows = [line.strip("| ").split(" | ") for line in result.output.splitlines() if line.startswith("| a program")]
    assert [row[-1] for row in rows] == ["refused"]
    assert "after SIGTERM" in result.output

"""Which tests run which lines: measured by coverage.py, a test file at a time, kept outside of the checkout.

`coverage` need not be installed where the tests are: `pip install --target FOLDER coverage`, and FOLDER in PYTHONPATH.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mutants.forked import Outcome, Watcher, import_ours, in_a_fork, run_pytest

LIMIT_SECONDS = 1500


class Contexts:
    """A pytest plugin: what runs is written to the account of the test that runs it."""

    def __init__(self, tree: Path, rooms: tuple[str, ...]) -> None:
        import coverage  # type: ignore[import-not-found]

        include = [str(tree / "vizformer" / room / "*") for room in rooms]
        self.tree, self.coverage = tree, coverage.Coverage(data_file=None, include=include, config_file=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        result = yield
        self.coverage.switch_context("")
        return result

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """Of each file, the tests that run each line."""
        self.coverage.stop()
        data = self.coverage.get_data()
        return {str(Path(file).relative_to(self.tree)): data.contexts_by_lineno(file) for file in data.measured_files()}


def measure(tree: Path, file: str, rooms: tuple[str, ...], to: Path) -> Outcome:
    """Writes {"tests": [[id, seconds], ...], "lines": {file: {line: [numbers of tests]}}}."""

    def work() -> Outcome:
        import_ours(tree)
        contexts = Contexts(tree, rooms)
        watcher = Watcher()
        run_pytest([file], watcher, contexts, stop=False)
        outcome = watcher.outcome
        numbers = {test: i for i, test in enumerate(outcome.seconds) if test not in outcome.failed}
        lines = {
            name: {line: [numbers[test] for test in tests if test in numbers] for line, tests in found.items()}
            for name, found in contexts.lines().items()
        }
        told = {"tests": list(outcome.seconds.items()), "failed": outcome.failed, "lines": lines}
        part = to.with_suffix(".part")
        part.write_text(json.dumps(told), encoding="utf-8")
        part.rename(to)
        return outcome

    to.parent.mkdir(parents=True, exist_ok=True)
    return in_a_fork(work, to.with_suffix(".log"), LIMIT_SECONDS)

"""Runs pytest in a forked process: torch and its like are imported once, vizformer and the tests in each one."""

import contextlib
import gc
import json
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType

import pytest

MOST_BYTES = 12 << 30  # of address space: a changed program may ask for any size
HEAVY = ("torch", "numpy", "transformers", "hypothesis", "tokenizers", "safetensors", "jaxtyping", "beartype", "PIL")
OURS = ("tests", "vizformer")


@dataclass
class Outcome:
    """What became of one run of pytest."""

    failed: list[str] = field(default_factory=list)  # ids of tests, or of files that could not be collected
    seconds: dict[str, float] = field(default_factory=dict)  # of every test that was run
    timed_out: bool = False
    ended: bool = True  # False: the process died


def import_others() -> None:
    """What every run needs and is not ours."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as tests/conftest.py has it, before torch is imported
    for name in HEAVY:
        __import__(name)


def import_ours(tree: Path) -> None:
    """The program and the tests come from this tree from now on: once, since beartype keeps the first class of a name."""
    os.chdir(tree)
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    sys.path[:] = [str(tree), *(path for path in sys.path if path and path != str(tree))]


def change_functions(path: Path) -> None:
    """Gives the functions that were imported from this file the code that it has now.

    Raises:
        ValueError: not possible without importing it anew.
    """
    codes: dict[tuple[str, int], CodeType] = {}

    def collect(code: CodeType) -> None:
        for one in code.co_consts:
            if isinstance(one, CodeType):
                codes[one.co_qualname, one.co_firstlineno] = one
                collect(one)

    collect(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True))
    gc.unfreeze()  # otherwise it does not name what tests/conftest.py froze
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == str(path):
            new = codes[one.__code__.co_qualname, one.__code__.co_firstlineno]
            if new != one.__code__:
                one.__code__ = new


class Watcher:
    """A pytest plugin that notes what becomes of the tests; it leaves out what `make test` leaves to `make sweep`.

    Args:
        tests: only these, in this order.
        swept: of the functions of these tests the other cases, which are left to `make sweep`; None: the tests
            themselves, wherever they belong.
        serve: is called with the tests that were collected, in place of running them.
    """

    def __init__(
        self, tests: list[str] | None = None, swept: bool | None = False, serve: "Callable[[Items], None] | None" = None
    ) -> None:
        self.outcome, self.tests, self.swept, self.serve = Outcome(), tests, swept, serve

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.serve is None:
            items[:] = chosen({one.nodeid: one for one in items}, self.tests, self.swept)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.serve is None:
            return None
        self.serve(Items(self, {one.nodeid: one for one in session.items}))
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.outcome.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        seconds = self.outcome.seconds
        seconds[report.nodeid] = seconds.get(report.nodeid, 0) + report.duration
        if report.failed:
            self.outcome.failed.append(report.nodeid)


@dataclass
class Items:
    """All tests, collected once by a pytest that waits."""

    watcher: Watcher
    by_name: dict[str, pytest.Item]

    def run(self, changed: Path, tests: list[str], swept: bool = False) -> Outcome:
        """In a fork: with a file that was changed, up to the first test that fails."""
        self.watcher.outcome = Outcome()
        change_functions(changed)
        items = chosen(self.by_name, tests, swept)
        for one, following in zip_longest(items, items[1:]):
            one.config.hook.pytest_runtest_protocol(item=one, nextitem=following)
            if self.watcher.outcome.failed:
                break
        return self.watcher.outcome


def chosen(items: dict[str, pytest.Item], tests: list[str] | None, swept: bool | None) -> list[pytest.Item]:
    """Of all tests those that are asked for: see `Watcher`."""
    if swept is None:
        return [items[test] for test in tests or () if test in items]
    kept = {name: one for name, one in items.items() if bool(one.get_closest_marker("sweep")) == swept}
    if swept and tests is not None:
        functions = {test.partition("[")[0] for test in tests}
        return [one for name, one in kept.items() if name.partition("[")[0] in functions]
    return list(kept.values()) if tests is None else [kept[test] for test in tests if test in kept]


def run_pytest(files: list[str], *plugins: object, stop: bool) -> None:
    options = [
        "-q",
        "--no-header",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-m",
        "not browser",
        *(["-x"] if stop else []),
    ]
    pytest.main([*options, *files], plugins=list(plugins))


def run_anew(tree: Path, tests: list[str], swept: bool | None = False) -> Outcome:
    """In a fork of a process in which nothing of ours has been imported."""
    import_ours(tree)
    watcher = Watcher(tests, swept)
    run_pytest(sorted({test.partition("::")[0] for test in tests}), watcher, stop=True)
    return watcher.outcome


def in_a_fork(work: Callable[[], Outcome], log: Path, seconds: float) -> Outcome:
    """Its processes are ended, and those that it started, where it takes longer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            os.write(writing, b" ")  # so that a long answer is never waited for by a reader that gave up
            with open(writing, "w", encoding="utf-8") as answer:
                json.dump(asdict(work()), answer)
        finally:
            os._exit(0)
    os.close(writing)
    parts, end = [], time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while selector.select(max(0, end - time.monotonic())):
            if not (part := os.read(reading, 1 << 20)):
                break
            parts.append(part)
    timed_out = time.monotonic() >= end
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.close(reading)
    os.waitpid(child, 0)
    try:
        return Outcome(**json.loads(b"".join(parts)))
    except ValueError:
        return Outcome(timed_out=timed_out, ended=False)

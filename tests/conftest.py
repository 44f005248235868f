"""What all tests share: shapes checked while they run, one thread, quick tests first."""

import gc
import os
import sys
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import MagicMock

# Before torch is imported: the machine's cores go to the browser and the servers, and one thread is quickest here.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault(
    "HF_DEACTIVATE_ASYNC_LOAD", "1"
)  # of transformers: threads cost more than tiny tensors take to read

import pytest
from hypothesis import HealthCheck, settings

from tests import shapes
from tests.browser import chromium

shapes.check_when_imported(Path(__file__).resolve().parent.parent / "vizformer", "model", "explain", "analysis")

# A busy machine takes longer than any number of milliseconds.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TESTS = Path(__file__).resolve().parent
ORDER = ("parity", "pages", "browser", "slow")  # after the plain ones


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays for good: nobody looks for garbage in it, neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by their folder and runs the quick kinds first: what breaks often is seen soon."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in ("parity", "pages", "browser"):
            item.add_marker(folder)

    def rank(item: pytest.Item) -> int:
        return max((ORDER.index(mark.name) + 1 for mark in item.iter_markers() if mark.name in ORDER), default=0)

    items.sort(key=rank)
    for item in items:  # after they are sorted: the costly ones among them still come last
        names = {mark.name for mark in item.iter_markers()}
        if names & {"parity", "pages"} and "quick" not in names:
            item.add_marker("slow")
    leave_to_the_sweep(items)


def leave_to_the_sweep(items: list[pytest.Item]) -> None:
    """Of a function with the mark `sample(n)`, n cases belong to `make test`, spread evenly; the others are swept.

    Where they begin differs by function, and moves on from one to the next: else all would keep the same model.
    """
    cases: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if sample := item.get_closest_marker("sample"):
            cases.setdefault((item.nodeid.partition("[")[0], sample.args[0]), []).append(item)
    for (name, n), of_one in cases.items():
        step, first = max(1, len(of_one) // n), zlib.crc32(name.encode())
        kept = {i * len(of_one) // n + (first + i) % step for i in range(n)}
        for i, item in enumerate(of_one):
            if i not in kept:
                item.add_marker("sweep")


@pytest.fixture(scope="session", autouse=True)
def no_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the app remembers for a person goes into a folder of the tests, also from servers that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VIZFORMER_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def the_tests_keep_their_priority() -> Iterator[None]:
    """A worker whose function is called in the process of the tests would slow down all tests that come after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda by: by)
        yield


@pytest.fixture(scope="session", autouse=True)
def figures_are_held_against_plotly() -> Iterator[None]:
    """Every figure that a page sends to a browser is checked as Plotly itself would check it.

    They have no images first, each of which takes some 10 ms (tests/web/test_chart_stand_in.py tries them).
    """
    with pytest.MonkeyPatch.context() as patch:
        if "streamlit.testing.v1" in sys.modules:
            from tests.figures.schema import held_against_plotly
            from vizformer.web.widgets import chart

            patch.setattr(chart, "spec", held_against_plotly)
            patch.setattr(chart, "N_FIRST", 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def installed_components_are_looked_for_once() -> Iterator[None]:
    """AppTest reads the metadata of every installed package anew for each app: half of the time of a page's test."""
    with pytest.MonkeyPatch.context() as patch:
        if "streamlit.testing.v1" in sys.modules:  # otherwise no test that was collected uses it
            from streamlit.components.v2 import manifest_scanner

            scanned = cache(manifest_scanner.scan_component_manifests)
            patch.setattr(manifest_scanner, "scan_component_manifests", scanned)
        yield


@pytest.fixture(scope="session", autouse=True)
def apps_are_waited_for_without_looking() -> Iterator[None]:
    """AppTest looks a thousand times a second whether a run is over, which takes a seventh of its time from the run.

    It also makes a new class of mocks for each run; one mock of the server is enough for all of them.
    """
    with pytest.MonkeyPatch.context() as patch:
        if "streamlit.testing.v1" in sys.modules:
            from streamlit.testing.v1 import app_test, local_script_runner

            give_up = local_script_runner.require_widgets_deltas

            def wait(runner: local_script_runner.LocalScriptRunner, timeout: float = 3) -> None:
                if runner._script_thread is not None:
                    runner._script_thread.join(timeout)
                if not runner.script_stopped():
                    give_up(runner, 0)

            patch.setattr(local_script_runner, "require_widgets_deltas", wait)
            patch.setattr(app_test, "MagicMock", cache(MagicMock))
        yield


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """The one Chromium of a test run (Playwright allows a process no second one); without it the test is not run."""
    path = chromium.find()
    if path is None:
        pytest.skip(chromium.WAY_OUT)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)  # milliseconds: the machine may be busy, with another browser for example
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(path), args=chromium.ARGUMENTS)
        yield browser
        browser.close()

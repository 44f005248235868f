"""The Makefile's promises that can be kept or broken without installing anything."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tests.browser import chromium
from tests.conftest import leave_to_the_sweep

ROOT = Path(__file__).resolve().parent.parent
IN_BROWSER = ("tests/benchmarks", "tests/browser", "tests/components", "tests/figures")

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


def make(*arguments: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    # What the make around these tests was told ("SCRIPTS=required" on a build server) is not for the one under test.
    outer = ("MFLAGS", "SCRIPTS")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name not in outer}
    return subprocess.run(
        ["make", "--no-print-directory", *arguments], cwd=cwd, env={**clean, **env}, capture_output=True, text=True
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but what make looks at and a python that only notes its arguments."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    script(tmp_path / ".venv" / "bin" / "python", 'echo "$@" >> calls.txt')
    return tmp_path


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_make_alone_says_what_can_be_made():
    out = make().stdout
    for target in ("make run", "make test", "make install", "make messages", "make quick", "make dev", "make format"):
        assert target in out


def test_installing_happens_once(checkout):
    assert make("install", cwd=checkout).returncode == 0
    assert make("install", cwd=checkout).returncode == 0
    calls = (checkout / "calls.txt").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith("install -c constraints.txt -e .[transformers,workers]")
    os.utime(checkout / "constraints.txt", (2**32, 2**32))
    make("install", cwd=checkout)
    assert len((checkout / "calls.txt").read_text().splitlines()) == 2


def test_an_old_python_is_said_with_a_way_out(checkout):
    shutil.rmtree(checkout / ".venv")
    old = script(checkout / "old" / "python3", '[ "$1" = --version ] && echo Python 3.9.2; exit 1')
    for name in ("python3.11", "python3.12", "python3.13", "python3.14"):
        script(checkout / "old" / name, "exit 1")
    tried = make("install", f"PYTHON={old}", cwd=checkout, PATH=f"{old.parent}:{os.environ['PATH']}")
    assert tried.returncode != 0
    assert f"VizFormer needs Python 3.11 or newer; {old} is Python 3.9.2." in tried.stdout
    assert "make run PYTHON=" in tried.stdout
    assert not (checkout / ".venv").exists()


@pytest.fixture
def scripts(checkout: Path) -> Path:
    """... with checkers of the scripts that only say their names, once npm has fetched them."""
    fetched = checkout / "tools" / "js" / "node_modules"
    fetched.mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "js" / "package.json", fetched.parent)
    script(checkout / ".venv" / "bin" / "node", 'echo "node: $1"')
    script(checkout / ".venv" / "bin" / "npm", "echo fetching")
    (checkout / ".venv" / ".installed-test").touch()
    return checkout


def lint_scripts(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return make("-o", ".venv/.installed-test", "lint-js", *arguments, cwd=folder)


def test_the_scripts_are_type_checked_and_linted_and_the_checkers_fetched_once(scripts):
    first, second = lint_scripts(scripts), lint_scripts(scripts)
    assert first.returncode == second.returncode == 0
    assert "fetching" in first.stdout
    assert "fetching" not in second.stdout
    for run in (first, second):
        assert [line for line in run.stdout.splitlines() if line.startswith("node:")] == [
            "node: tools/js/node_modules/typescript/bin/tsc",
            "node: tools/js/node_modules/oxlint/bin/oxlint",
        ]


@pytest.mark.parametrize("checker", ["typescript", "oxlint"])
def test_a_complaint_about_the_scripts_fails_the_lint(scripts, checker):
    script(scripts / ".venv" / "bin" / "node", f'case "$1" in *{checker}*) exit 1;; esac')
    assert lint_scripts(scripts).returncode != 0


def test_checkers_that_cannot_be_fetched_are_said_and_required_on_a_build_server(scripts):
    script(scripts / ".venv" / "bin" / "npm", "exit 1")
    tried = lint_scripts(scripts)
    assert tried.returncode == 0
    assert "the browser components' scripts are NOT checked" in tried.stdout
    assert "node:" not in tried.stdout
    assert lint_scripts(scripts, "SCRIPTS=required").returncode != 0
    assert "SCRIPTS=required" in (ROOT / ".ci" / "run").read_text()


def test_run_passes_on_where_to_listen():
    assert "vizformer --port 8501" in make("-n", "run", HOST="some-computer", PORT="8501").stdout
    assert "some-computer" not in make("-n", "run", HOST="some-computer").stdout  # shells export a HOST of their own
    assert "--port 8602 --host 0.0.0.0" in make("-n", "run", "PORT=8602", "HOST=0.0.0.0").stdout
    assert "--workers 4" in make("-n", "run", "WORKERS=4").stdout
    assert "--workers" not in make("-n", "run", WORKERS="some of mine").stdout


def test_dev_runs_the_app_anew_when_a_file_is_saved(checkout):
    script(checkout / ".venv" / "bin" / "vizformer", 'echo "$@"; env | grep STREAMLIT_SERVER')
    dev = make("dev", "PORT=8602", cwd=checkout)
    assert dev.returncode == 0
    assert dev.stdout.splitlines()[-3] == "--port 8602"
    assert "STREAMLIT_SERVER_FILE_WATCHER_TYPE=auto" in dev.stdout
    assert "STREAMLIT_SERVER_RUN_ON_SAVE=true" in dev.stdout
    assert "STREAMLIT_SERVER" not in make("run", cwd=checkout).stdout


def test_what_test_leaves_out_is_swept_and_quick_leaves_out_much():
    def chosen(*arguments: str) -> list[tuple[str, ...]]:
        lines = make("-n", *arguments, "JOBS=3", "BROWSERS=4").stdout
        return re.findall(r'-m pytest -m "([^"]+)" (-n \d) --dist worksteal([a-z/ ]*)', lines)

    in_browser = f" {' '.join(IN_BROWSER)}"
    assert chosen("quick") == [("not browser and not slow and not sweep", "-n 3", "")]
    assert chosen("test") == [
        ("not browser and not sweep", "-n 3", ""),
        ("browser and not sweep", "-n 4", in_browser),
    ]
    assert chosen("sweep") == [("not browser and sweep", "-n 3", ""), ("browser and sweep", "-n 4", in_browser)]
    script = (ROOT / ".ci" / "run").read_text().splitlines()
    assert [line for line in script if line.startswith(("make", "exec"))] == [
        "make test SCRIPTS=required",
        "exec make sweep",
    ]


def test_of_a_sampled_function_some_cases_spread_evenly_stay_and_the_others_are_swept():
    def case(name: str, *marks: pytest.Mark) -> MagicMock:
        found = {mark.name: mark for mark in marks}
        return MagicMock(nodeid=name, get_closest_marker=found.get)

    sample = pytest.mark.sample(3).mark
    items = [case(f"test_fields[{i}]", sample) for i in range(7)]
    others = [case("test_fields_of_another[0]"), case("test_few[0]", sample)]
    leave_to_the_sweep([*others, *items])
    kept = [i for i, item in enumerate(items) if not item.add_marker.called]
    assert len(kept) == 3
    assert all(first <= one < first + 2 for one, first in zip(kept, (0, 2, 4), strict=True))
    assert not any(item.add_marker.called for item in others)


def test_every_browser_test_lies_where_make_test_looks_for_them():
    found = {
        path.relative_to(ROOT).parts[1]
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"^(    )?@?(pytestmark = )?pytest\.mark\.browser", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {f"tests/{folder}" for folder in found | {"browser"}} == set(IN_BROWSER)


def test_format_lays_out_all_of_the_code():
    assert make("-n", "format").stdout.splitlines()[-1].endswith("ruff format .")


def test_a_missing_browser_is_said_in_the_last_line():
    env = {**os.environ, "VIZFORMER_CHROMIUM": "/nowhere/chromium"}
    report = subprocess.run(
        [sys.executable, chromium.__file__, "--report"], env=env, capture_output=True, text=True, check=True
    )
    assert report.stdout.startswith("browser tests: NOT RUN (")
    recipe = make("-n", "test").stdout.splitlines()
    assert recipe[-1].endswith("tests/browser/chromium.py --report")


def test_the_build_servers_script_is_a_program():
    path = ROOT / ".ci" / "run"
    assert os.access(path, os.X_OK)
    assert subprocess.run(["bash", "-n", str(path)]).returncode == 0

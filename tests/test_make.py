"""The Makefile's promises that can be kept or broken without installing anything."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import chromium

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="there is no make")


def make(*arguments: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
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
    for target in ("make run", "make test", "make install", "make messages"):
        assert target in out


def test_installing_happens_once(checkout):
    assert make("install", cwd=checkout).returncode == 0
    assert make("install", cwd=checkout).returncode == 0
    calls = (checkout / "calls.txt").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].endswith("install -c constraints.txt -e .")
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


def test_run_passes_on_where_to_listen():
    assert "vizformer --port 8501" in make("-n", "run", HOST="some-computer", PORT="8501").stdout
    assert "some-computer" not in make("-n", "run", HOST="some-computer").stdout  # shells export a HOST of their own
    assert "--port 8602 --host 0.0.0.0" in make("-n", "run", "PORT=8602", "HOST=0.0.0.0").stdout


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

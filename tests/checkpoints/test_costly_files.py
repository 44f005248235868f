"""Files that cost more to read than to send are refused in words, at once, and nobody else has to wait meanwhile."""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import hostile

ROOT = Path(__file__).resolve().parents[2]
PICKLES = [f"{name}, {kind}" for name in hostile.PICKLES for kind in ("zip", "legacy", "bare")]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """What became of each file, all of one kind in one process."""

    @cache
    def run(kind: str) -> dict[str, dict[str, Any]]:
        command = [sys.executable, "-m", "tests.checkpoints.hostile", kind, str(tmp_path_factory.mktemp(kind))]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def refused(took: dict[str, Any]) -> None:
    assert "got out" not in took["said"]
    assert took["said"], "it was opened"
    assert took["said"].isprintable()
    assert len(took["said"]) < 1000
    assert took["seconds"] < 2
    assert took["memory"] < 200
    assert took["kept"] < 1


@pytest.mark.sweep
@pytest.mark.parametrize("name", PICKLES)
def test_a_costly_pickle_is_refused_at_once(opened, name):
    took = opened("pickles")[name]
    refused(took)
    assert re.search("cannot be read|holds more than tensors|instead of named tensors|tensors with names", took["said"])


@pytest.mark.sweep
@pytest.mark.parametrize("name", hostile.TOKENIZERS)
def test_a_tokenizer_that_explodes_is_refused_at_once(opened, name):
    took = opened("tokenizers")[name]
    refused(took)
    assert "tokenizer" in took["said"]
    assert took["apart"] < 400  # of the largest of all files so far, in the process that only reads it

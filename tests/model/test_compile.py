"""A compiled model traces too, in one graph: no hook, no side effect that the compiler would have to break for.

In a process of its own, because the shape checks that the tests switch on (conftest.py) cannot be compiled.
"""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import torch
from tests import tiny
from vizformer.model import Trace

for options in ({}, tiny.ALIBI, tiny.T5):
    model, ids = tiny.model(**options), (tiny.ids(5), tiny.ids(4))
    with torch.inference_mode():
        logits = model(*ids, trace=(plain := Trace()))
        compiled = torch.compile(model, backend="eager", fullgraph=True)(*ids, trace=(trace := Trace()))
    tiny.assert_close(compiled, logits, 1e-6)
    tiny.assert_close(trace.logits, plain.logits, 1e-6)
    assert trace.sites == plain.sites and len(trace.sites) == 6
    assert list(trace.residuals) == list(plain.residuals)
    for name in plain.residuals:
        tiny.assert_close(trace.residual(name), plain.residual(name), 1e-6)
    for site in plain.sites:
        tiny.assert_close(trace[site].scores(1), plain[site].scores(1), 1e-6)
        tiny.assert_close(trace[site].pattern(1), plain[site].pattern(1), 1e-6)
        tiny.assert_close(trace[site].z(1), plain[site].z(1), 1e-6)
        assert torch.equal(trace[site].reason(1), plain[site].reason(1))
"""


@pytest.mark.sweep
@pytest.mark.slow
def test_a_compiled_model_traces_too() -> None:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

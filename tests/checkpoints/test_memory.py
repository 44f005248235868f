"""What is said to be needed before loading is what loading takes; what does not fit is refused with the ways out."""

import pytest
import torch

from tests.checkpoints import folders as made
from vizformer.checkpoints import inspect, load, memory
from vizformer.errors import CheckpointError
from vizformer.model import Trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made.llama(tmp_path_factory.mktemp("memory") / "tiny-llama")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_are_copied_where_their_dtype_changes_and_mapped_where_not(folder, dtype):
    needed = memory.need(inspect(folder), dtype)
    model = load(folder, dtype=dtype).model
    size = sum(parameter.nbytes for parameter in model.parameters())
    assert (needed.copied, needed.mapped) == ((0, size) if dtype == torch.float32 else (size, 0))


def test_a_traced_forward_keeps_no_more_than_was_said():
    checkpoint = load("zh-en")
    config = checkpoint.model.config
    trace = Trace()
    n = 64
    ids = torch.ones(1, n, dtype=torch.long)
    with torch.inference_mode():
        logits = checkpoint.model(ids, ids, trace=trace)
    records = [trace[site] for site in trace.sites]
    kept = logits.nbytes + sum(t.nbytes for r in records for t in (r.q, r.k, r.v))
    kept += sum(tensor.nbytes for tensor in trace.residuals.values())
    said = memory.forward_bytes(config, n, torch.float32)
    assert kept <= said <= 3 * kept


def test_what_does_not_fit_is_refused_before_it_is_read(folder, monkeypatch):
    report = inspect(folder)
    full, half = (memory.need(report, dtype).total for dtype in (torch.float32, torch.float16))
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda *_: full)
    assert load(folder).model is not None
    monkeypatch.setattr(memory, "available", lambda *_: full - 1)
    if half < full:
        with pytest.raises(CheckpointError, match=r"float16|bfloat16"):
            load(folder)
    monkeypatch.setattr(memory, "available", lambda *_: 10)
    with pytest.raises(CheckpointError, match="smaller model"):
        load(folder)
    with pytest.raises(CheckpointError, match="zh-en does not fit"):
        load("zh-en")
    monkeypatch.setattr(memory, "available", lambda *_: None)  # nobody says: try
    assert load("zh-en").model is not None


def test_the_tighter_limit_counts(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   4000 kB\n")
    (tmp_path / "max").write_text("3000000\n")
    (tmp_path / "used").write_text("1000000\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CGROUPS", ())
    assert memory.available() == 4_096_000
    monkeypatch.setattr(memory, "_CGROUPS", ((tmp_path / "max", tmp_path / "used"),))
    assert memory.available() == 2_000_000
    (tmp_path / "max").write_text("max\n")
    assert memory.available() == 4_096_000
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "none")
    assert memory.available() is None

"""What is said to be needed before loading is what loading takes; what does not fit is refused with the ways out."""

import shutil
import sys

import pytest
import torch

from tests import tiny
from tests.benchmarks import load as load_benchmark
from tests.checkpoints import folders as made
from vizformer.checkpoints import inspect, load
from vizformer.checkpoints.tensors import memory
from vizformer.errors import CheckpointError, TraceError
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


def deberta():
    return tiny.checkpoint("encoder-only", **{**tiny.DEBERTA, "max_positions": 64})


@pytest.mark.parametrize("make", [lambda: load("zh-en"), deberta], ids=["zh-en", "deberta"])
def test_a_traced_forward_keeps_no_more_than_was_said(make):
    checkpoint = make()
    config = checkpoint.model.config
    trace = Trace()
    n = 64
    ids = torch.ones(1, n, dtype=torch.long)
    with torch.inference_mode():
        logits = checkpoint.model(ids, ids if checkpoint.model.decoder is not None else None, trace=trace)
    records = [trace[site] for site in trace.sites]
    biases = [r.position_bias for r in records if r.position_bias is not None]
    kept = logits.nbytes + sum(t.nbytes for r in records for t in (r.q, r.k, r.v)) + sum(t.nbytes for t in biases)
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


@pytest.fixture(scope="module")
def forty_million(tmp_path_factory):
    """A model of 40 million numbers, which takes seconds to make."""
    folder = tmp_path_factory.mktemp("memory") / "model"
    return made.gpt2(folder, n_embd=768, n_inner=3072, n_layer=6, n_head=12, n_positions=128)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_what_is_reckoned_is_what_it_takes(forty_million, dtype):
    """160 MB that stay mapped, or 80 MB converted; measured in a process of its own."""
    *__, own, reckoned = load_benchmark.measured(load_benchmark.OURS, forty_million, 1, dtype, tokens=16)
    assert abs(own - reckoned) < 24 * 2**20  # the tokenizer, code that is imported late, the allocator's own
    assert (reckoned > 80e6) == (dtype == "bfloat16")


def test_a_copy_that_maps_nothing_needs_all_of_its_weights(folder):
    report = inspect(folder)
    mapped, whole = (memory.need(report, torch.float32, maps=maps) for maps in (True, False))
    assert (whole.copied, whole.mapped) == (mapped.mapped, 0)
    elsewhere = memory.need(report, torch.float32, torch.device("cuda"))
    assert (elsewhere.copied, elsewhere.mapped) == (mapped.mapped, 0)


def test_a_gpu_is_asked_for_its_own_memory(monkeypatch):
    said = {"mem_get_info": (7_000, 9_000), "memory_reserved": 500, "memory_allocated": 200}
    for name, value in said.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert memory.available(torch.device("cuda", 0)) == 7_300


def test_the_dtypes_that_would_fit_are_named(folder, monkeypatch):
    report = inspect(folder)
    full, half = (memory.need(report, dtype, maps=False).total for dtype in (torch.float32, torch.float16))
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda *_: (full + half) // 2)
    with pytest.raises(memory.DoesNotFitError, match="bfloat16") as refused:
        memory.require(report, torch.float32, maps=False)
    assert refused.value.fitting == ("bfloat16", "float16")
    memory.require(report, torch.bfloat16, maps=False)


def test_the_dtype_of_the_file_and_others(tmp_path, folder):
    assert load(folder, dtype="auto").dtype == torch.float32
    tensors = {name: tensor.bfloat16() for name, tensor in made.tensors(folder).items()}
    half = shutil.copytree(folder, tmp_path / "half")
    made.save_tensors(half, tensors)
    assert load(half, dtype="auto").dtype == torch.bfloat16
    first = next(iter(tensors))
    made.save_tensors(half, {**tensors, first: tensors[first].half()})
    assert load(half, dtype="auto").dtype == torch.float32  # which holds both exactly
    assert load(half).dtype == load(half, dtype="float32").dtype == torch.float32
    for wrong in ("int8", torch.int64, "quarter"):
        with pytest.raises(CheckpointError, match="Models compute in float32, bfloat16, float16"):
            load(half, dtype=wrong)


def test_what_float16_cannot_hold_is_refused(tmp_path, folder):
    tensors = made.tensors(folder)
    name = next(name for name in tensors if name.endswith("q_proj.weight"))
    large = shutil.copytree(folder, tmp_path / "large")
    made.save_tensors(large, {**tensors, name: tensors[name] * 1e6})
    with pytest.raises(CheckpointError, match="65504"):
        load(large, dtype="float16")
    assert load(large, dtype="bfloat16").model is not None
    made.save_tensors(large, {**tensors, "lm_head.weight": tensors["lm_head.weight"] * 3e4})  # the logits overflow
    with pytest.raises(TraceError, match="Compute in bfloat16"):
        load(large, dtype="float16").trace("I have two dogs")
    assert load(large, dtype="bfloat16").trace("I have two dogs").logits.isfinite().all()


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

"""What is said to be needed before loading is what loading takes; what does not fit is refused with the ways out."""

import shutil
import subprocess
import sys

import pytest
import torch
from safetensors.torch import save_file

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
    assert needed.weights == (0 if dtype == torch.float32 else size)


def test_a_traced_forward_keeps_no_more_than_was_said():
    checkpoint = load("zh-en")
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


@pytest.mark.sweep
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_what_is_reckoned_is_what_it_takes(forty_million, dtype):
    """160 MB that stay mapped, or 80 MB converted; measured in a process of its own."""
    *__, own, reckoned = load_benchmark.measured(load_benchmark.OURS, forty_million, 1, dtype, tokens=16)
    assert abs(own - reckoned) < 24 * 2**20  # the tokenizer, code that is imported late, the allocator's own
    assert (reckoned > 80e6) == (dtype == "bfloat16")


def test_on_another_device_all_weights_are_copied(folder):
    report = inspect(folder)
    assert memory.need(report, torch.float32).weights == 0
    whole = sum(parameter.nbytes for parameter in load(folder).model.parameters())
    assert memory.need(report, torch.float32, torch.device("cuda")).weights == whole


def test_a_gpu_is_asked_for_its_own_memory(monkeypatch):
    said = {"mem_get_info": (7_000, 9_000), "memory_reserved": 500, "memory_allocated": 200}
    for name, value in said.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert memory.available(torch.device("cuda", 0)) == 7_300


def test_the_dtypes_that_would_fit_are_named(folder, tmp_path, monkeypatch):
    half = shutil.copytree(folder, tmp_path / "half")
    made.save_tensors(half, {name: tensor.bfloat16() for name, tensor in made.tensors(folder).items()})
    report = inspect(half)
    needs = (memory.need(report, dtype).total for dtype in (torch.float32, torch.float16, torch.bfloat16))
    full, copied, mapped = needs
    assert mapped < copied < full
    monkeypatch.setattr(memory, "SPARE", 0)
    monkeypatch.setattr(memory, "available", lambda *_: (full + copied) // 2)
    with pytest.raises(memory.DoesNotFitError, match="bfloat16") as refused:
        memory.require(report, torch.float32)
    assert refused.value.fitting == ("bfloat16", "float16")
    memory.require(report, torch.bfloat16)


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


MOUNTS = """\
31 23 0:28 / {top} rw - tmpfs tmpfs rw
34 31 0:31 / {top}/cpuset rw - cgroup cgroup rw,cpuset
35 31 0:32 {root} {top}/memory rw,relatime shared:1 - cgroup cgroup rw,memory
41 31 0:38 {root} {top}/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes a /proc and the control groups of a machine with 9,000 KiB; {group: limit, used}."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")

    def make(groups, path, *, version, root="/"):
        (tmp_path / "proc" / "self").mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / "meminfo").write_text("MemTotal: 9999 kB\nMemAvailable:   9000 kB\n")
        lines = "".join(
            f"{n}:{kind}:{path}\n" for n, kind in ((5, "cpuset"), (4, "memory" if version == 1 else "pids"))
        )
        (tmp_path / "proc" / "self" / "cgroup").write_text(f"{lines}0::{path if version == 2 else '/'}\n")
        (tmp_path / "proc" / "self" / "mountinfo").write_text(MOUNTS.format(top=tmp_path / "cgroup", root=root))
        shutil.rmtree(tmp_path / "cgroup", ignore_errors=True)
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
        for group, values in groups.items():
            folder = tmp_path / "cgroup" / ("memory" if version == 1 else "unified") / group
            folder.mkdir(parents=True, exist_ok=True)
            for name, value in zip(names, values, strict=True):
                (folder / name).write_text(f"{value}\n")
        return memory.available()

    return make


JOB = "system.slice/slurmstepd.scope/job_7/step_0/user/task_0"


@pytest.mark.parametrize("version", [1, 2])
def test_the_least_that_is_left_of_the_control_groups_counts(machine, version):
    """A job of Slurm: the limit is that of a group around the process's own one."""
    none = (2**63 - 4096, 0) if version == 1 else ("max", 0)
    around = {"": none, "system.slice": none, "system.slice/slurmstepd.scope/job_7": (5_000_000, 1_000_000)}
    assert machine({**around, JOB: none}, f"/{JOB}", version=version) == 4_000_000
    assert machine({**around, JOB: (2_500_000, 500_000)}, f"/{JOB}", version=version) == 2_000_000
    assert machine({**around, JOB: (2_500_000, 2_600_000)}, f"/{JOB}", version=version) == 0
    assert machine({**around, JOB: none}, "/another.slice", version=version) == 9_216_000
    assert machine({"": (3_000_000, 1_000_000)}, "/", version=version) == 2_000_000


@pytest.mark.parametrize("version", [1, 2])
def test_copies_of_files_that_the_system_takes_back_are_free(machine, version, tmp_path):
    groups = {"": (3_000_000, 2_900_000)}
    assert machine(groups, "/", version=version) == 100_000
    stat = "anon 1\ninactive_file 700000\n" if version == 2 else "inactive_file 7\ntotal_inactive_file 700000\n"
    (tmp_path / "cgroup" / ("memory" if version == 1 else "unified") / "memory.stat").write_text(stat)
    assert memory.available() == 800_000


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_sees_its_own_group_as_the_root(machine, version):
    """Whether its path is told as the machine has it (Docker with version 1), or from the container's own root on."""
    groups = {"": (3_000_000, 1_000_000), "inner": (1_500_000, 500_000)}
    assert machine(groups, "/docker/abc", version=version, root="/docker/abc") == 2_000_000
    assert machine(groups, "/docker/abc/inner", version=version, root="/docker/abc") == 1_000_000
    assert machine(groups, "/docker/other", version=version, root="/docker/abc") == 2_000_000
    assert machine(groups, "/../outside", version=version) == 2_000_000


def test_a_machine_that_says_nothing_of_its_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "PROC", tmp_path)
    monkeypatch.setattr(memory, "_of_the_process", lambda: iter(()))
    assert memory.available() is None


LIMITED = """
import resource, sys
from vizformer.checkpoints import load
from vizformer.checkpoints.tensors import memory
for room in map(int, sys.argv[4:]):
    most = dict(memory._fields("self/status"))[sys.argv[3]] + room
    resource.setrlimit(getattr(resource, sys.argv[2]), (most, resource.RLIM_INFINITY))
    assert memory.available() <= room
    try:
        load(sys.argv[1])
    except Exception as error:
        print(type(error).__name__, error)
"""


@pytest.mark.sample(1)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux has them")
@pytest.mark.parametrize(
    ("limit", "field", "file"),
    [("RLIMIT_AS", "VmSize", "model.safetensors"), ("RLIMIT_DATA", "VmData", "pytorch_model.bin")],
)
def test_a_sound_file_is_not_called_damaged_where_the_process_may_take_no_more(tmp_path, folder, limit, field, file):
    """First it may not even map the file; then it may, but there is no room for the rest."""
    source = shutil.copytree(folder, tmp_path / "model")
    tensors = {**made.tensors(folder), "rotary_emb.inv_freq": torch.zeros(2**24)}
    (source / "model.safetensors").unlink()
    if file.endswith(".bin"):
        torch.save(tensors, source / file)
    else:
        save_file(tensors, source / file)
    size = (source / file).stat().st_size
    rooms = (str(size // 2), str(3 * size))
    command = [sys.executable, "-c", LIMITED, str(source), limit, field, *rooms]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith(f"CheckpointError There is not enough memory for {file}")
    assert second.startswith("DoesNotFitError")


def test_what_a_forward_takes_is_what_its_trace_keeps_and_more():
    config = tiny.config("decoder-only", d_model=24, n_heads=6, n_kv_heads=2, **{"positions": "none"})
    n, d_head = 7, config.d_head
    one = (6 + 2 * 2) * d_head + 3 * 24  # q, k and v, and the points of the stream
    whole = 2 * config.n_decoder_layers * one + 3 * config.d_ff + 2 * config.vocab_size
    assert memory.forward_bytes(config, n, torch.float32) == 4 * n * whole
    assert memory.forward_bytes(config, n, torch.float16) == 2 * n * whole

"""A model larger than the memory: the layers read one by one from the file, beside all of them at once.

    python -m tests.benchmarks.stream                  # a made LLaMA of 2 GB in bfloat16, 4 GB in float32; limit 1.5 GB
    python -m tests.benchmarks.stream --layers 4 --limit 900

The folder is made in the system's temporary folder and removed at the end.  Every measurement is a process of its own
that imports first, opens the folder in float32 and runs two traced forwards.  "Peak" is the largest resident set, and
"own" the most of it that is no page of a file, which the system cannot take back; both minus what the imports took.  The
limit is a control group's (memory of the process and its pages of the file, both), where this account may make one; a
process that goes beyond it is killed.  The files are put out of the system's cache before every process.  The logits of
all that end must be the same, bit by bit.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import torch
from safetensors.torch import save_file

MIB = 2**20
WIDTH, INNER, ROWS, HEADS = 2048, 5632, 32_000, 16
_GROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),  # version 1
    (Path("/sys/fs/cgroup"), "memory.max"),
)
RUN = """
import hashlib, json, os, sys, threading, time
if sys.argv[4]:
    with open(os.path.join(sys.argv[4], "cgroup.procs"), "w") as group:
        group.write(str(os.getpid()))
import torch
torch.set_num_threads(1)
import vizformer as vf
import vizformer.checkpoints
from vizformer.model import Trace
torch.zeros(8, 8) @ torch.zeros(8, 8)
def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
before, anonymous, own = status("VmHWM"), status("RssAnon"), [0]
def watch():
    while True:
        own[0] = max(own[0], status("RssAnon"))
        time.sleep(0.003)
threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
checkpoint = vf.load(sys.argv[1], stream=sys.argv[2] == "stream")
opened = time.perf_counter()
ids = list(range(1, 1 + int(sys.argv[3])))
times = []
for again in range(2):
    begun = time.perf_counter()
    trace = checkpoint.trace(ids=ids)
    times.append(time.perf_counter() - begun)
same = hashlib.sha256(trace.logits.numpy().tobytes()).hexdigest()[:12]
print(json.dumps([opened - start, *times, status("VmHWM") - before, own[0] - anonymous, same]))
"""


def make(folder: Path, layers: int) -> int:
    """A LLaMA with random weights, a file for each layer; the bytes of all of them."""
    torch.manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return (torch.randn(shape) * 0.02).bfloat16()

    files: dict[str, dict[str, torch.Tensor]] = {
        "beside": {
            "model.embed_tokens.weight": numbers(ROWS, WIDTH),
            "model.norm.weight": torch.ones(WIDTH).bfloat16(),
            "lm_head.weight": numbers(ROWS, WIDTH),
        }
    }
    layer = {
        **{f"self_attn.{name}_proj.weight": numbers(WIDTH, WIDTH) for name in "qkvo"},
        "mlp.gate_proj.weight": numbers(INNER, WIDTH),
        "mlp.up_proj.weight": numbers(INNER, WIDTH),
        "mlp.down_proj.weight": numbers(WIDTH, INNER),
        "input_layernorm.weight": torch.ones(WIDTH).bfloat16(),
        "post_attention_layernorm.weight": torch.ones(WIDTH).bfloat16(),
    }
    for number in range(layers):  # the same numbers in every layer: they take the time and the memory of others
        files[f"layer{number}"] = {f"model.layers.{number}.{name}": tensor for name, tensor in layer.items()}
    places: dict[str, str] = {}
    size = 0
    for number, tensors in enumerate(files.values()):
        name = f"model-{number + 1:05}-of-{len(files):05}.safetensors"
        save_file(tensors, folder / name)
        places |= dict.fromkeys(tensors, name)
        size += (folder / name).stat().st_size
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    config = dict(
        model_type="llama",
        architectures=["LlamaForCausalLM"],
        vocab_size=ROWS,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=layers,
        num_attention_heads=HEADS,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
    )
    (folder / "config.json").write_text(json.dumps(config))
    return size


@contextlib.contextmanager
def limited(n_bytes: int) -> Iterator[str]:
    """A control group that may have so much memory; empty where none can be made."""
    for place, field in _GROUPS:
        group = place / f"vizformer-benchmark-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / field).write_text(str(n_bytes))
            yield str(group)
            return
        finally:
            with contextlib.suppress(OSError):
                group.rmdir()
    yield ""


def measured(folder: Path, kind: str, tokens: int, group: str) -> list[float | str] | None:
    """Seconds to open, of the first and the second forward, peak and own bytes, and the logits; None if killed."""
    for file in folder.iterdir():  # out of the system's cache, which would be somebody else's pages
        with file.open("rb") as open_file:
            os.fsync(open_file.fileno())
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(open_file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = [sys.executable, "-c", RUN, str(folder), kind, str(tokens), group]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        if done.returncode != -9:
            sys.stderr.write(done.stderr[-2000:])
        return None
    found: list[float | str] = json.loads(done.stdout)
    return found


@click.command()
@click.option("--layers", default=20, show_default=True, help="Each has 51 million parameters.")
@click.option("--tokens", default=64, show_default=True)
@click.option("--limit", default=1536, show_default=True, help="MiB that a process may have.")
def main(layers: int, tokens: int, limit: int) -> None:
    with tempfile.TemporaryDirectory(prefix="vizformer-stream-") as made, limited(limit * MIB) as group:
        folder = Path(made)
        size = make(folder, layers)
        print(
            f"{platform.machine()}, torch {torch.__version__}, 1 thread; {size / MIB:,.0f} MiB of weights (bfloat16)\n"
        )
        print("| | limit, MiB | open, s | first trace, s | second, s | peak, MiB | own, MiB | logits |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
        same: set[str] = set()
        runs = [("all at once", ""), ("stream", "")]
        runs += [("all at once", group), ("stream", group)] if group else []
        for kind, within in runs:
            found = measured(folder, kind, tokens, within)
            bound = f"{limit:,}" if within else "-"
            if found is None:
                print(f"| {kind} | {bound} | killed | | | | | |")
                continue
            opened, first, second, peak, own, logits = found
            same.add(str(logits))
            print(
                f"| {kind} | {bound} | {opened:.1f} | {first:.1f} | {second:.1f} | {float(peak) / MIB:,.0f} | "
                f"{float(own) / MIB:,.0f} | {logits} |"
            )
        if not group:
            print("\nNo control group could be made here: nothing was limited.")
        if len(same) > 1:
            raise SystemExit("The logits differ.")


if __name__ == "__main__":
    main()

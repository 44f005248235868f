"""Time and memory to open a folder and to have its first trace, beside `transformers` with eager attention.

    python -m tests.benchmarks.load                      # a made folder of GPT-2 small's shape; the table of README.md
    python -m tests.benchmarks.load --folder DIR         # a folder of your own (MiniLM, ...); any number of them
    python -m tests.benchmarks.load --dtype bfloat16     # converted while it is opened

Every measurement is a process of its own, which imports first and then opens the folder and runs one forward that keeps
every attention map (`transformers`: output_attentions, output_hidden_states) or a trace (ours).  "Peak" is the largest
resident set until then, minus what the imports took; pages of the weights that are mapped to the file count as long as
they are resident.  "Own" is the most of it that is no page of a file, which the system cannot take back, and
"reckoned" what the check before loading says of that (`vizformer.checkpoints.tensors.memory.need`, for as many tokens).  The
file is in the system's cache: it is read once before.  Medians of --repeats processes.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import click

MIB = 2**20
TOKENS = 128

_COMMON = """
import json, sys, threading, time
import torch
torch.set_num_threads(1)
folder, n, dtype = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def status(field):  # VmHWM is the peak since the process began; ru_maxrss would count its parent's
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
own = []
def watch():
    while True:
        own.append(status("RssAnon"))
        time.sleep(0.003)
"""
OURS = (
    _COMMON
    + """
import vizformer as vf
from vizformer.model import Trace
vf.Transformer, vf.load, vf.explain
import vizformer.checkpoints
torch.zeros(8, 8) @ torch.zeros(8, 8)
before, anonymous = status("VmHWM"), status("RssAnon")
threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
checkpoint = vf.load(folder, dtype=dtype)
opened, at_open = time.perf_counter(), status("VmHWM")
ids = torch.arange(n)[None] % min(1000, checkpoint.model.config.vocab_size)
with torch.inference_mode():
    checkpoint.model(ids, trace=Trace())
done = time.perf_counter()
from vizformer.checkpoints.tensors import memory
reckoned = memory.need(checkpoint.report, checkpoint.dtype).weights
reckoned += memory.forward_bytes(checkpoint.model.config, n, checkpoint.dtype)
peak, most = status("VmHWM") - before, max(own) - anonymous
print(json.dumps([opened - start, done - start, at_open - before, peak, most, reckoned]))
"""
)
THEIRS = (
    _COMMON
    + """
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
from transformers.models.bert import modeling_bert
from transformers.models.gpt2 import modeling_gpt2
config = AutoConfig.from_pretrained(folder)
writes = any("LMHead" in name or "CausalLM" in name for name in config.architectures or ())
kind = AutoModelForCausalLM if writes else AutoModel
torch.zeros(8, 8) @ torch.zeros(8, 8)
before, anonymous = status("VmHWM"), status("RssAnon")
threading.Thread(target=watch, daemon=True).start()
start = time.perf_counter()
model = kind.from_pretrained(folder, attn_implementation="eager", dtype=dtype).eval()
try:
    AutoTokenizer.from_pretrained(folder)
except Exception:
    pass
opened, at_open = time.perf_counter(), status("VmHWM")
ids = torch.arange(n)[None] % min(1000, config.vocab_size)
with torch.inference_mode():
    kept = model(input_ids=ids, output_attentions=True, output_hidden_states=True)
done = time.perf_counter()
peak, most = status("VmHWM") - before, max(own) - anonymous
print(json.dumps([opened - start, done - start, at_open - before, peak, most, 0]))
"""
)


def measured(code: str, folder: Path, repeats: int, dtype: str = "auto", tokens: int = TOKENS) -> list[float]:
    """Medians of: seconds to open and to the first trace; bytes at most until then, and then; own; reckoned."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, "-W", "ignore", "-c", code, str(folder), str(tokens), dtype]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise click.ClickException(done.stderr.strip().splitlines()[-1])
        runs.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def make_gpt2(folder: Path) -> Path:
    """A folder of GPT-2 small's shape with random weights and a tokenizer of bytes, as `transformers` writes it."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    GPT2LMHeadModel(GPT2Config()).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)} | {f"<{i}>": i for i in range(256, 50_257)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.save(str(folder / "tokenizer.json"))
    return folder


@click.command()
@click.option("--folder", "folders", type=click.Path(exists=True, file_okay=False, path_type=Path), multiple=True)
@click.option("--dtype", default="auto", show_default=True, help="auto: as in the file.")
@click.option("--repeats", default=5, show_default=True)
def main(folders: tuple[Path, ...], dtype: str, repeats: int) -> None:
    with tempfile.TemporaryDirectory() as made:
        rows = [(folder.name, folder) for folder in folders] or [("GPT-2 small's shape", make_gpt2(Path(made, "gpt2")))]
        click.echo("| folder | who | opens, s | first trace, s | peak to open, MiB | to first trace | own | reckoned |")
        click.echo("|---|---|---:|---:|---:|---:|---:|---:|")
        for name, folder in rows:
            for weights in folder.glob("*.safetensors"):
                weights.read_bytes()
            for who, code in (("VizFormer", OURS), ("transformers, eager", THEIRS)):
                opened, traced, *sizes = measured(code, folder, repeats, dtype)
                peak, later, own, said = (f"{size / MIB:.0f}" if size else "-" for size in sizes)
                click.echo(f"| {name} | {who} | {opened:.2f} | {traced:.2f} | {peak} | {later} | {own} | {said} |")
    click.echo(f"\n{platform.machine()}, {TOKENS} tokens, dtype {dtype}, one thread, {repeats} processes each")


if __name__ == "__main__":
    main()

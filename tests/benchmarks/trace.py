"""What tracing costs: time over the plain fused forward and bytes kept, beside `transformers` keeping all its maps.

    python -m tests.benchmarks.trace                     # the table of README.md, and exit code 1 above the limit
    python -m tests.benchmarks.trace --lengths 128 --repeats 3 --skip-transformers

One process, one model in memory each, the same token ids, batch 1, float32, random weights in the shape of GPT-2 small.
In every round each variant runs once, in another order, so that a machine that slows down slows all of them; reported
are medians, and the median of the rounds' own ratios.
"""

import gc
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import torch
from torch import Tensor

from vizformer.config import ModelConfig
from vizformer.model import Trace, Transformer

MIB = 2**20
PRESET = "gpt2-small"
LIMIT, AT = 1.15, 1024


@dataclass
class Variant:
    """One way to run the forward; `run` returns the bytes it keeps besides the logits."""

    name: str
    run: Callable[[Tensor], int]
    seconds: list[float] = field(default_factory=list)
    kept: int = 0

    def time(self, ids: Tensor) -> None:
        gc.collect()
        _wait(ids)
        started = time.perf_counter()
        self.kept = self.run(ids)
        _wait(ids)
        self.seconds.append(time.perf_counter() - started)


def _wait(ids: Tensor) -> None:
    if ids.device.type == "cuda":
        torch.cuda.synchronize()


def ours(config: ModelConfig, device: str) -> tuple[Variant, Variant]:
    """The plain forward and the traced one, of the same model."""
    torch.manual_seed(0)
    model = Transformer(config).to(device).eval().requires_grad_(False)

    def plain(ids: Tensor) -> int:
        model(ids)
        return 0

    def traced(ids: Tensor) -> int:
        trace = Trace()
        logits = model(ids, trace=trace)
        return trace.nbytes - logits.untyped_storage().nbytes()

    with torch.inference_mode():
        ids = torch.arange(64, device=device)[None]
        if not torch.equal(model(ids), model(ids, trace=Trace())):
            raise SystemExit("tracing changed the result")
    return Variant("plain", plain), Variant("traced", traced)


def theirs(config: ModelConfig, device: str) -> Variant:
    """GPT-2 of `transformers` in the same shape, returning all attention maps and hidden states."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    shape = GPT2Config(
        vocab_size=config.vocab_size,
        n_embd=config.d_model,
        n_head=config.n_heads,
        n_layer=config.n_decoder_layers,
        n_inner=config.d_ff,
        n_positions=config.max_positions,
        attn_implementation="eager",
        use_cache=False,
    )
    model = GPT2LMHeadModel(shape).to(device).eval().requires_grad_(False)

    def all_maps(ids: Tensor) -> int:
        output: Any = model(ids, output_attentions=True, output_hidden_states=True)
        kept = {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes()
            for t in (*output.attentions, *output.hidden_states)
        }
        return sum(kept.values())

    return Variant("transformers", all_maps)


def measure(variants: list[Variant], ids: Tensor, repeats: int) -> None:
    with torch.inference_mode():
        for variant in variants:
            variant.run(ids)  # once for nothing: memory is claimed and kernels are chosen
            variant.seconds.clear()
        for turn in range(repeats):
            first = turn % len(variants)
            for variant in variants[first:] + variants[:first]:
                variant.time(ids)


def ratio(variant: Variant, plain: Variant) -> float:
    return statistics.median(a / b for a, b in zip(variant.seconds, plain.seconds, strict=True))


def row(n: int, plain: Variant, traced: Variant, other: Variant | None) -> list[str]:
    def milliseconds(variant: Variant) -> str:
        return f"{1000 * statistics.median(variant.seconds):.0f}"

    cells = [
        str(n),
        milliseconds(plain),
        milliseconds(traced),
        f"{ratio(traced, plain):.2f}",
        f"{traced.kept / MIB:.0f}",
    ]
    if other is not None:
        cells += [milliseconds(other), f"{ratio(other, plain):.2f}", f"{other.kept / MIB:.0f}"]
    return cells


def table(rows: list[list[str]]) -> str:
    heads = ["tokens", "plain, ms", "traced, ms", "traced / plain", "kept, MiB"]
    heads += ["transformers with all maps, ms", "/ plain", "kept, MiB"][: len(rows[0]) - len(heads)]
    lines = [heads, ["---:"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def processor(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return f"{names[0] if names else platform.processor() or platform.machine()}, {torch.get_num_threads()} thread(s)"


@click.command()
@click.option("--lengths", default="128,512,1024", show_default=True, help="Numbers of tokens.")
@click.option("--repeats", default=15, show_default=True, type=click.IntRange(1), help="Rounds per length.")
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="As the web process has.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option(
    "--vocab-size", default=50_257, show_default=True, type=click.IntRange(1), help="Rows of the unembedding."
)
@click.option("--skip-transformers", is_flag=True, help="Measure only ours.")
def main(lengths: str, repeats: int, threads: int, device: str, vocab_size: int, skip_transformers: bool) -> None:
    """Times the plain, the traced and transformers' forward."""
    torch.set_num_threads(threads)
    config = ModelConfig.preset(PRESET, vocab_size=vocab_size, bos_id=None, eos_id=None)
    plain, traced = ours(config, device)
    other = None if skip_transformers else theirs(config, device)
    variants = [variant for variant in (plain, traced, other) if variant is not None]
    rows, measured = [], {}
    for n in map(int, lengths.split(",")):
        ids = torch.randint(vocab_size, (1, n), generator=torch.Generator().manual_seed(n)).to(device)
        measure(variants, ids, repeats)
        rows.append(row(n, plain, traced, other))
        measured[n] = ratio(traced, plain)
        print(f"  n = {n} done", file=sys.stderr)
    versions = f"torch {torch.__version__}"
    if other is not None:
        import transformers

        versions += f", transformers {transformers.__version__}"
    print(table(rows))
    print(
        f"\n{PRESET} ({config.n_decoder_layers} layers, d_model {config.d_model}, vocabulary {vocab_size:,}), random "
        f"weights, batch 1, float32; medians of {repeats} interleaved rounds; kept besides the logits.\n"
        f"{processor(device)}; {versions}."
    )
    if AT in measured:
        verdict = "within" if measured[AT] <= LIMIT else "ABOVE"
        print(f"traced / plain at {AT} tokens: {measured[AT]:.3f}, {verdict} the limit of {LIMIT}")
        sys.exit(measured[AT] > LIMIT)


if __name__ == "__main__":
    main()

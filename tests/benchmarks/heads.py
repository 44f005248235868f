"""The head report of a 12 x 12 model over 200 texts of 128 tokens, beside the same scores by way of `output_attentions`.

    python -m tests.benchmarks.heads                        # GPT-2's shape and vocabulary, random weights
    python -m tests.benchmarks.heads --d-model 384          # a quicker first impression

Each way runs in a process of its own: the seconds are those of the measuring (and, on a busy machine
the steadier figure, of work of all cores together), the memory is its peak above what the
process had with the model loaded.

- **report**: `vizformer.analysis.corpus_heads`, all cores;
- **maps, same arithmetic**: `GPT2Model` of transformers, eager attention, `output_attentions=True`, the maps of all texts
  kept as it hands them out, then the measures of the report on them, layer by layer;
- **maps, head by head**: the same maps, each head's scores in numpy with singular values for the rank, as one writes it
  in a notebook.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch

from vizformer.analysis.corpus_heads import Corpus, head_report
from vizformer.analysis.corpus_heads.measures import MEASURES, measure_layer, targets
from vizformer.analysis.corpus_heads.sums import Sums
from vizformer.checkpoints import load

WAYS = ("report", "maps, same arithmetic", "maps, head by head")
MIB = 2**20


def texts(count: int, length: int, vocabulary: int) -> list[list[int]]:
    """Random token ids: what they say does not matter for time and memory."""
    generator = torch.Generator().manual_seed(0)
    found: list[list[int]] = torch.randint(0, vocabulary, (count, length), generator=generator).tolist()
    return found


def peak() -> int:
    """Bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def by_report(folder: Path, ids: list[list[int]]) -> Any:
    checkpoint = load(folder)
    corpus = Corpus.of([" ".join(map(str, row)) for row in ids])
    checkpoint.trace(ids=ids[0])  # whatever is made once is there

    def run() -> np.ndarray:
        report = head_report(checkpoint, corpus)
        assert report is not None
        return np.stack([report.kinds["decoder"].mean[name] for name in MEASURES])

    return run


def by_maps(folder: Path, ids: list[list[int]], *, each_head: bool) -> Any:
    from transformers import GPT2Model

    model = GPT2Model.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        model(torch.tensor(ids[:1]))

    def run() -> np.ndarray:
        kept = []
        with torch.inference_mode():
            for first in range(0, len(ids), 8):
                out = model(torch.tensor(ids[first : first + 8]), output_attentions=True)
                kept.append(out.attentions)
        return measured_one_by_one(kept, ids) if each_head else measured(kept, ids)

    return run


def measured(kept: list[tuple[torch.Tensor, ...]], ids: list[list[int]]) -> np.ndarray:
    n_layers, n_heads = len(kept[0]), kept[0][0].shape[1]
    sums, number = Sums.empty(n_layers, n_heads), 0
    visible = torch.ones(len(ids[0]), len(ids[0]), dtype=torch.bool).tril()
    for batch in kept:
        for item in range(len(batch[0])):
            row = torch.tensor(ids[number])
            wanted = targets(row, row, torch.zeros(len(row), dtype=torch.bool), cross=False, same=True)
            beside = []
            for layer, maps in enumerate(batch):
                sums.add_layer(number, layer, measure_layer(maps[item], visible, wanted))
                sums.add_corner(layer, maps[item], visible)
                beside.append(sums.beside_sinks(layer, maps[item], visible, torch.arange(len(row)) == 0))
            sums.add_likeness(beside)
            number += 1
    with np.errstate(invalid="ignore"):
        return sums.total / sums.count


def measured_one_by_one(kept: list[tuple[torch.Tensor, ...]], ids: list[list[int]]) -> np.ndarray:
    n_layers, n_heads = len(kept[0]), kept[0][0].shape[1]
    found, number = np.full((len(ids), len(MEASURES), n_layers, n_heads), np.nan), 0
    n = len(ids[0])
    visible = np.tril(np.ones((n, n), bool))
    i, j = np.arange(n)[:, None], np.arange(n)[None, :]
    for batch in kept:
        for item in range(len(batch[0])):
            row = np.array(ids[number])
            same = row[:, None] == row[None, :]
            after = np.zeros((n, n), bool)
            after[:, 1:] = same[:, :-1]
            keys = {
                "diagonal": i == j,
                "previous": j == i - 1,
                "first": (j == 0) & (i >= 0),
                "same_token": same,
                "duplicate_token": same & (j < i),
                "induction": after & (j < i),
            }
            for layer, maps in enumerate(batch):
                for head in range(n_heads):
                    pattern = maps[item, head].numpy()
                    values = found[number, :, layer, head]
                    for name, target in keys.items():
                        inside = target & visible
                        choice = inside.any(1) & (~target & visible).any(1)
                        if choice.any():
                            values[MEASURES.index(name)] = (pattern * inside).sum(1)[choice].mean()
                    safe = np.where(pattern > 0, pattern, 1.0)
                    values[MEASURES.index("entropy")] = -(pattern * np.log(safe)).sum(1)[1:].mean()
                    values[MEASURES.index("distance")] = (pattern * abs(i - j)).sum(1)[1:].mean()
                    singular = np.linalg.svd(pattern, compute_uv=False) ** 2
                    values[MEASURES.index("effective_rank")] = singular.sum() ** 2 / (singular**2).sum()
            number += 1
    with np.errstate(invalid="ignore"):
        known = np.isfinite(found).any(0)
        return np.where(known, np.nansum(found, axis=0) / np.isfinite(found).sum(0), np.nan)


@click.command()
@click.option("--d-model", default=768, show_default=True)
@click.option("--layers", default=12, show_default=True)
@click.option("--heads", default=12, show_default=True)
@click.option("--count", default=200, show_default=True, help="Texts.")
@click.option("--length", default=128, show_default=True, help="Tokens of each.")
@click.option("--way", type=click.Choice(WAYS), hidden=True)
@click.option("--folder", type=click.Path(path_type=Path), hidden=True)
def main(d_model: int, layers: int, heads: int, count: int, length: int, way: str | None, folder: Path | None) -> None:
    """Seconds and peak memory of each way, and whether they agree."""
    vocabulary = 1000
    if way is not None and folder is not None:
        ids = texts(count, length, vocabulary)
        run = by_report(folder, ids) if way == WAYS[0] else by_maps(folder, ids, each_head=way == WAYS[2])
        before, start, worked = peak(), time.perf_counter(), time.process_time()
        means = run()
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        click.echo(
            json.dumps(
                {"seconds": seconds, "worked": worked, "bytes": peak() - before, "means": np.nan_to_num(means).tolist()}
            )
        )
        return
    from transformers import GPT2Config, GPT2LMHeadModel

    with tempfile.TemporaryDirectory() as made:
        torch.manual_seed(0)
        config = GPT2Config(vocab_size=vocabulary, n_embd=d_model, n_layer=layers, n_head=heads, n_positions=length)
        model = GPT2LMHeadModel(config)
        for parameter in model.parameters():  # fresh weights attend evenly
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=2 * d_model**-0.5)
        model.save_pretrained(made)
        click.echo(
            "| way | seconds | of all cores | peak memory, MiB | largest difference |\n| --- | ---: | ---: | ---: | ---: |"
        )
        first = None
        for one in WAYS:
            command = [sys.executable, "-m", "tests.benchmarks.heads", "--way", one, "--folder", made]
            command += ["--count", str(count), "--length", str(length)]
            said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            means = np.array(said["means"])
            first = means if first is None else first
            difference = np.abs(means - first).max()
            click.echo(
                f"| {one} | {said['seconds']:.1f} | {said['worked']:.1f} | {said['bytes'] / MIB:.0f} | {difference:.1e} |"
            )


if __name__ == "__main__":
    main()

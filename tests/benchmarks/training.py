"""What a training step costs: ours, as the bundled translator is trained, against `torch.nn.Transformer` as usual.

    python -m tests.benchmarks.training                     # the table of README.md, and exit code 1 above the limit
    python -m tests.benchmarks.training --rounds 2 --tokens 1024

Forward, backward and optimizer of the bundled translator's shape, on the same sentence pairs:

- ours: bfloat16 autocast, batches of similar lengths, logits only where there is a target, freed memory kept, short
  attention without the fused kernel (vizformer/training/loss.py, loss.py; recipes/batches.py);
- theirs: float32, the same pairs in random order, padded to the longest of each batch, logits at every place,
  everything else at PyTorch's defaults.

Both see every pair once a round, in as many updates; reported is the time per real target token.  Each has a process of
its own (how memory is kept is a setting of the process), and they take turns, so that a machine that slows down slows
both.  The sentences are random tokens whose lengths are drawn as those of short everyday pairs (median 9 and 10
tokens with a long tail), so that no data is needed.
"""

import math
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import click
import torch
from torch import Tensor, nn

from recipes.batches import pair_batches
from recipes.loss import translation_loss
from tests.benchmarks.trace import processor
from vizformer.config import ModelConfig
from vizformer.freed_memory import keep_freed_memory
from vizformer.model import Transformer
from vizformer.model.positions import sinusoidal_encoding
from vizformer.training.loss import fast_short_attention

LIMIT = 0.35
SMOOTHING = 0.1
Pair = tuple[list[int], list[int]]
SHAPE = dict(
    vocab_size=7000,
    d_model=256,
    n_heads=4,
    d_ff=1024,
    n_encoder_layers=3,
    n_decoder_layers=3,
    scaled_embedding=True,
    dropout=0.3,
    pad_id=0,
    bos_id=1,
    eos_id=2,
)


class Usual(nn.Module):
    """`nn.Transformer` with tied, scaled embeddings and sinusoidal positions, as its tutorials have it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.core = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.core.encoder.norm = self.core.decoder.norm = None  # as ours
        self.dropout = nn.Dropout(config.dropout)
        self.positions: Tensor
        self.register_buffer("positions", sinusoidal_encoding(config.max_positions, config.d_model), persistent=False)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.embed(source), self.embed(target)  # [b, n, d_model], [b, m, d_model]
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        blank = source.eq(0)
        out = self.core(
            x, y, tgt_mask=mask, tgt_is_causal=True, src_key_padding_mask=blank, memory_key_padding_mask=blank
        )  # [b, m, d_model]
        return nn.functional.linear(out, self.embedding.weight)  # [b, m, vocab_size]

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.config.d_model) + self.positions[: ids.shape[1]]
        out: Tensor = self.dropout(x)
        return out


Epoch = Callable[[int], tuple[int, int]]
"""Trains on all pairs once, in the order of a seed; the updates and the real target tokens."""


@dataclass
class Side:
    """One of the two, in its process: a number goes in, an epoch later seconds, updates and tokens come out."""

    name: str
    process: BaseProcess
    pipe: Connection
    per_token: list[float] = field(default_factory=list)

    def time(self, number: int) -> None:
        self.pipe.send(number)
        seconds, tokens = self.pipe.recv()
        self.per_token.append(seconds / tokens)


def begin(name: str, make: Callable[..., Epoch], *arguments: object) -> Side:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there, make, *arguments), daemon=True)
    process.start()
    return Side(name, process, here)


def serve(pipe: Connection, make: Callable[..., Epoch], *arguments: object) -> None:
    epoch = make(*arguments)
    while True:
        number = pipe.recv()
        started = time.perf_counter()
        _, tokens = epoch(number)
        pipe.send((time.perf_counter() - started, tokens))


def sentences(count: int, vocab_size: int, seed: int = 0) -> list[Pair]:
    """Pairs of random tokens: log-normal lengths, source and target of a pair alike."""
    rng = random.Random(seed)

    def ids(length: float) -> list[int]:
        return [rng.randrange(3, vocab_size) for _ in range(max(2, min(80, round(length))))]

    pairs = []
    for _ in range(count):
        length = rng.lognormvariate(math.log(9), 0.45)
        pairs.append(([*ids(length), 2], [1, *ids(1.1 * length * rng.lognormvariate(0, 0.2)), 2]))
    return pairs


def ours(config: ModelConfig, pairs: Sequence[Pair], tokens: int, threads: int) -> Epoch:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    keep_freed_memory()
    model = Transformer(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def epoch(number: int) -> tuple[int, int]:
        updates = predicted = 0
        for batch in pair_batches(pairs, tokens_per_batch=tokens, pad_id=0, seed=number):
            with fast_short_attention(torch.device("cpu")):
                loss, real = translation_loss(model, batch, label_smoothing=SMOOTHING, autocast=True)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            updates, predicted = updates + 1, predicted + real
        return updates, predicted

    return epoch


def theirs(config: ModelConfig, pairs: Sequence[Pair], updates: int, threads: int) -> Epoch:
    """With `updates` an epoch, as many as ours has."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = Usual(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    criterion = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=SMOOTHING)

    def padded(rows: Sequence[list[int]]) -> Tensor:
        return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

    def epoch(number: int) -> tuple[int, int]:
        order = random.Random(number).sample(range(len(pairs)), len(pairs))
        size = math.ceil(len(pairs) / updates)
        done = predicted = 0
        for first in range(0, len(order), size):
            chosen = [pairs[i] for i in order[first : first + size]]
            source, target = padded([s for s, _ in chosen]), padded([t for _, t in chosen])
            logits = model(source, target[:, :-1])
            loss = criterion(logits.flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            done, predicted = done + 1, predicted + int(target[:, 1:].ne(0).sum())
        return done, predicted

    return epoch


@click.command()
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--pairs", "count", default=2000, show_default=True, type=click.IntRange(1), help="Pairs a round.")
@click.option("--tokens", default=4096, show_default=True, type=click.IntRange(1), help="Tokens a batch, both sides.")
@click.option("--threads", default=2, show_default=True, type=click.IntRange(1))
def main(rounds: int, count: int, tokens: int, threads: int) -> None:
    """Times training steps of both, in rounds in which each trains on the same pairs."""
    config = ModelConfig(**SHAPE)  # type: ignore[arg-type]
    pairs = sentences(count, config.vocab_size)
    updates = sum(1 for _ in pair_batches(pairs, tokens_per_batch=tokens, pad_id=0, seed=0))
    usual = begin("torch.nn.Transformer, float32", theirs, config, pairs, updates, threads)
    fast = begin("VizFormer", ours, config, pairs, tokens, threads)
    for number in range(rounds + 1):
        for side in (usual, fast):
            side.time(number)
            if number == 0:  # memory is claimed and kernels are chosen
                side.per_token.clear()
        print(f"  round {number} of {rounds} done", file=sys.stderr)
    for side in (usual, fast):
        side.process.terminate()
    ratio = statistics.median(a / b for a, b in zip(fast.per_token, usual.per_token, strict=True))
    real = sum(len(target) - 1 for _, target in pairs)
    print("| training | ms per update | µs per target token | target tokens/s | time, relative |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for side, relative in ((usual, 1.0), (fast, ratio)):
        seconds = statistics.median(side.per_token)
        print(
            f"| {side.name} | {1000 * seconds * real / updates:.0f} | {1e6 * seconds:.0f} | {1 / seconds:.0f} "
            f"| {relative:.2f} |"
        )
    print(
        f"\n{config.n_encoder_layers}+{config.n_decoder_layers} layers, d_model {config.d_model}, vocabulary "
        f"{config.vocab_size:,}; {count:,} pairs with {real:,} target tokens in {updates} updates a round; medians of "
        f"{rounds} rounds.\n{processor('cpu').rpartition(', ')[0]}, {threads} thread(s); torch {torch.__version__}."
    )
    verdict = "within" if ratio <= LIMIT else "ABOVE"
    print(f"ours / torch.nn.Transformer: {ratio:.3f}, {verdict} the limit of {LIMIT}")
    sys.exit(ratio > LIMIT)


if __name__ == "__main__":
    main()

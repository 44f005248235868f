"""How much memory the server takes: long texts on all pages, and thousands of page runs.

    python -m tests.benchmarks.memory texts              # 200 long texts, each on every page; exit code 1 above 1.5 GB
    python -m tests.benchmarks.memory runs               # 2,000 page runs of 20 readers, the memory every 100 runs
    python -m tests.benchmarks.memory runs --gc          # with Streamlit's own collection after every run, to compare

The server is a fresh one, started the way users start it; the readers speak Streamlit's protocol with it.
"""

import itertools
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tests.browser.driver import Server
from tests.reader import Reader

MIB = 2**20
LIMIT = 1.5e9  # bytes
PAGES = (
    "map",
    "tokens",
    "positions",
    "qkv",
    "heads",
    "masks",
    "block",
    "cross",
    "layer",
    "compare",
    "paper",
    "attention",
    "generation",
    "blanks",
    "lens",
    "what_if",
    "report",
    "head_report",
)
PARTS = {
    "map": ("drawing", "rnn"),  # (the gradients of "gru" take seconds and few bytes)
    "tokens": ("pieces", "merges", "lookup", "neighbours", "context", "norms"),
    "positions": ("waves", "clock", "distance", "shuffle", "function", "options", "longer"),
    "qkv": ("lookup", "arithmetic", "three", "scale"),
    "heads": ("split", "all", "reference", "groups"),
    "masks": ("kinds", "paint", "conventions", "mistakes", "leak"),
    "block": ("stream", "norm", "residual", "order", "ffn", "count"),
    "cross": ("three", "memory", "alignment", "without", "bottleneck"),
    "decoding": ("shift", "free", "ways", "bleu", "cache"),
    "training": ("loss", "smoothing", "rate", "adam", "gradient", "without", "dropout", "sharing", "classifier"),
    "costs": ("flash", "linear", "sparse", "family", "results"),
}
MODELS = (("zh-en", 380), ("stories", 380), ("cloze", 240))  # and characters, a token each; a link holds 400
CHARACTERS = "我有一只猫今天天气很好们起去公园看书吃饭喝水他不知道是谁她昨买了本的在学校里中文苹果花打电话给"


def text(number: int, length: int) -> str:
    """A text of its own for every number."""
    rng = random.Random(number)
    return "".join(rng.choice(CHARACTERS) for _ in range(length)) + "。"


def resident(process: int) -> int:
    """Bytes of a process that are in memory."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise click.ClickException("the server has ended")


@click.group()
def main() -> None:
    pass


@main.command()
@click.option("--count", default=200, show_default=True)
def texts(count: int) -> None:
    """Different long texts, each on all pages and, one part after the other, in all parts of the lessons."""
    with tempfile.TemporaryDirectory() as folder, Server(log=Path(folder, "log")) as server:
        process, most = server.process.pid, 0
        click.echo("| texts | memory, MiB | seconds |\n| ---: | ---: | ---: |")
        start = time.monotonic()
        with Reader(server.port, timeout=3600) as reader:
            for number in range(count):
                model, length = MODELS[number % len(MODELS)]
                for page in PAGES:
                    parts = PARTS.get(page, ("",))
                    part = parts[number // len(MODELS) % len(parts)]
                    reader.open(page, text=text(number, length), model=model, part=part, head=number % 4)
                    most = max(most, resident(process))
                if number % 20 == 19:
                    click.echo(f"| {number + 1} | {resident(process) / MIB:.0f} | {time.monotonic() - start:.0f} |")
        click.echo(f"\nmost: {most / MIB:.0f} MiB, limit {LIMIT / MIB:.0f} MiB")
    sys.exit(most > LIMIT)


@main.command()
@click.option("--count", default=2000, show_default=True)
@click.option("--readers", default=20, show_default=True)
@click.option("--gc", "collected", is_flag=True, help="With Streamlit's collection after every run.")
def runs(count: int, readers: int, collected: bool) -> None:
    """Page runs one after the other by several readers, each a new sentence of usual length on the next page."""
    environment = {**os.environ, "STREAMLIT_RUNNER_POST_SCRIPT_GC": "true"} if collected else None
    with tempfile.TemporaryDirectory() as folder, Server(log=Path(folder, "log"), env=environment) as server:
        click.echo("| page runs | memory, MiB | ms a run, median of 100 | slowest |\n| ---: | ---: | ---: | ---: |")
        lock, taken, numbers = threading.Lock(), list[float](), iter(range(count))

        def read(pages: Iterator[str]) -> None:
            with Reader(server.port, timeout=3600) as reader:
                while True:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    start = time.perf_counter()
                    reader.open(next(pages), text=text(number, 12))
                    with lock:
                        taken.append(1000 * (time.perf_counter() - start))
                        if len(taken) % 100 == 0:
                            here = taken[-100:]
                            click.echo(
                                f"| {len(taken)} | {resident(server.process.pid) / MIB:.0f} "
                                f"| {statistics.median(here):.0f} | {max(here):.0f} |"
                            )

        each = [
            threading.Thread(target=read, args=(itertools.islice(itertools.cycle(PAGES), i, None),))
            for i in range(readers)
        ]
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()


if __name__ == "__main__":
    main()

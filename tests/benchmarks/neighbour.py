"""What a class feels of one reader who asks for heavy work all the time.

    python -m tests.benchmarks.neighbour                   # 20 readers alone, beside long texts, beside a training
    python -m tests.benchmarks.neighbour --only text --minutes 1

The readers are those of `tests.benchmarks.classroom`.  Beside them one more reader, without a pause, opens texts of 4,000
tokens on the page Attention (another one each time, with the bundled stories given 4,096 positions), opens a checkpoint of
600 million parameters anew, or has a small Transformer trained.  Files that are put up are measured by
`tests.benchmarks.hostile --through uploads`.  The exit code is 1 where the others wait more than twice as long as alone.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click
import torch
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.benchmarks.classroom import ARRIVAL, Front, Pupil, attend, connected, serving
from tests.benchmarks.memory import MIB, resident
from tests.benchmarks.real_checkpoint import QWEN3
from tests.benchmarks.views import make
from tests.browser.driver import Server
from vizformer import Transformer, load
from vizformer.checkpoints import Checkpoint, save
from vizformer.config import ModelConfig

LARGE = "qwen3-shape"
Beside = tuple[list[float], list[float], float]  # seconds of the class and of the work, MiB of the server at the end
N_TOKENS = 4000
N_SOCKETS = 100
TIMES = 2.0  # as long as without the heavy reader, at most
WORDS = ["cat", "dog", "ball", "sun", "day", "tree", "bird", "girl", "boy", "car"]


def make_model(folder: Path) -> None:
    """The bundled "stories" as a model that reads 4,096 tokens (its rotations go on), in a folder of models."""
    stories = load("stories")
    model = Transformer(replace(stories.model.config, max_positions=4096))
    model.load_state_dict(stories.model.state_dict())
    save(Checkpoint("long", model, stories.tokenizer), folder / "long")


async def read_long_texts(server: Server, end: float, done: list[float]) -> None:
    """Opens one long text after the other."""
    rng = random.Random(0)
    async with connected(server) as socket:
        reader = Pupil(socket, rng)
        await reader.open("attention", model="models/long", text="The cat")
        box = reader.labels["Sentence"]
        while time.perf_counter() < end:
            text = " ".join(rng.choice(WORDS) for _ in range(N_TOKENS))
            reader.states[box] = WidgetState(id=box, string_value=text)
            answer = await reader.ask("")
            if answer.failed:
                raise RuntimeError(answer.failed)
            done.append(answer.seconds)


async def read_on_many_sockets(server: Server, end: float, done: list[float]) -> None:
    """One visitor with a hundred connections, each of which opens another text of 400 tokens as soon as it has one."""

    async def read(number: int) -> None:
        rng = random.Random(number)
        async with connected(server, local_addr=("127.0.0.2", 0)) as socket:
            reader = Pupil(socket, rng)
            while time.perf_counter() < end:
                text = " ".join(rng.choice(WORDS) for _ in range(400))
                answer = await reader.open("attention", model="models/long", text=text)
                if answer.failed:
                    raise RuntimeError(answer.failed)
                done.append(answer.seconds)

    reading = asyncio.gather(*map(read, range(N_SOCKETS)))
    with suppress(TimeoutError):
        await asyncio.wait_for(reading, end - time.perf_counter())


async def open_checkpoints(server: Server, end: float, done: list[float]) -> None:
    """Opens a model in the shape of Qwen3-0.6B, in bfloat16, again and again: its files have changed each time."""
    started = list(map(str, server.process.args))  # type: ignore[arg-type]
    folder = Path(started[started.index("--models") + 1], LARGE)
    async with connected(server) as socket:
        reader = Pupil(socket, random.Random(0))
        while time.perf_counter() < end:
            os.utime(folder / "config.json")
            answer = await reader.open("attention", model=f"models/{LARGE}", text="The cat")
            if answer.failed:
                raise RuntimeError(answer.failed)
            done.append(answer.seconds)


async def train(server: Server, end: float, done: list[float]) -> None:
    """Has a model trained for as long as the class works."""
    async with connected(server) as socket:
        reader = Pupil(socket, random.Random(0))
        start = time.perf_counter()
        await reader.open("train", run="train-000000000b")
        steps = next(name for name, one in reader.settings.items() if one.proto.label == "Steps")
        button = reader.labels["Train"]
        reader.states[steps] = WidgetState(id=steps, string_value="5000")
        reader.states[button] = WidgetState(id=button, trigger_value=True)
        await reader.ask("")
        while time.perf_counter() < end:
            with suppress(TimeoutError):
                ForwardMsg.FromString(await asyncio.wait_for(socket.recv(), 1.0))
        done.append(time.perf_counter() - start)


HEAVY: Mapping[str, Callable[[Server, float, list[float]], Awaitable[None]]] = {
    "text": read_long_texts,
    "sockets": read_on_many_sockets,
    "checkpoint": open_checkpoints,
    "training": train,
}


async def attend_beside(
    server: Server,
    what: str,
    n_readers: int,
    minutes: float,
    works: Mapping[str, Callable[[Server, float, list[float]], Awaitable[None]]] = HEAVY,
) -> tuple[list[float], list[float]]:
    """The seconds that the readers of a class waited, and those of the heavy work beside them."""
    done: list[float] = []
    class_ = asyncio.create_task(attend(Front(server.url, [server], [server.process.pid]), n_readers, 5.0, minutes))
    if what in works:
        await works[what](server, time.perf_counter() + 60 * minutes, done)
    found, _ = await class_
    if failed := [one.failed for answers in found.values() for one in answers if one.failed]:
        raise RuntimeError(failed[0])
    return sorted(one.seconds for kind, answers in found.items() if kind != ARRIVAL for one in answers), done


def slower_beside(works: Iterable[str], measure: Callable[[str], Beside]) -> bool:
    """Prints how long the class waits beside each work; whether beside one of them TIMES as long as beside the first."""
    click.echo("| beside | answers | p50, s | p95, s | most, s | answers of that | of them p50, s | MiB at the end |")
    click.echo("|---|---:|---:|---:|---:|---:|---:|---:|")
    p95s = []
    for what in works:
        seconds, done, memory = measure(what)
        p95s.append(seconds[int(0.95 * (len(seconds) - 1))])
        heavy = f"{len(done)} | {statistics.median(done):.1f}" if done else " | "
        click.echo(
            f"| {what} | {len(seconds)} | {statistics.median(seconds):.2f} | {p95s[-1]:.2f} | {seconds[-1]:.2f} "
            f"| {heavy} | {memory:.0f} |"
        )
    return max(p95s) > TIMES * p95s[0]


@click.command()
@click.option("--readers", "n_readers", default=20, show_default=True)
@click.option("--minutes", default=2.0, show_default=True)
@click.option("--only", default="", help="One of the heavy works.")
def main(n_readers: int, minutes: float, only: str) -> None:
    """Prints how long a class waits, alone and beside each heavy work."""
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder))
        if only in "checkpoint":
            make(Path(folder), ModelConfig.preset("llama-7b", **QWEN3), LARGE, torch.bfloat16)

        def beside(what: str) -> Beside:
            with serving("--models", folder) as server:
                seconds, done = asyncio.run(attend_beside(server, what, n_readers, minutes))
                return seconds, done, resident(server.process.pid) / MIB

        sys.exit(slower_beside(("nothing", *(one for one in HEAVY if only in one)), beside))


if __name__ == "__main__":
    main()

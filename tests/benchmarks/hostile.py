"""Forty readers while one of them opens files that are costly to read: how long the others wait, what memory it takes.

    python -m tests.benchmarks.hostile                     # the table of README.md; exit code 1 above a limit
    python -m tests.benchmarks.hostile --readers 10 --only "marks"

A fresh server is started the way users start it, with a folder of models (`--models`): each hostile file of
tests/checkpoints/hostile.py is a model there.  Readers speak Streamlit's own protocol over websockets; each asks for a
light page (the glossary) every few seconds, so that a wait is somebody else's doing.  Beside them the server is asked
whether it is well, twenty times a second: it answers that as soon as it has the interpreter.  Then one session opens
each file.  At the end the server is told to stop (SIGTERM).
"""

import asyncio
import itertools
import platform
import signal
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import click
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

from tests.browser.driver import Server
from tests.checkpoints import hostile

WAIT, ANSWER, MORE, STOP = 1.0, 2.0, 200.0, 5.0  # seconds for the others, for the answer; MiB; seconds to stop


@dataclass
class Waits:
    """The longest waits since they were last asked for."""

    health: float = 0.0
    pages: float = 0.0
    done: bool = False

    def taken(self) -> tuple[float, float]:
        found = self.health, self.pages
        self.health = self.pages = 0.0
        return found


async def run(socket: ClientConnection, page: str, **link: str) -> tuple[float, list[str]]:
    """One run of the app: seconds until it has finished, and the errors that the page shows."""
    ask = BackMsg()
    ask.rerun_script.page_name = page
    ask.rerun_script.query_string = urlencode(link)
    start = time.perf_counter()
    await socket.send(ask.SerializeToString())
    errors: list[str] = []
    while True:
        message = ForwardMsg.FromString(await asyncio.wait_for(socket.recv(), 120))
        if message.HasField("delta") and message.delta.new_element.HasField("alert"):
            alert = message.delta.new_element.alert
            if alert.format == alert.ERROR:
                errors.append(alert.body)
        ended = message.WhichOneof("type") == "script_finished"
        if ended and message.script_finished != message.FINISHED_EARLY_FOR_RERUN:
            return time.perf_counter() - start, errors


def opened(server: Server) -> connect:
    address = server.url.replace("http", "ws") + "/_stcore/stream"
    return connect(address, subprotocols=["streamlit"], max_size=None, open_timeout=60)  # type: ignore[list-item]


async def reader(server: Server, waits: Waits, number: int, every: float) -> None:
    await asyncio.sleep(every * number / 40)
    async with opened(server) as socket:
        while not waits.done:
            took, __ = await run(socket, "glossary")
            waits.pages = max(waits.pages, took)
            await asyncio.sleep(every)


def ask_for_health(server: Server, waits: Waits) -> None:
    while not waits.done:
        start = time.perf_counter()
        with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=120):
            waits.health = max(waits.health, time.perf_counter() - start)
        time.sleep(0.05)


def resident(process: int) -> float:
    """MiB that a process and those it has started have in memory now."""
    total = 0.0
    for one in [process, *children(process)]:
        try:
            with open(f"/proc/{one}/status") as lines:
                total += sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))) / 1024
        except OSError:
            continue
    return total


def children(process: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def write(root: Path, only: str) -> list[str]:
    """Each hostile file as a model of the server's folder; their names."""
    names = []
    for name, make in hostile.PICKLES.items():
        for wrap in (hostile.as_zip, hostile.as_legacy):
            names.append(called := f"{name} {wrap.__name__[3:]}")
            if only in called:
                (root / f"{called}.pt").write_bytes(wrap(make()))
    for name, change in hostile.TOKENIZERS.items():
        names.append(called := f"tokenizer {name}".replace(",", "").replace("^", " "))
        if only in called:
            folder = hostile.bare_model(root / called)
            (folder / "tokenizer.json").write_text(hostile.tokenizer(change()))
    return [name for name in names if only in name]


async def measure(server: Server, names: list[str], readers: int, every: float, row: Callable[..., None]) -> bool:
    waits, slow = Waits(), False
    others = [asyncio.create_task(reader(server, waits, n, every)) for n in range(readers)]
    watch = threading.Thread(target=ask_for_health, args=(server, waits))
    watch.start()
    try:
        async with opened(server) as socket:
            await run(socket, "report", model="zh-en")  # torch is there, and everybody has a page
            await asyncio.sleep(2 * every)
            waits.taken()
            await asyncio.sleep(2 * every)
            row("nobody opens anything", None, waits.taken(), 0.0)
            for name in names:
                model = f"models/{name}" if name.startswith("tokenizer") else f"models/{name}.pt"
                link = {"model": f"{model};n_heads=4;activation=gelu" if name.startswith("tokenizer") else model}
                before, peak, done = resident(server.process.pid), [0.0], threading.Event()

                def look(peak: list[float] = peak, done: threading.Event = done) -> None:
                    while not done.wait(0.02):
                        peak[0] = max(peak[0], resident(server.process.pid))

                looking = threading.Thread(target=look)
                looking.start()
                waits.taken()
                took, errors = await run(socket, "report", **link)
                again, __ = await run(socket, "report", **link)
                done.set()
                looking.join()
                found, more = waits.taken(), peak[0] - before
                refused = bool(errors) and not any("our mistake" in error for error in errors)
                row(name, (took, again), found, more, refused)
                slow |= max(found) > WAIT or took > ANSWER or more > MORE or not refused
    finally:
        waits.done = True
        watch.join()
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
    return slow


@click.command()
@click.option("--readers", default=40, show_default=True)
@click.option("--every", default=10.0, show_default=True, help="Seconds between two pages of a reader.")
@click.option("--only", default="", help="Files whose names contain this.")
def main(readers: int, every: float, only: str) -> None:
    def row(
        name: str, took: tuple[float, float] | None, waits: tuple[float, float], more: float, refused: bool = True
    ) -> None:
        first, again = (f"{seconds:.2f}" for seconds in took) if took else itertools.repeat("", 2)
        said = "" if took is None else "refused" if refused else "**opened**"
        click.echo(f"| {name} | {first} | {again} | {waits[0]:.2f} | {waits[1]:.2f} | {more:.0f} | {said} |")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "models")
        root.mkdir()
        names = write(root, only)
        command = (sys.executable, "-m", "vizformer", "--models", str(root))
        server = Server(command, log=Path(folder, "log.txt"))
        try:
            click.echo("| file | answer, s | again, s | longest wait: health, s | a reader's page, s | memory, MiB | |")
            click.echo("|---|---:|---:|---:|---:|---:|---|")
            slow = asyncio.run(measure(server, names, readers, every, row))
            start = time.perf_counter()
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(60)
            stopped = time.perf_counter() - start
        finally:
            server.stop()
    click.echo(
        f"\n{readers} readers, a page every {every:.0f} s; stopped {stopped:.1f} s after SIGTERM; "
        f"{platform.processor() or platform.machine()}"
    )
    sys.exit(bool(slow or stopped > STOP))


if __name__ == "__main__":
    main()

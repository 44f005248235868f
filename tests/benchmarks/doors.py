"""What a class feels of one visitor who tries to stop it, door by door.

    python -m tests.benchmarks.doors                       # 40 readers alone, then beside each door
    python -m tests.benchmarks.doors --only redis --minutes 1

The readers are those of `tests.benchmarks.classroom`; a fresh server for each door.  The visitor, who has an address of
his own, tries without a pause:

    uploads    twenty files at once that announce 512 MB each and send one byte a second
    programs   ten tabs, each with attention of another program: 120 KB that become 477 MiB of numbers
    rooms      a new class every moment, and a pointer with 400 digits in each
    trainings  31 tabs that have a model trained
    sockets    a hundred tabs with a new text of 400 tokens each
    origins    connections of another site's page, and requests for another host
    redis      nothing: the Redis that holds the classes takes what it is sent, and does not answer

The exit code is 1 where the others wait more than twice as long as alone.
"""

import asyncio
import io
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import click
import numpy as np
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.benchmarks import hostile, room
from tests.benchmarks.classroom import connected, serving
from tests.benchmarks.memory import MIB, resident
from tests.benchmarks.neighbour import Beside, attend_beside, make_model, read_on_many_sockets, slower_beside, train
from tests.browser.driver import Server
from tests.redis_server import RedisServer

ELSEWHERE = ("127.0.0.2", 0)  # where the visitor comes from


async def announce_uploads(server: Server, end: float, done: list[float]) -> None:
    address = urlsplit(server.url)

    async def announce(number: int) -> None:
        while time.perf_counter() < end:
            async with connected(server, local_addr=ELSEWHERE) as socket:
                form = await hostile.run(socket, "report", model="zh-en")
                path = (await hostile.place_for(socket, form, "model.safetensors")).upload_url
                cookie = await asyncio.to_thread(hostile.cookie, server)
                start = time.perf_counter()
                reader, writer = await asyncio.open_connection(address.hostname, address.port, local_addr=ELSEWHERE)
                head = (
                    f"PUT {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {512 * 2**20}\r\n"
                    "Content-Type: multipart/form-data; boundary=end\r\n"
                    f"Cookie: {cookie}\r\nX-Xsrftoken: {hostile.token(cookie)}\r\n\r\n"
                    '--end\r\nContent-Disposition: form-data; name="file"; filename="model.safetensors"\r\n\r\n'
                )
                writer.write(head.encode())
                with suppress(OSError):
                    while not reader.at_eof() and not reader._buffer:  # type: ignore[attr-defined]  # no answer so far
                        writer.write(b"-")
                        await writer.drain()
                        await asyncio.sleep(1.0)
                writer.close()
                done.append(time.perf_counter() - start)

    await _until(end, *map(announce, range(20)))


async def hand_in_programs(server: Server, end: float, done: list[float]) -> None:
    file = io.BytesIO()
    maps = np.zeros((12, 12, 930, 930), np.uint8)
    maps[..., 0] = 1
    np.savez_compressed(file, maps=maps)
    content = file.getvalue()

    async def hand_in(number: int) -> None:
        while time.perf_counter() < end:
            async with connected(server, local_addr=ELSEWHERE) as socket:
                form = await hostile.run(socket, "elsewhere")
                done.append((await hostile.hand_in(socket, server, "elsewhere", form, "maps.npz", content)).seconds)

    await _until(end, *map(hand_in, range(10)))


async def begin_rooms(server: Server, end: float, done: list[float]) -> None:
    async def begin(number: int) -> None:
        while time.perf_counter() < end:
            start = time.perf_counter()
            async with connected(server, local_addr=ELSEWHERE) as socket:
                try:
                    code, secret = await room.begin(room.Member(socket, random.Random(number)))
                except RuntimeError:  # no class was started: he has as many as one visitor may have
                    code, secret = "ABCDEF", "x"
                at = f'{{"secret": "{secret}", "at": {{"box": "st-key-heads", "x": {"9" * 400}, "y": 0.5}}}}'
                await room.asked(server, "POST", f"/_vizformer/room/{code}/pointer", at.encode())
                done.append(time.perf_counter() - start)

    await _until(end, *map(begin, range(10)))


async def train_in_tabs(server: Server, end: float, done: list[float]) -> None:
    await _until(end, *(train(server, end, done) for _ in range(31)))


async def come_from_elsewhere(server: Server, end: float, done: list[float]) -> None:
    address = server.url.replace("http", "ws") + "/_stcore/stream"

    async def come(number: int) -> None:
        while time.perf_counter() < end:
            start = time.perf_counter()
            with suppress(WebSocketException, OSError):
                async with connect(address, subprotocols=["streamlit"], origin="https://example.org"):  # type: ignore[list-item, arg-type]
                    raise RuntimeError("a page of another site was let in")
            done.append(time.perf_counter() - start)

    await _until(end, *map(come, range(10)))


async def wait(server: Server, end: float, done: list[float]) -> None:
    await asyncio.sleep(max(0.0, end - time.perf_counter()))


async def _until(end: float, *work: Awaitable[None]) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*work), end - time.perf_counter())


DOORS: Mapping[str, Callable[[Server, float, list[float]], Awaitable[None]]] = {
    "uploads": announce_uploads,
    "programs": hand_in_programs,
    "rooms": begin_rooms,
    "trainings": train_in_tabs,
    "sockets": read_on_many_sockets,
    "origins": come_from_elsewhere,
    "redis": wait,
}


def beside(door: str, models: Path, n_readers: int, minutes: float) -> Beside:
    with ExitStack() as stack:
        if door == "redis":
            redis = RedisServer(Path(stack.enter_context(tempfile.TemporaryDirectory())))
            stack.callback(redis.kill)
            os.environ["VIZFORMER_REDIS_URL"] = redis.url
            stack.callback(os.environ.pop, "VIZFORMER_REDIS_URL")
        server = stack.enter_context(serving("--models", str(models)))
        if door == "redis":
            redis.hang()
        seconds, done = asyncio.run(attend_beside(server, door, n_readers, minutes, DOORS))
        return seconds, done, resident(server.process.pid) / MIB


@click.command()
@click.option("--readers", "n_readers", default=40, show_default=True)
@click.option("--minutes", default=1.0, show_default=True)
@click.option("--only", default="", help="Doors whose names contain this.")
def main(n_readers: int, minutes: float, only: str) -> None:
    """Prints how long a class waits, alone and beside each door."""
    with tempfile.TemporaryDirectory() as folder:
        make_model(Path(folder))
        doors = ("nothing", *(one for one in DOORS if only in one))
        sys.exit(slower_beside(doors, lambda door: beside(door, Path(folder), n_readers, minutes)))


if __name__ == "__main__":
    main()

"""A room of followers: what a move of the teacher and a place of the pointer cost the server, and when they are seen.

    python -m tests.benchmarks.room                                    # 40 followers, 20 moves, 100 places of the pointer
    python -m tests.benchmarks.room --followers 10 --moves 5 --places 20

The teacher and the followers speak the protocols of the browser with a fresh server: Streamlit's, the request that waits for
the next move (`classroom.requests`), and the stream of the pointer's places (there too).  Of six moves two are
another head of the page Attention, two another sentence, and two another page.  A move is seen when the run that shows it
has ended in a follower's tab; a place is seen when a follower's stream tells it.  The client runs on the same machine, so
that latencies are upper bounds; the processor time is the server's alone.
"""

import asyncio
import json
import random
import re
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import click
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.benchmarks.classroom import Pupil, connected, sentence, serving, worked
from tests.browser.driver import Server

EVERY = 0.12  # seconds between two places, as components/js/own_pointer.js has it
PATIENCE = 120.0  # seconds
TEXT = "我有一只猫。"
PAGES = ("positions", "attention")
_COOKIE = re.compile(r"vizformer-class=([A-Z2-9]{6})\.([\w-]+)")


@dataclass
class Member(Pupil):
    """Somebody of the class: a tab that also knows its boxes, and what the page has the browser remember."""

    found: dict[str, tuple[str, str]] = field(default_factory=dict)  # key or label -> id, fragment
    cookie: str = ""
    finished: list[float] = field(default_factory=list)  # when each run ended

    async def run(self, fragment: str = "", *states: WidgetState) -> None:
        """Has the page (or a fragment) run with widgets as they are now."""
        self.states.update({state.id: state for state in states})
        ask = BackMsg()
        ask.rerun_script.query_string = self.query
        if fragment or self.opened:
            ask.rerun_script.page_script_hash, ask.rerun_script.fragment_id = self.opened, fragment
        else:
            ask.rerun_script.page_name = self.page
        ask.rerun_script.widget_states.widgets.extend(self.states.values())
        for state in states:
            if state.WhichOneof("value") in ("trigger_value", "json_trigger_value"):
                self.states.pop(state.id)
        await self.socket.send(ask.SerializeToString())
        await self.ended()

    async def ended(self) -> None:
        """Reads until a run has ended."""
        while True:
            message = ForwardMsg.FromString(await asyncio.wait_for(self.socket.recv(), PATIENCE))
            kind = message.WhichOneof("type")
            if kind == "delta":
                self._remember(message)
            elif kind == "navigation":
                self.opened = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "script_finished" and message.script_finished != message.FINISHED_EARLY_FOR_RERUN:
                self.finished.append(time.perf_counter())
                return

    def _remember(self, message: ForwardMsg) -> None:
        delta = message.delta
        if delta.WhichOneof("type") == "add_block" and delta.add_block.WhichOneof("type") == "popover":
            block = delta.add_block.popover
            self.found[block.label] = block.id, delta.fragment_id
        kind = delta.new_element.WhichOneof("type") or ""
        if kind == "html" and (known := _COOKIE.search(delta.new_element.html.body)):
            self.cookie = known[0]
        elif kind == "button":
            self.found[delta.new_element.button.label] = delta.new_element.button.id, delta.fragment_id
        elif kind == "bidi_component":
            name = delta.new_element.bidi_component.id
            self.found[name.split("-", 2)[-1]] = name, delta.fragment_id
        elif kind == "exception":
            raise RuntimeError(delta.new_element.exception.message)


@dataclass
class Seen:
    """What was measured."""

    moves: list[float] = field(default_factory=list)  # seconds until a follower saw a move
    moves_cpu: float = 0.0  # seconds of the server, of all moves
    asked: int = 0
    places: list[float] = field(default_factory=list)
    places_cpu: float = 0.0
    idle_cpu: float = 0.0  # a second with everybody listening


# --- what a browser asks beside the page ------------------------------------------------------------------------------


async def asked(server: Server, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    """One request with an answer of a known length."""
    reader, writer = await _sent(server, method, path, body)
    try:
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)).decode()
        length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
        return int(head.split()[1]), await reader.readexactly(int(length[1]) if length else 0)
    finally:
        writer.close()


async def places(server: Server, path: str) -> AsyncIterator[str]:
    """What a stream tells, until it is closed."""
    while True:
        reader, writer = await _sent(server, "GET", path)
        try:
            while line := await asyncio.wait_for(reader.readline(), PATIENCE):
                if line.startswith(b"data: {"):
                    yield line[6:].decode()
                elif line.startswith(b"event: again"):
                    break
        finally:
            writer.close()


async def _sent(
    server: Server, method: str, path: str, body: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"{method} {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    await writer.drain()
    return reader, writer


# --- a room -----------------------------------------------------------------------------------------------------------


async def begin(teacher: Member) -> tuple[str, str]:
    """Starts a class as a teacher does; its code and secret."""
    teacher.page, teacher.query = "attention", f"model=zh-en&text={TEXT}"
    await teacher.run()
    name, fragment = teacher.found["Class"]
    await teacher.run(fragment, WidgetState(id=name, bool_value=True))
    name, fragment = teacher.found["Start a class"]
    await teacher.run(fragment, WidgetState(id=name, trigger_value=True))
    if not teacher.cookie:
        raise RuntimeError("no class was started")
    known = _COOKIE.fullmatch(teacher.cookie)
    assert known is not None
    return known[1], known[2]


async def follow(member: Member, server: Server, code: str, version: int) -> None:
    """Follows, until it is cancelled: waits for a move, and has the page show it."""
    while True:
        status, body = await asked(server, "GET", f"/_vizformer/room/{code}?after={version}")
        if status != 200:
            raise RuntimeError(f"the room answers {status}")
        now = json.loads(body)["version"]
        if now > version:
            version = now
            name, fragment = member.found["class.ear"]
            report = json.dumps({"moved": {"version": version}})
            await member.run(fragment, WidgetState(id=name, json_value=report))


async def watch(server: Server, code: str, sent: dict[float, float], found: list[float]) -> None:
    """Watches the pointer, until it is cancelled."""
    async for told in places(server, f"/_vizformer/room/{code}/pointer"):
        if (start := sent.get(json.loads(told)["x"])) is not None:
            found.append(time.perf_counter() - start)


async def measure(server: Server, n_followers: int, n_moves: int, n_places: int) -> Seen:
    found, process = Seen(), server.process.pid
    async with AsyncExitStack() as stack:

        async def member(number: int) -> Member:
            return Member(await stack.enter_async_context(connected(server)), random.Random(number))

        teacher = await member(0)
        code, secret = await begin(teacher)
        class_ = [await member(number) for number in range(1, n_followers + 1)]
        for one in class_:
            one.page, one.query = "", f"room={code}"
            await one.run()
        status, body = await asked(server, "GET", f"/_vizformer/room/{code}?after=0")
        assert status == 200
        version = json.loads(body)["version"]
        sent: dict[float, float] = {}
        tasks = [asyncio.create_task(follow(one, server, code, version)) for one in class_]
        tasks += [asyncio.create_task(watch(server, code, sent, found.places)) for _ in class_]
        try:
            await _rest(tasks, 2.0)
            before = worked(process)
            await _rest(tasks, 5.0)
            found.idle_cpu = (worked(process) - before) / 5
            await _move(teacher, class_, tasks, n_moves, process, found)
            await _point(server, tasks, code, secret, n_places, sent, process, found)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def _rest(tasks: list[asyncio.Task[None]], seconds: float) -> None:
    """Waits; what has gone wrong meanwhile is raised."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def _move(
    teacher: Member, class_: list[Member], tasks: list[asyncio.Task[None]], moves: int, process: int, found: Seen
) -> None:
    before = worked(process)
    for number in range(moves):
        runs = [len(one.finished) for one in class_]
        start = time.perf_counter()
        if number % 3 == 2:
            teacher.page, teacher.opened = PAGES[number // 3 % 2], ""
            teacher.query, teacher.states = f"model=zh-en&text={sentence(teacher.rng)}", {}
            await teacher.run()
        else:
            if number // 3 % 2 == 0:
                name, fragment = teacher.found["heads"]
                chosen = {"layer": number % 3, "head": number % 4, "query": number % 5, "seq": time.time_ns() // 10**6}
                await teacher.run(fragment, WidgetState(id=name, json_value=json.dumps({"selected": chosen})))
            else:
                # (never one that was typed before: an address that the page has left counts as out of date)
                teacher.query, teacher.opened = f"model=zh-en&text={sentence(teacher.rng)}", ""
                await teacher.run()
        end = time.perf_counter() + PATIENCE
        while any(len(one.finished) == had for one, had in zip(class_, runs, strict=True)):
            if time.perf_counter() > end:
                late = [i for i, (one, had) in enumerate(zip(class_, runs, strict=True)) if len(one.finished) == had]
                raise RuntimeError(f"move {number} is not seen by {late}")
            await _rest(tasks, 0.05)
        found.moves += [one.finished[had] - start for one, had in zip(class_, runs, strict=True)]
        found.asked += 1
    found.moves_cpu = worked(process) - before


async def _point(
    server: Server,
    tasks: list[asyncio.Task[None]],
    code: str,
    secret: str,
    n: int,
    sent: dict[float, float],
    process: int,
    found: Seen,
) -> None:
    before = worked(process)
    for number in range(n):
        x = round((number + 1) / (n + 1), 4)
        sent[x] = time.perf_counter()
        at = {"box": "st-key-heads", "x": x, "y": 0.5}
        body = json.dumps({"secret": secret, "at": at}).encode()
        status, _ = await asked(server, "POST", f"/_vizformer/room/{code}/pointer", body)
        assert status == 204
        await _rest(tasks, max(0.0, EVERY - (time.perf_counter() - sent[x])))
    await _rest(tasks, 1.0)
    found.places_cpu = worked(process) - before


@click.command()
@click.option("--followers", default=40, show_default=True)
@click.option("--moves", default=20, show_default=True)
@click.option("--places", "n_places", default=100, show_default=True, help="Of the pointer.")
def main(followers: int, moves: int, n_places: int) -> None:
    """A room of followers."""
    with serving() as server:
        found = asyncio.run(measure(server, followers, moves, n_places))
    click.echo(f"{followers} followers; listening costs the server {1000 * found.idle_cpu:.1f} ms a second")
    click.echo("| what | how many | seen | server, ms each | and follower | seen after, ms: p50 | p95 | most |")
    click.echo("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, n, late, seconds in (
        ("a move", found.asked, found.moves, found.moves_cpu),
        ("a place of the pointer", n_places, found.places, found.places_cpu),
    ):
        each, order = 1000 * seconds / n, sorted(late)
        p95, most = order[int(0.95 * (len(order) - 1))], order[-1]
        told = (statistics.median(order), p95, most)
        times = " | ".join(f"{1000 * one:.0f}" for one in told)
        click.echo(f"| {name} | {n} | {len(late)} | {each:.1f} | {each / followers:.2f} | {times} |")


if __name__ == "__main__":
    main()

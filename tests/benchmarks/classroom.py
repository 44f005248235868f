"""A class on one server: how long forty readers wait, and what each page costs the server.

    python -m tests.benchmarks.classroom costs                    # processor time of the server per answer, page by page
    python -m tests.benchmarks.classroom readers                  # 40 readers for two minutes; exit code 1 above a limit
    python -m tests.benchmarks.classroom readers --readers 20 --minutes 30     # a soak; memory every minute
    python -m tests.benchmarks.classroom readers --workers 2                   # a server with two processes
    python -m tests.benchmarks.classroom readers --nginx                       # two servers with nginx before them

The readers speak Streamlit's protocol with a fresh server, started the way users start it.  Each asks every five seconds,
from one beginning to the next: in 40 of 100 for another head, step or setting of the part it looks at; in 10 for another
part of the lesson; in 30 for a new sentence, a third of which is the one that everybody types; in 20 for another page.
They all arrive within the first five seconds; how long that takes is told by itself.  An answer takes from the question to
the end of its run; the client runs on the same machine.
"""

import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

from tests import nginx
from tests.benchmarks.memory import CHARACTERS, MIB, PARTS, resident
from tests.browser.driver import Server

P50, P95, INSIDE, RATE = (
    0.3,
    0.8,
    0.1,
    8.0,
)  # seconds: of all, of all, of what is inside a part (median); answers a second
PLACES = [
    ("start", ""),
    ("attention", ""),
    ("generation", ""),
    ("blanks", ""),
    ("layer", ""),
    ("compare", ""),
    ("paper", ""),
    *((page, part) for page, parts in PARTS.items() for part in parts),
]
MODELS = {"blanks": "cloze"}
ARRIVAL = "arrival, all within five seconds"  # not among "all"
SHARED = "我们今天去公园看书。"  # what everybody types
KINDS = ("selectbox", "slider", "checkbox", "button_group")
TYPED = ("text_input", "number_input", "button")
TABS = "lesson.part."
FIRST = ("view.head", "view.step", "heads", "player")  # the settings that readers turn most
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Setting:
    """A widget of the page, as the server described it."""

    name: str
    kind: str
    fragment: str
    proto: Any

    @property
    def key(self) -> str:
        return self.name.split("-", 2)[-1]

    def turned(self, rng: random.Random) -> WidgetState | None:
        """The widget at another value; None where it has only one."""
        state = WidgetState(id=self.name)
        if self.kind == "selectbox":
            if len(self.proto.options) < 2:
                return None
            state.string_value = rng.choice(self.proto.options)
        elif self.kind == "checkbox":
            state.bool_value = rng.random() < 0.5
        elif self.kind == "slider" and self.proto.options:  # words on a slider
            state.string_array_value.data.append(rng.choice(self.proto.options))
        elif self.kind == "slider":
            steps = round((self.proto.max - self.proto.min) / (self.proto.step or 1))
            state.double_array_value.data.append(self.proto.min + rng.randint(0, steps) * self.proto.step)
        elif self.kind == "button_group":
            options = [option.content for option in self.proto.options]
            if len(options) < 2 or self.proto.click_mode:  # (several at once)
                return None
            state.string_array_value.data.append(rng.choice(options))
        else:  # a component: what a click in it reports
            chosen: dict[str, object] = {"layer": rng.randrange(4), "head": rng.randrange(8), "query": rng.randrange(5)}
            if self.key == "player":
                chosen = {"site": "cross", "step": rng.randrange(4), **chosen}
            state.json_value = json.dumps({"selected": {**chosen, "seq": time.time_ns() // 10**6}})
        return state


@dataclass
class Answer:
    """One answer: its seconds, its bytes, and whether it was an error."""

    seconds: float = 0.0
    size: int = 0
    failed: str = ""


@dataclass
class Pupil:
    """A reader with a browser tab, and what stands in it."""

    socket: ClientConnection
    rng: random.Random
    page: str = ""
    query: str = ""
    opened: str = ""  # the hash of that page
    settings: dict[str, Setting] = field(default_factory=dict)
    states: dict[str, WidgetState] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # of what is typed and pressed -> its name

    async def open(self, page: str, **link: str) -> Answer:
        """Opens an address, as a click on a link does."""
        self.page, self.query = page, urlencode({name: value for name, value in link.items() if value})
        self.settings.clear()
        self.states.clear()
        return await self.ask("")

    def turnable(self) -> list[Setting]:
        """The settings inside a part; those that readers turn most come first and alone where there are any."""
        inside = [one for one in self.settings.values() if one.fragment and not one.key.startswith(("ask.", TABS))]
        most = [one for one in inside if one.key in FIRST]
        return most or [one for one in inside if one.kind in KINDS]

    async def another_part(self) -> Answer | None:
        """Another part of the same lesson; None on a page that is no lesson."""
        for setting in self.settings.values():
            if setting.key.startswith(TABS) and (state := setting.turned(self.rng)) is not None:
                self.states[setting.name] = state
                self.settings.clear()
                return await self.ask(setting.fragment)
        return None

    async def turn(self) -> Answer | None:
        """Another head, step or setting of the part; None where there is nothing to turn."""
        choices = self.turnable()
        self.rng.shuffle(choices)
        for setting in choices:
            if (state := setting.turned(self.rng)) is not None:
                self.states[setting.name] = state
                return await self.ask(setting.fragment)
        return None

    async def ask(self, fragment: str) -> Answer:
        """Has the page (or one fragment of it) run with the widgets as they are."""
        ask = BackMsg()
        ask.rerun_script.query_string = self.query
        if fragment:  # as browsers do: the page that is open, by its hash
            ask.rerun_script.page_script_hash, ask.rerun_script.fragment_id = self.opened, fragment
        else:
            ask.rerun_script.page_name = self.page
        ask.rerun_script.widget_states.widgets.extend(self.states.values())
        start = time.perf_counter()
        await self.socket.send(ask.SerializeToString())
        found = Answer()
        while True:
            raw = await asyncio.wait_for(self.socket.recv(), 120)
            message = ForwardMsg.FromString(raw)
            found.size += len(raw)
            kind = message.WhichOneof("type")
            if kind == "delta":
                self._note(message, found)
            elif kind == "navigation":
                self.opened = message.navigation.page_script_hash
            elif kind == "page_info_changed":
                self.query = message.page_info_changed.query_string
            elif kind == "script_finished" and message.script_finished != message.FINISHED_EARLY_FOR_RERUN:
                found.seconds = time.perf_counter() - start
                return found

    def _note(self, message: ForwardMsg, found: Answer) -> None:
        element = message.delta.new_element
        kind = element.WhichOneof("type") or ""
        proto = getattr(element, kind) if kind else None
        if kind in TYPED:
            self.labels[proto.label] = proto.id  # type: ignore[union-attr]
        if kind == "exception" or (kind == "alert" and "our mistake" in element.alert.body):
            found.failed = str(proto)[:300]
        elif kind in KINDS or (kind == "bidi_component" and proto.id.split("-", 2)[-1] in FIRST):  # type: ignore[union-attr]
            self.settings[proto.id] = Setting(proto.id, kind, message.delta.fragment_id, proto)  # type: ignore[union-attr]


def connected(server: "Server | Front", **options: Any) -> connect:
    address = server.url.replace("http", "ws") + "/_stcore/stream"
    options = {"max_size": None, "open_timeout": 60, "compression": None, **options}
    return connect(address, subprotocols=["streamlit"], **options)  # type: ignore[list-item]


def sentence(rng: random.Random) -> str:
    return "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(5, 9))) + "。"


def link(page: str, part: str, text: str) -> dict[str, str]:
    return {"model": MODELS.get(page, ""), "part": part, "text": text}


def worked(process: int) -> float:
    """Seconds of processor time that a process, and those that it has started, have taken so far."""
    seconds = 0.0
    for one in (process, *started_by(process)):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / TICK
    return seconds


def started_by(process: int) -> list[int]:
    """The processes that a process has started itself: with several workers, these and HAProxy."""
    return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def memory(server: Server) -> str:
    """What the server has in memory; of several processes each, what is shared counted in parts (PSS), and all."""
    if not (children := started_by(server.process.pid)):
        return f"{resident(server.process.pid) / MIB:.0f} MiB"
    each: list[float] = []
    for process in (server.process.pid, *children):
        with suppress(OSError):  # a training has ended in the meantime
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            each += [int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")]
    return f"{sum(each):.0f} MiB ({' + '.join(f'{one:.0f}' for one in each)})"


@dataclass
class Front:
    """Where readers ask, and the processes that answer."""

    url: str
    servers: list[Server]
    processes: list[int]

    def worked(self) -> float:
        """Seconds of processor time that all of it has taken so far."""
        return sum(map(worked, self.processes))

    def memory(self) -> str:
        return ", ".join(map(memory, self.servers))


@contextmanager
def fronted(n_workers: int, *, behind_nginx: bool) -> Iterator[Front]:
    """A server with its workers; or two servers of one each with nginx before them, as in deploy/."""
    with ExitStack() as stack:
        if not behind_nginx:
            server = stack.enter_context(serving("--workers", str(n_workers)))
            yield Front(server.url, [server], [server.process.pid])
            return
        servers = [stack.enter_context(serving()) for _ in range(2)]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url, process = stack.enter_context(nginx.before(folder, servers))
        yield Front(url, servers, [process, *(one.process.pid for one in servers)])


@contextmanager
def serving(*options: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.txt")
        server = Server((sys.executable, "-m", "vizformer", *options), log=log)
        try:
            yield server
        except RuntimeError:
            click.echo(log.read_text()[-3000:], err=True)
            raise
        finally:
            server.stop()


# --- what a page costs ------------------------------------------------------------------------------------------------


async def cost(server: Server, page: str, part: str, repeats: int) -> tuple[float, float | None, float, float | None]:
    """Server milliseconds and kilobytes of a new sentence, and of another setting inside the part."""
    rng = random.Random(0)
    async with connected(server) as socket:
        pupil = Pupil(socket, rng)
        for _ in range(2):  # whatever is loaded, drawn or computed once
            await pupil.open(page, **link(page, part, sentence(rng)))
            await pupil.turn()
        before, answers = worked(server.process.pid), []
        for _ in range(repeats):
            answers.append(await pupil.open(page, **link(page, part, sentence(rng))))
        whole = (worked(server.process.pid) - before) / repeats
        turns: list[Answer] = []
        before = worked(server.process.pid)
        while len(turns) < repeats and (answer := await pupil.turn()) is not None:
            turns.append(answer)
        inside = (worked(server.process.pid) - before) / len(turns) if turns else None
    for answer in (*answers, *turns):
        if answer.failed:
            raise RuntimeError(f"{page} {part}: {answer.failed}")
    sizes = [statistics.fmean(one.size for one in some) / 1000 if some else None for some in (answers, turns)]
    return whole * 1000, None if inside is None else inside * 1000, sizes[0] or 0.0, sizes[1]


@click.group()
def main() -> None: ...


@main.command()
@click.option("--repeats", default=20, show_default=True)
@click.option("--only", default="", help="Places whose page and part contain this.")
def costs(repeats: int, only: str) -> None:
    """Processor time of the server per answer, page by page."""
    click.echo("| page | part | new sentence, ms | kB | another setting, ms | kB |")
    click.echo("|---|---|---:|---:|---:|---:|")
    wholes, insides = [], []
    with serving() as server:
        for page, part in PLACES:
            if only not in f"{page} {part}":
                continue
            whole, inside, size, size_inside = asyncio.run(cost(server, page, part, repeats))
            wholes.append(whole)
            told = ("", "") if inside is None else (f"{inside:.0f}", f"{size_inside:.0f}")
            insides += [] if inside is None else [inside]
            click.echo(f"| {page} | {part} | {whole:.0f} | {size:.0f} | {told[0]} | {told[1]} |")
    click.echo(f"| mean | | {statistics.fmean(wholes):.0f} | | {statistics.fmean(insides or [0]):.0f} | |")


# --- a class ----------------------------------------------------------------------------------------------------------


async def learn(server: Front, number: int, every: float, end: float, found: dict[str, list[Answer]]) -> None:
    """One reader, until the end."""
    rng = random.Random(number)
    places = itertools.cycle(rng.sample(PLACES, len(PLACES)))
    await asyncio.sleep(every * rng.random())
    async with connected(server) as socket:
        pupil = Pupil(socket, rng)
        (page, part), text = next(places), sentence(rng)
        found[ARRIVAL].append(await pupil.open(page, **link(page, part, text)))
        await asyncio.sleep(every * rng.uniform(0.8, 1.2))
        while time.perf_counter() < end:
            start, drawn, answer = time.perf_counter(), rng.random(), None
            if drawn < 0.5:
                kind, answer = "another part", await pupil.another_part() if drawn < 0.1 else None
                if answer is None:
                    kind, answer = "inside a part", await pupil.turn()
            if drawn >= 0.8:
                kind, (page, part) = "another page", next(places)
                answer = await pupil.open(page, **link(page, part, text))
            elif answer is None:
                kind, text = "new sentence", SHARED if rng.random() < 1 / 3 else sentence(rng)
                answer = await pupil.open(page, **link(page, part, text))
            found[kind].append(answer)
            await asyncio.sleep(max(0.0, every * rng.uniform(0.8, 1.2) - (time.perf_counter() - start)))


async def attend(
    server: Front, n_readers: int, every: float, minutes: float, n_workers: int = 1
) -> tuple[dict[str, list[Answer]], float]:
    """The answers, and the processor time that they took, from the arrival on."""
    found: dict[str, list[Answer]] = defaultdict(list)
    async with AsyncExitStack() as stack:  # whatever is loaded or computed at the first visit, of each worker
        for one in server.servers * n_workers:  # (those before stay connected, so that each comes to another worker)
            first = Pupil(await stack.enter_async_context(connected(one)), random.Random(0))
            for page, part in PLACES:
                await first.open(page, **link(page, part, SHARED))
    before, end = server.worked(), time.perf_counter() + 60 * minutes
    class_ = asyncio.gather(*(learn(server, number, every, end, found) for number in range(n_readers)))
    minute = 0
    while not class_.done():
        await asyncio.wait([class_], timeout=60)
        minute += 1
        n = sum(map(len, found.values()))
        click.echo(f"minute {minute}: {n} answers, {server.memory()}", err=True)
    await class_
    return found, server.worked() - before


@main.command()
@click.option("--readers", "n_readers", default=40, show_default=True)
@click.option("--every", default=5.0, show_default=True, help="Seconds between two questions of a reader.")
@click.option("--minutes", default=2.0, show_default=True)
@click.option("--workers", "n_workers", default=1, show_default=True, help="Server processes.")
@click.option("--nginx", "behind_nginx", is_flag=True, help="Two servers with nginx before them, as in deploy/.")
def readers(n_readers: int, every: float, minutes: float, n_workers: int, behind_nginx: bool) -> None:
    """A class that works for some minutes."""
    with fronted(n_workers, behind_nginx=behind_nginx) as server:
        found, taken = asyncio.run(attend(server, n_readers, every, minutes, 1 if behind_nginx else n_workers))
        if any(answer.failed for answers in found.values() for answer in answers):
            for one in server.servers:
                click.echo(one.log.read_text()[-5000:], err=True)  # what the errors were
    everything = [answer for kind, answers in found.items() if kind != ARRIVAL for answer in answers]
    click.echo("| what | answers | p50, s | p95, s | most, s |")
    click.echo("|---|---:|---:|---:|---:|")
    medians, late = {}, {}
    for kind, answers in [*sorted(found.items()), ("all", everything)]:
        seconds = sorted(answer.seconds for answer in answers)
        medians[kind], late[kind] = statistics.median(seconds), seconds[int(0.95 * (len(seconds) - 1))]
        click.echo(f"| {kind} | {len(answers)} | {medians[kind]:.2f} | {late[kind]:.2f} | {seconds[-1]:.2f} |")
    rate = len(everything) / (60 * minutes)
    failed = [answer.failed for answers in found.values() for answer in answers if answer.failed]
    click.echo(
        f"\n{n_readers} readers, a question every {every:.0f} s: {rate:.1f} answers a second, {len(failed)} errors, "
        f"{1000 * taken / len(everything):.0f} ms of processor time per answer: a core carries "
        f"{every * len(everything) / taken:.0f} such readers"
    )
    for failure in failed[:5]:
        click.echo(failure)
    slow = medians["all"] > P50 or late["all"] > P95 or medians["inside a part"] > INSIDE
    sys.exit(bool(failed or slow or (n_readers / every >= RATE and rate < 0.9 * RATE)))


if __name__ == "__main__":
    main()

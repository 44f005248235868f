"""Forty readers while one of them opens files that are costly to read: how long the others wait, what memory it takes.

    python -m tests.benchmarks.hostile                     # the table of README.md; exit code 1 above a limit
    python -m tests.benchmarks.hostile --through uploads   # each file is put up by the session instead
    python -m tests.benchmarks.hostile --readers 10 --only "marks"

A fresh server is started the way users start it, with a folder of models (`--models`): each hostile file of
tests/checkpoints/hostile.py is a model there, or is put up as a browser does it.

Readers speak Streamlit's own protocol over websockets; each asks for a
light page (the glossary) every few seconds, so that a wait is somebody else's doing.  Beside them the server is asked
whether it is well, twenty times a second: it answers that as soon as it has the interpreter.  Then one session opens
each file.  At the end the server is told to stop (SIGTERM).
"""

import asyncio
import io
import itertools
import platform
import signal
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

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


@dataclass
class Answer:
    """What a page said: how long it took, its errors, and what a session needs to go on from there."""

    seconds: float = 0.0
    errors: list[str] = field(default_factory=list)
    query: str = ""  # of the address
    session: str = ""
    uploader: str = ""  # the widgets' names
    button: str = ""


async def run(socket: ClientConnection, page: str, **link: str) -> Answer:
    """One run of the app."""
    ask = BackMsg()
    ask.rerun_script.page_name = page
    ask.rerun_script.query_string = urlencode(link)
    return await answer(socket, ask)


async def answer(socket: ClientConnection, ask: BackMsg) -> Answer:
    start = time.perf_counter()
    await socket.send(ask.SerializeToString())
    found = Answer(query=ask.rerun_script.query_string)
    while True:
        message = ForwardMsg.FromString(await asyncio.wait_for(socket.recv(), 120))
        if message.HasField("delta"):
            element = message.delta.new_element
            if element.HasField("alert") and element.alert.format == element.alert.ERROR:
                found.errors.append(element.alert.body)
            if element.HasField("file_uploader"):
                found.uploader = element.file_uploader.id
            if element.HasField("button") and element.button.label in ("Upload and open", "Show"):
                found.button = element.button.id
        if message.HasField("new_session"):
            found.session = message.new_session.initialize.session_id
            found.errors.clear()  # the page is run again, with what was put up
        if message.HasField("page_info_changed"):
            found.query = message.page_info_changed.query_string
        ended = message.WhichOneof("type") == "script_finished"
        if ended and message.script_finished != message.FINISHED_EARLY_FOR_RERUN:
            found.seconds = time.perf_counter() - start
            return found


def cookie(server: Server) -> str:
    """The cookie with the token against forged requests, as a browser would send it."""
    with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=120) as health:
        return str(health.headers["Set-Cookie"].partition(";")[0])


def token(cookie: str) -> str:
    return cookie.partition("=")[2].strip('"')


def send(server: Server, path: str, name: str, content: bytes) -> None:
    """A file as a form of the page sends it, with the token against forged requests."""
    known = cookie(server)
    head = f'--end\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    request = urllib.request.Request(server.url + path, head + content + b"\r\n--end--\r\n", method="PUT")
    request.add_header("Content-Type", "multipart/form-data; boundary=end")
    request.add_header("Cookie", known)
    request.add_header("X-Xsrftoken", token(known))
    urllib.request.urlopen(request, timeout=120).close()


async def place_for(socket: ClientConnection, form: Answer, name: str) -> Any:
    """Where the server takes a file of the form of a page."""
    ask = BackMsg()
    ask.file_urls_request.request_id = ask.file_urls_request.session_id = form.session
    ask.file_urls_request.file_names.append(name)
    await socket.send(ask.SerializeToString())
    while not (message := ForwardMsg.FromString(await socket.recv())).HasField("file_urls_response"):
        pass
    (urls,) = message.file_urls_response.file_urls
    return urls


async def hand_in(
    socket: ClientConnection, server: Server, page: str, form: Answer, name: str, content: bytes
) -> Answer:
    """A file goes the way that a browser sends it; then the button is pressed."""
    urls = await place_for(socket, form, name)
    start = time.perf_counter()
    await asyncio.to_thread(send, server, urls.upload_url, name, content)
    ask = BackMsg()
    ask.rerun_script.page_name, ask.rerun_script.query_string = page, form.query
    chosen = ask.rerun_script.widget_states.widgets.add(id=form.uploader)
    chosen.file_uploader_state_value.uploaded_file_info.add(
        file_id=urls.file_id, name=name, size=len(content), file_urls=urls
    )
    ask.rerun_script.widget_states.widgets.add(id=form.button, trigger_value=True)
    found = await answer(socket, ask)
    found.seconds = time.perf_counter() - start
    return found


async def put_up(socket: ClientConnection, server: Server, path: Path) -> Answer:
    """A file, or a folder as a zip, is handed in."""
    form = await run(socket, "report", model="zh-en")
    name, content = f"{path.name}.zip" if path.is_dir() else path.name, io.BytesIO()
    if path.is_dir():
        with zipfile.ZipFile(content, "w") as archive:
            for one in sorted(path.iterdir()):
                archive.write(one, one.name)
    else:
        content.write(path.read_bytes())
    return await hand_in(socket, server, "report", form, name, content.getvalue())


def opened(server: Server) -> connect:
    address = server.url.replace("http", "ws") + "/_stcore/stream"
    return connect(address, subprotocols=["streamlit"], max_size=None, open_timeout=60)  # type: ignore[list-item]


async def reader(server: Server, waits: Waits, number: int, every: float) -> None:
    await asyncio.sleep(every * number / 40)
    async with opened(server) as socket:
        while not waits.done:
            waits.pages = max(waits.pages, (await run(socket, "glossary")).seconds)
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


def write(root: Path, only: str) -> list[Path]:
    """Each hostile file, or folder of a model, in the folder `root`."""
    paths = []
    for name, make in hostile.PICKLES.items():
        for wrap in (hostile.as_zip, hostile.as_legacy):
            called = f"{name} {wrap.__name__[3:]}"
            if only in called:
                paths.append(root / f"{called}.pt")
                paths[-1].write_bytes(wrap(make()))
    for name, change in hostile.TOKENIZERS.items():
        called = f"tokenizer {name}".replace(",", "").replace("^", " ")
        if only in called:
            paths.append(folder := hostile.bare_model(root / called))
            (folder / "tokenizer.json").write_text(hostile.tokenizer(change()))
    return paths


async def opens(socket: ClientConnection, server: Server, path: Path, through: str) -> tuple[float, float, list[str]]:
    """A session opens a hostile file, twice; seconds of both times, and what the page said."""
    assumed = {"n_heads": "4", "activation": "gelu"} if path.is_dir() else {}
    if through == "models":
        model, first = f"models/{path.name}", 0.0
    else:
        found = await put_up(socket, server, path)
        first = found.seconds
        model = dict(parse_qsl(found.query)).get("model", "zh-en")
        if not model.startswith("upload/"):  # refused as it arrived: nothing of it is there to be opened again
            return first, 0.0, found.errors
    link = ";".join([model, *(f"{name}={value}" for name, value in assumed.items())])
    once = await run(socket, "report", model=link)
    again = await run(socket, "report", model=link)
    return first + once.seconds, again.seconds, once.errors


async def measure(
    server: Server, paths: list[Path], readers: int, every: float, through: str, row: Callable[..., None]
) -> bool:
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
            for path in paths:
                before, peak, done = resident(server.process.pid), [0.0], threading.Event()

                def look(peak: list[float] = peak, done: threading.Event = done) -> None:
                    while not done.wait(0.02):
                        peak[0] = max(peak[0], resident(server.process.pid))

                looking = threading.Thread(target=look)
                looking.start()
                waits.taken()
                took, again, errors = await opens(socket, server, path, through)
                done.set()
                looking.join()
                found, more = waits.taken(), peak[0] - before
                refused = bool(errors) and not any("our mistake" in error for error in errors)
                row(path.stem, (took, again), found, more, refused)
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
@click.option("--through", type=click.Choice(["models", "uploads"]), default="models", show_default=True)
def main(readers: int, every: float, only: str, through: str) -> None:
    def row(
        name: str, took: tuple[float, float] | None, waits: tuple[float, float], more: float, refused: bool = True
    ) -> None:
        first, again = (f"{seconds:.2f}" for seconds in took) if took else itertools.repeat("", 2)
        said = "" if took is None else "refused" if refused else "**opened**"
        click.echo(f"| {name} | {first} | {again} | {waits[0]:.2f} | {waits[1]:.2f} | {more:.0f} | {said} |")

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "models")
        root.mkdir()
        paths = write(root, only) if through == "models" else write(Path(folder), only)
        command = (sys.executable, "-m", "vizformer", "--models", str(root))
        server = Server(command, log=Path(folder, "log.txt"))
        try:
            click.echo("| file | answer, s | again, s | longest wait: health, s | a reader's page, s | memory, MiB | |")
            click.echo("|---|---:|---:|---:|---:|---:|---|")
            slow = asyncio.run(measure(server, paths, readers, every, through, row))
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

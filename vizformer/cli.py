"""The `vizformer` command: starts the app; its subcommands do the rest.

A subcommand is a short function that imports what it needs when it runs, so that `vizformer --help` stays instant:

    @main.command()
    @click.argument("source")
    def inspect(source: str) -> None:
        \"\"\"Describe a checkpoint.\"\"\"
        from vizformer.checkpoints import load
        ...
"""

import contextlib
import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from vizformer import __version__
from vizformer.assets import app_root
from vizformer.errors import VizformerError

HOST = "127.0.0.1"
PORT = 8501
MODELS = "VIZFORMER_MODELS"
UPLOADS, UPLOAD_LIMIT = "VIZFORMER_UPLOADS", "VIZFORMER_UPLOAD_LIMIT"
HUB = "VIZFORMER_HUB"
DEVICE = "VIZFORMER_DEVICE"
PATHS = "VIZFORMER_PATHS"
HOSTS = "VIZFORMER_HOSTS"
MEMORY, LEAST_MEMORY = "VIZFORMER_CACHE_BYTES", 16  # MiB


class _Group(click.Group):
    """Says what `VizformerError` says, without a traceback: it was raised for the person at the keyboard."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except VizformerError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    envvar="VIZFORMER_HOST",
    metavar="ADDRESS",
    help="Where to listen. 0.0.0.0 lets other people on your network in.",
)
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    envvar="PORT",
    type=click.IntRange(1, 65535),
    metavar="NUMBER",
    help="The port to listen on; the variable PORT does the same.",
)
@click.option(
    "--models",
    envvar=MODELS,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"A folder of models: every subfolder with a model and every file of weights can be chosen in the app; "
    f"the variable {MODELS} does the same.",
)
@click.option(
    "--no-upload",
    is_flag=True,
    help=f"Take no model files from the browser; the variable {UPLOADS}=off does the same. {UPLOAD_LIMIT} (bytes) "
    "bounds an upload.",
)
@click.option(
    "--no-hub",
    is_flag=True,
    help=f"Open no models by their name on a hub, ask nothing of the internet; the variable {HUB}=off does the same.",
)
@click.option(
    "--no-path",
    is_flag=True,
    help=f"Open no models by their path; the variable {PATHS}=off does the same. Without it browsers on this computer "
    "can, as long as --host lets nobody else in.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers find this server, e.g. behind a proxy; may be given several times, and "
    "*.example.org is all names below. Addresses, localhost and the machine's own name need none; the variable "
    f"{HOSTS} (with commas) does the same.",
)
@click.option(
    "--memory",
    type=click.IntRange(LEAST_MEMORY),
    metavar="MIB",
    help=f"How much may be kept of what was computed, and as much again of converted weights; the variable {MEMORY} "
    "(bytes) does the same.  [default: 320, for a machine of 2 GB]",
)
@click.option(
    "--device",
    envvar=DEVICE,
    metavar="NAME",
    help=f"Where the models compute: cpu, cuda, cuda:1, mps; the variable {DEVICE} does the same.  [default: cpu]",
)
@click.version_option(__version__, prog_name="vizformer")
@click.pass_context
def main(
    ctx: click.Context,
    host: str,
    port: int,
    models: Path | None,
    no_upload: bool,
    no_hub: bool,
    no_path: bool,
    device: str | None,
    hosts: tuple[str, ...],
    memory: int | None,
) -> None:
    """See every number inside a Transformer, for the sentence you typed, and have each one proved.

    Without a command: starts the app and prints its address.
    """
    if ctx.invoked_subcommand is None:
        start(
            host,
            port,
            models,
            uploads=not no_upload,
            hub=not no_hub,
            paths=not no_path,
            device=device,
            hosts=hosts,
            memory=memory,
        )


def start(
    host: str = HOST,
    port: int = PORT,
    models: Path | None = None,
    *,
    uploads: bool = True,
    hub: bool = True,
    paths: bool = True,
    device: str | None = None,
    hosts: Iterable[str] = (),
    memory: int | None = None,
) -> None:
    """Serves the app, with the models in the subfolders of `models`, until Ctrl+C.

    `uploads` and `hub` let visitors open files of their own and models of a hub; `paths` lets those on this computer
    open models by their path, if nobody else can come in.  All models compute on `device`.  `hosts` are more names by
    which browsers find the server; `memory` are the MiB that may be kept of what was computed.

    Raises:
        CheckpointError: there is no such device.
        click.ClickException: if nothing can listen there, with a port that is free; if `models` is no such folder.
    """
    if models is not None:
        _require_models(models)
        os.environ[MODELS] = str(models.resolve())  # the app reads it there, however it was started
    for switch, on in ((UPLOADS, uploads), (HUB, hub)):
        if not on:
            os.environ[switch] = "off"
    if hosts := [name for name in hosts if name.strip()]:
        os.environ[HOSTS] = ",".join([*filter(None, [os.environ.get(HOSTS, "")]), *hosts])
    if memory is not None:
        os.environ[MEMORY] = str(memory * 2**20)
    if device:
        os.environ[DEVICE] = device
    if device and device != "cpu":  # before anybody waits for a page
        from vizformer.checkpoints.tensors.placement import chosen_device

        chosen_device(device)
    _require_free(host, port)
    os.environ[PATHS] = "on" if paths and not _is_off(PATHS) and _is_loopback(host) else "off"
    from streamlit.web import cli as streamlit

    options = {"server.address": host, "server.port": port, "server.headless": "true", **_upload_options()}
    arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    with _quiet_end():
        streamlit.main(
            args=["run", str(app_root() / "app.py"), *arguments], prog_name="vizformer", standalone_mode=False
        )


def _require_models(models: Path) -> None:
    if not models.is_dir():
        raise click.ClickException(f"--models: there is no folder {models}. Give one whose subfolders are models.")
    if (models / "config.json").is_file():
        raise click.ClickException(
            f"--models: {models} is a model itself. Give the folder it lies in: vizformer --models {models / '..'}"
        )


def _upload_options() -> dict[str, object]:
    """The server itself turns away what is larger, before it is kept in memory."""
    limit = os.environ.get(UPLOAD_LIMIT, "").strip()
    if _is_off(UPLOADS):
        return {"server.maxUploadSize": 1}  # MB; the server knows no smaller one
    return {"server.maxUploadSize": max(1, -(-int(limit) // 2**20))} if limit.isdecimal() else {}


def _is_off(switch: str) -> bool:
    return os.environ.get(switch, "").strip().lower() in ("off", "no", "0", "false")


def _is_loopback(host: str) -> bool:
    """Whether only this computer can come in at an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Ctrl+C is how the app is ended, not something that went wrong."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        click.echo("\n  VizFormer has stopped.")


def _require_free(host: str, port: int) -> None:
    try:
        _listen(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = _free_port_after(host, port)
            raise click.ClickException(
                f"port {port} is already in use, perhaps by another VizFormer (http://localhost:{port}). "
                f"Stop that one, or take another port: vizformer --port {other}   or   make run PORT={other}"
            ) from error
        if error.errno == errno.EACCES:
            raise click.ClickException(
                f"this account may not listen on port {port} (ports below 1024 are the system's). "
                f"Take another one: vizformer --port {PORT}"
            ) from error
        raise click.ClickException(
            f"cannot listen on {host} ({error.strerror or error}). --host takes an address of this machine: "
            f"{HOST} for yourself, 0.0.0.0 for everyone on your network."
        ) from error


def _free_port_after(host: str, port: int) -> int:
    for other in range(port + 1, min(port + 100, 65536)):
        with contextlib.suppress(OSError):
            _listen(host, other)
            return other
    return 0


def _listen(host: str, port: int) -> None:
    """Listens for a moment; raises OSError as the server would."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        if sys.platform != "win32":  # there the option means something else
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


@main.command()
@click.argument("source", metavar="PATH")
@click.option("--tensors", is_flag=True, help="List every tensor, also those that are used.")
@click.option(
    "--assume",
    multiple=True,
    metavar="NAME=VALUE",
    help="What bare weights do not say, e.g. --assume n_heads=4; may be given several times.",
)
@click.pass_context
def inspect(ctx: click.Context, source: str, tensors: bool, assume: tuple[str, ...]) -> None:
    """Say what a model folder or a file of weights holds, what becomes of each tensor, what was assumed, and what
    keeps it from opening.
    """
    from vizformer.checkpoints import describe
    from vizformer.checkpoints import inspect as examine
    from vizformer.checkpoints.tensors.memory import describe_needs

    if wrong := [given for given in assume if not given.partition("=")[2]]:
        raise click.BadParameter(f"{wrong[0]!r} is not NAME=VALUE, e.g. n_heads=4.", param_hint="--assume")
    answers: dict[str, Any] = {name: value for name, __, value in (given.partition("=") for given in assume)}
    if taken := answers.keys() & {"source", "numbers"}:
        raise click.BadParameter(f"{min(taken)!r} is no assumption.", param_hint="--assume")
    report = examine(source, **answers)
    click.echo(describe(report, every_tensor=tensors))
    click.echo(f"\n{describe_needs(report)}")
    if report.problems:
        ctx.exit(1)


@main.command()
@click.argument("name", type=click.Choice(["zh-en", "stories", "cloze", "lengths"]))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with cmn.txt (zh-en) or also fra.txt and books.txt (the others).",
)
@click.option("--out", type=click.Path(path_type=Path), help="Where the model goes.  [default: models/NAME]")
@click.option("--work", type=click.Path(path_type=Path), help="Where the state is kept.  [default: runs/NAME]")
@click.option("--threads", type=click.IntRange(1), help="Processor threads.  [default: one per core]")
def train(name: str, data: Path, out: Path | None, work: Path | None, threads: int | None) -> None:
    """Train one of the bundled models again, or ("lengths") the six tiny ones of the lesson Positions.

    Stopped or killed, the same command goes on where it was.
    """
    from vizformer.training.commands import train_bundled
    from vizformer.training.lengths import train_lengths

    out, work = out or Path("models", name), work or Path("runs", name)
    if name == "lengths":
        train_lengths(data, out, work, threads, click.echo)
    else:
        train_bundled(name, data, out, work, threads, click.echo)


@main.command()
@click.argument("model")
@click.option("--data", required=True, type=click.Path(path_type=Path), help="The folder with what it was trained on.")
def evaluate(model: str, data: Path) -> None:
    """Measure a trained model on its held-out data and write the figures into its card."""
    from vizformer.analysis.measures import measure
    from vizformer.training.commands import evaluate_bundled

    evaluate_bundled(model, data, click.echo, measure)

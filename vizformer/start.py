"""Starts the app: writes the options of the command into the variables that the app reads, serves until it is stopped."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from vizformer.assets import app_root
from vizformer.serving import FRAMES, is_origin, listening
from vizformer.serving.listening import HOST, PORT

MODELS = "VIZFORMER_MODELS"
MODEL = "VIZFORMER_MODEL"
UPLOADS, UPLOAD_LIMIT = "VIZFORMER_UPLOADS", "VIZFORMER_UPLOAD_LIMIT"
HUB = "VIZFORMER_HUB"
DEVICE = "VIZFORMER_DEVICE"
PATHS = "VIZFORMER_PATHS"
HOSTS = "VIZFORMER_HOSTS"
MEMORY, LEAST_MEMORY = "VIZFORMER_CACHE_BYTES", 16  # MiB
WORKERS, MOST_WORKERS = "VIZFORMER_WORKERS", 64


def start_app(
    host: str = HOST,
    port: int = PORT,
    models: Path | None = None,
    *,
    own: Iterable[str] = (),
    uploads: bool = True,
    hub: bool = True,
    paths: bool = True,
    device: str | None = None,
    hosts: Iterable[str] = (),
    frames: Iterable[str] = (),
    memory: int | None = None,
    n_workers: int = 1,
) -> None:
    """Serves the app, with the models in the subfolders of `models`, until Ctrl+C.

    `own` are models of this account's own code (`vizformer.checkpoints.own_code`).
    `uploads` and `hub` let visitors open files of their own and models of a hub; `paths` lets those on this computer
    open models by their path, if nobody else can come in.  All models compute on `device`.  `hosts` are more names by
    which browsers find the server; pages of the origins `frames` may show it in a frame; `memory` are the MiB that may be
    kept of what was computed.
    `n_workers` processes serve, each with an interpreter of its own, behind one port.

    Raises:
        CheckpointError: there is no such device.
        click.ClickException: if nothing can listen there, with a port that is free; if `models` is no such folder; if the
            code of `own` hands out no model; if one of `frames` is no origin; if there is no HAProxy for more than one
            worker.
    """
    if models is not None:
        _require_models(models)
        os.environ[MODELS] = str(models.resolve())  # the app reads this variable, however it was started
    for switch, on in ((UPLOADS, uploads), (HUB, hub)):
        if not on:
            os.environ[switch] = "off"
    for variable, names in ((HOSTS, hosts), (FRAMES, frames)):
        told = [name.strip() for name in (*os.environ.get(variable, "").split(","), *names)]
        os.environ[variable] = ",".join(filter(None, told))
    _require_origins()
    if memory is not None:
        os.environ[MEMORY] = str(memory * 2**20)
    if device:
        os.environ[DEVICE] = device
    if device and device != "cpu":  # an unknown device is refused before the first page is requested
        from vizformer.checkpoints.tensors.memory import chosen_device

        chosen_device(device)
    listening.require_free(host, port)
    own = tuple(own) or tuple(filter(str.strip, os.environ.get(MODEL, "").splitlines()))
    if own:
        from vizformer.serving import own_models

        own_models.name(own)
        if n_workers == 1:  # (else each worker loads them)
            own_models.load()
    os.environ[PATHS] = "on" if paths and not _is_off(PATHS) and listening.is_loopback(host) else "off"
    options = {"server.address": host, "server.port": port, "server.headless": "true", **_upload_options()}
    if n_workers > 1:
        from vizformer.serving import workers

        workers.serve(host, port, n_workers, options)
        click.echo("\n  VizFormer has stopped.")
        return
    from streamlit.web import cli as streamlit

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


def _require_origins() -> None:
    for told in filter(None, os.environ[FRAMES].split(",")):
        if not is_origin(told):
            raise click.ClickException(
                f"--allow-frame: {told!r} is no origin. Give the beginning of an address, e.g. https://school.example"
            )


def _upload_options() -> dict[str, object]:
    """The limit on the size of an upload: the server refuses larger files before they are kept in memory."""
    limit = os.environ.get(UPLOAD_LIMIT, "").strip()
    if _is_off(UPLOADS):
        return {"server.maxUploadSize": 1}  # MB; the server knows no smaller one
    return {"server.maxUploadSize": max(1, -(-int(limit) // 2**20))} if limit.isdecimal() else {}


def _is_off(switch: str) -> bool:
    return os.environ.get(switch, "").strip().lower() in ("off", "no", "0", "false")


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    """Exits without a traceback on Ctrl+C, which is how the app is ended."""
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        click.echo("\n  VizFormer has stopped.")

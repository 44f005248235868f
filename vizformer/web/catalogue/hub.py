"""Models of a hub in the app: those in the server's cache by name, and downloads that someone asked for.

Nothing is ever requested unless a reader presses the button, and not at all with `vizformer --no-hub`.  A download
runs once per name, in the background, for all who wait for it; it goes on when they leave the page.
"""

import os
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vizformer.errors import CheckpointError, VizformerError
from vizformer.messages import N_, Message
from vizformer.web.catalogue import session_folders
from vizformer.web.catalogue.session_folders import stamp_of_files
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from vizformer.checkpoints.files.hub import Progress

SWITCH = "VIZFORMER_HUB"
LIMIT = "VIZFORMER_HUB_LIMIT"
AT_ONCE = 2  # downloads
REMEMBERED = 50  # that are over: who waited for one is told how it ended
_DEFAULT = 4 * 2**30  # bytes
_SPARE = 2**30  # bytes of the disk that stay free
_PIECE = 2**18  # bytes of a file that arrive together


@dataclass
class Download:
    """One model on its way; `error` says why it did not arrive, and `done` that nothing more happens."""

    name: str
    progress: "Progress"
    waiting: set[str] = field(default_factory=set)  # sessions
    error: Message | None = None
    stopped: bool = False
    done: bool = False


class _Desk:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.downloads: dict[str, Download] = {}
        self.found: dict[str, Path] = {}  # where models lie: looking it up reads a dozen files


_DESK = _Desk()


def is_on() -> bool:
    """Whether this server opens models from a hub."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("off", "no", "0", "false")


def limit() -> int:
    """The largest model that is downloaded, in bytes."""
    given = os.environ.get(LIMIT, "").strip()
    return int(given) if given.isascii() and given.isdigit() else _DEFAULT


def listed() -> tuple[ModelRef, ...]:
    """None: a model of a hub is named by whoever wants it."""
    return ()


def locate(model: ModelRef) -> Path | None:
    """The folder of a model that has been fetched; asks no network."""
    if not is_on():
        return None
    name = model.id
    known = _DESK.found.get(name)
    if known is not None and (known / "config.json").is_file():
        return known
    prepare_torch()
    from vizformer.checkpoints.files import hub

    found = hub.cached(name)
    if found is not None:
        _DESK.found[name] = found
    return found


def title(model: ModelRef) -> str:
    """The name of a model in lists: that on its hub."""
    return model.id


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model."""
    if not is_on():
        return _off()
    return CheckpointError(
        "{name} has not been fetched from the hub to this server. Fetch it on the page Model report.", name=model.id
    )


def stamp(path: Path) -> str:
    """Says which version of the files lies there."""
    return stamp_of_files(path)


def start(name: str) -> None:
    """Begins to fetch a model for this session, or joins those who wait for it.

    Raises:
        CheckpointError: not a name; hubs are switched off; others are being fetched.
    """
    if not is_on():
        raise _off()
    prepare_torch()
    from vizformer.checkpoints.files import hub

    if not hub.is_name(name):
        raise CheckpointError(
            "{name} is not the name of a model on a hub: they read owner/name, or owner/name@revision.", name=name
        )
    with _DESK.lock:
        current = _DESK.downloads.get(name)
        if current is not None and not current.done and not current.stopped:
            current.waiting.add(session_folders.current())
            return
        if sum(not download.done for download in _DESK.downloads.values()) >= AT_ONCE:
            raise CheckpointError(
                "This server is fetching {n} models already. Try again when they are there.", n=AT_ONCE
            )
        over = [name for name, download in _DESK.downloads.items() if download.done]
        for old in over[: max(0, len(over) - REMEMBERED)]:
            del _DESK.downloads[old]
        begun = Download(name, hub.Progress(), {session_folders.current()})
        _DESK.downloads[name] = begun
    threading.Thread(target=_run, args=(begun,), name=f"fetch {name}", daemon=True).start()


def look(name: str) -> Download | None:
    """The state of a download; None where there is none."""
    return _DESK.downloads.get(name)


def leave(name: str) -> None:
    """Notes that this session no longer waits; a download that nobody waits for is stopped."""
    with _DESK.lock:
        download = _DESK.downloads.get(name)
        if download is not None:
            download.waiting.discard(session_folders.current())
            if not download.waiting and not download.done:
                download.stopped = True
                download.progress.stop.set()


def _run(download: Download) -> None:
    from huggingface_hub import constants

    from vizformer.checkpoints.files import hub

    # Progress is told, and a stop heard, once per piece; huggingface_hub's own 10 MiB are seconds on a slow line.
    constants.DOWNLOAD_CHUNK_SIZE = _PIECE
    try:
        folder = hub.fetch(download.name, download.progress, lambda size: _accept(size, download.progress.done))
        _DESK.found[download.name] = folder
    except hub.StoppedError as error:
        download.error, download.stopped = error.message, True
    except VizformerError as error:
        download.error = error.message
    except Exception as error:  # said to whoever waits; the thread has no one else to tell
        download.error = N_("The download failed ({reason}). Try again.", reason=repr(error)[:200])
    finally:
        download.done = True


def _accept(size: int, come: int) -> None:
    """Refuses what is too large for this server: before the first byte, or as soon as more has come than was said."""
    if size > limit():
        raise CheckpointError(
            "The files of this model have more than the {limit} MiB that this server fetches. Take a smaller model, or "
            "run VizFormer yourself.",
            limit=f"{limit() / 2**20:,.0f}",
        )
    from huggingface_hub import constants

    place = Path(constants.HF_HUB_CACHE)
    while not place.exists():
        place = place.parent
    if shutil.disk_usage(place).free < size - come + _SPARE:
        raise CheckpointError("The disk of this server is almost full: the model does not fit. Take a smaller one.")


def _off() -> CheckpointError:
    return CheckpointError("This server opens no models from a hub. Choose another model, or run VizFormer yourself.")

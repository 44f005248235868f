"""Models that the person at this computer opens by their path.

What they are called in links: `path/TOKEN`, where only this server and the person's list (`recents`) know what the
token stands for.

A box for paths lets whoever sees it look for files on the server's disk.  So there is one only where `vizformer` was
started to listen on this computer alone, and, looked at anew on every use, only for a browser on this computer: it
connects from here, through no proxy, and under a name of this computer (a page from elsewhere whose own name was
pointed at 127.0.0.1, "DNS rebinding", comes under that name), from a page of ours.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import streamlit as st

from vizformer.checkpoints.files import formats
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.web.catalogue import recents, server_folder
from vizformer.web.link.model_ref import ModelRef

SWITCH = "VIZFORMER_PATHS"
LONGEST = 4096  # characters; systems take no longer paths
MOST = 1000  # entries of a folder; a model has a few dozen, and their dates are looked at on every run
_PROXIES = ("forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "<": ">"}
_KNOWN: dict[str, Path] = {}  # tokens of this process


def is_on() -> bool:
    """Whether this server was started so that the person at this computer can open paths."""
    return os.environ.get(SWITCH, "").strip().lower() == "on" and is_loopback(str(st.get_option("server.address")))


def allowed() -> bool:
    """Whether this session, as it is connected now, may open paths."""
    return is_on() and _is_here(*_visitor())


def add(typed: str) -> ModelRef:
    """Takes a path as someone typed it; how its model is named in links.

    Raises:
        CheckpointError: not a path, nothing there, no model, or this session may not; the path is not in the message.
    """
    if not allowed():
        raise _off()
    path = _path(typed)
    if (problem := _problem(path)) is not None:
        raise CheckpointError(problem)
    return named(path)


def named(path: Path) -> ModelRef:
    """The name in links of the model at a path, whether it opens or not."""
    token = recents.token(path)
    _KNOWN[token] = path
    return ModelRef("path", token)


def listed() -> tuple[ModelRef, ...]:
    """None: what was opened last is offered where paths are typed."""
    return ()


def locate(model: ModelRef) -> Path | None:
    """Where the model lies, if this session may open it and it is still there."""
    path = _known(model.name)
    return path if path is not None and _problem(path) is None else None


def title(model: ModelRef) -> str:
    """The name of a model in lists: that of its folder or file, for those who may open it."""
    path = _known(model.name)
    name = re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "�", path.name) if path is not None else ""
    return (name if len(name) <= 60 else f"{name[:59]}…") or f"path · {model.name[:4]}"


def absent(model: ModelRef) -> CheckpointError:
    """Why there is no such model.  Who may not open paths is told the same, whether the token is known or not."""
    if not allowed():
        return _off()
    path = _known(model.name)
    if path is None:
        return CheckpointError(
            "This link stands for a path that VizFormer does not know on this computer: it is from another one, or "
            "was forgotten. Open the model by its path on the page Model report."
        )
    return CheckpointError(
        "{name} cannot be opened any more. {reason}", name=title(model), reason=_problem(path) or N_("Try again.")
    )


def stamp(path: Path) -> str:
    """Says which version of the files lies there."""
    return server_folder.stamp(path)


def is_loopback(host: str) -> bool:
    """Whether a name or an address means this computer, seen from itself."""
    name = host.lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")  # (which no name server is asked for)
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _visitor() -> tuple[str | None, Mapping[str, str]]:
    """The address that this session connects from (None: this computer's) and the headers that it came with."""
    return st.context.ip_address, st.context.headers


def _is_here(address: str | None, headers: Mapping[str, str]) -> bool:
    """Whether a browser on this computer is connected without anything between."""
    sent = {name.lower(): value for name, value in headers.items()}
    if (address is not None and not is_loopback(str(address))) or any(
        name in _PROXIES or name.startswith("x-forwarded") for name in sent
    ):
        return False
    try:
        host, origin = urlsplit(f"//{sent.get('host', '')}"), urlsplit(sent.get("origin", ""))
        return is_loopback(host.hostname or "") and origin.netloc.lower() == host.netloc.lower()
    except ValueError:
        return False


def _known(token: str) -> Path | None:
    if not allowed():
        return None
    if token not in _KNOWN:
        for recent in recents.opened():
            if recent.source == "path":
                named(Path(recent.name))
    return _KNOWN.get(token)


def _path(typed: str) -> Path:
    """Reads a typed path, without the blanks and the quotes around it."""
    text = typed[: 2 * LONGEST].strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    if not text:
        raise CheckpointError("Type the path of a model's folder, or of a file of weights.")
    if len(text) > LONGEST or re.search("[\x00-\x1f\x7f\ud800-\udfff]", text):
        raise CheckpointError(
            "This is no path: paths have at most {n} characters and none that are unseen. Type the path of a "
            "model's folder, or of a file of weights.",
            n=LONGEST,
        )
    try:
        if text.lower().startswith("file:"):
            there = urlsplit(text)
            text = url2pathname(there.path) if there.netloc in ("", "localhost") else ""
        text = os.path.expanduser(text)
    except (ValueError, RuntimeError):
        text = ""
    if not os.path.isabs(text) or "\0" in text:
        raise CheckpointError(
            "This path does not say where it begins. Type the whole path: it begins with / or ~, on Windows with a "
            "drive such as C:\\."
        )
    return Path(os.path.abspath(text))


def _problem(path: Path) -> Message | None:
    """Why no model can lie at a path.  Looks into no subfolder, and at the first bytes of a file with an unusual name."""
    try:
        kind = os.stat(path).st_mode
        if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(kind) else 0)):
            raise PermissionError
        if stat.S_ISDIR(kind):
            with os.scandir(path) as entries:
                return _no_folder(path, [entry.name for entry in islice(entries, MOST + 1)])
    except (FileNotFoundError, NotADirectoryError):
        return N_("There is nothing at this path on the computer that runs VizFormer. Check the spelling.")
    except PermissionError:
        return N_("The account that runs VizFormer may not read what lies at this path. Allow it to, or copy it.")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        return N_("This path cannot be read ({reason}). Check the spelling.", reason=str(reason))
    if not stat.S_ISREG(kind):
        return N_("What lies at this path is neither a folder nor a file. Give the folder that the model lies in.")
    if not _is_weights(path.name) and not formats.writer_of(path):
        return N_(
            "This is not a file of weights ({suffixes}). Give one, or the folder that the model lies in.",
            suffixes=", ".join(server_folder.WEIGHTS),
        )
    return None


def _no_folder(path: Path, names: list[str]) -> Message | None:
    """Why a folder that holds `names` is not that of a model."""
    if len(names) > MOST:
        return N_(
            "This folder holds more than {n} files, so it is not that of one model. Give the folder that the "
            "model lies in.",
            n=MOST,
        )
    if server_folder.CONFIG not in names and not any(map(_is_weights, names)) and not formats.weights_in(Folder(path)):
        if steps := [name for name in sorted(names) if re.fullmatch(r"checkpoint-\d{1,9}", name)]:
            return N_(
                "There is no model in this folder itself, but in those of its training: {steps}. Give one of these folders.",
                steps=", ".join(steps[:8]),
            )
        return N_(
            "There is no model in this folder: neither config.json nor weights ({suffixes}) lie in it. "
            "Subfolders are not looked into; give the one that the model lies in.",
            suffixes=", ".join(server_folder.WEIGHTS),
        )
    return None


def _is_weights(name: str) -> bool:
    return name.lower().endswith((*server_folder.WEIGHTS, *server_folder.OTHERS))


def _off() -> CheckpointError:
    return CheckpointError(
        "This model is named by where it lies. Such models open only in a browser on the computer that runs "
        "VizFormer, and not where it was started with --no-path. Choose another model, or run VizFormer yourself."
    )

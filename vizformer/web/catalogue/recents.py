"""What the person at this computer opened last, by path or by name on a hub, kept in a small file of theirs.

It is read and written only for those who may open paths (`vizformer.web.catalogue.local_paths`).  A file that is
absent, damaged or cannot be written is no error: the list is then kept in memory until the server ends.
"""

import contextlib
import json
import os
import re
import secrets
import stat
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeGuard

VARIABLE = "VIZFORMER_STATE"
MOST = 12  # entries; the oldest makes room
_FILE = "opened.json"
_LIMIT = 2**18  # bytes; a dozen of the longest paths have a fifth of it
_LONGEST = 5000  # characters of a path, a name or assumptions


@dataclass(frozen=True)
class Recent:
    """One model: its source ("path" or "hub"), its name there, and the assumptions as they stand in links."""

    source: str
    name: str
    answers: str = ""


@dataclass(frozen=True)
class _State:
    key: bytes = b""  # with which paths are hashed; empty: none yet
    opened: tuple[Recent, ...] = ()


class _Store:
    """The file, and what is used in its place where it cannot be written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.unsaved: _State | None = None

    def read(self) -> _State:
        file = _file()
        if self.unsaved is not None or file is None:
            return self.unsaved or _State()
        try:
            about = os.stat(file)
            if not stat.S_ISREG(about.st_mode) or about.st_size > _LIMIT:
                return _State()
            return _parsed(json.loads(file.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return _State()

    def write(self, state: _State) -> None:
        """All of it or nothing: another server of this person may be reading."""
        written = {"key": state.key.hex(), "opened": [_written(recent) for recent in state.opened]}
        self.unsaved, file, begun = state, _file(), None
        if file is None:
            return
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            number, begun = tempfile.mkstemp(dir=file.parent, prefix=f"{_FILE}.")  # for this account only
            with open(number, "w", encoding="utf-8") as out:
                json.dump(written, out, indent=1)
            os.replace(begun, file)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                os.unlink(begun or "")
        else:
            self.unsaved = None

    def remove(self) -> None:
        self.unsaved, file = None, _file()
        try:
            if file is not None:
                file.unlink(missing_ok=True)
        except OSError:  # a folder that lets nothing be taken away: empty at least
            self.write(_State())


_STORE = _Store()


def opened() -> tuple[Recent, ...]:
    """The models that were opened, the last one first."""
    return _STORE.read().opened


def note(recent: Recent) -> None:
    """Puts a model at the head of the list."""
    with _STORE.lock:
        state = _STORE.read()
        others = [other for other in state.opened if (other.source, other.name) != (recent.source, recent.name)]
        now = (recent, *others)[:MOST]
        if now != state.opened:
            _STORE.write(replace(state, opened=now))


def forget() -> None:
    """Empties the list and removes the file."""
    with _STORE.lock:
        _STORE.remove()


def token(path: Path) -> str:
    """Twelve hexadecimal digits that stand for a path in links: a keyed hash, so that nobody can try paths out on it.

    The key is kept with the list: the same path has the same link after a restart.
    """
    with _STORE.lock:
        state = _STORE.read()
        if not state.key:
            state = replace(state, key=secrets.token_bytes(16))
            _STORE.write(state)
    return blake2b(os.fsencode(path), key=state.key, digest_size=6).hexdigest()


def _parsed(raw: Any) -> _State:
    """Reads the content of the file; entries that we cannot have written are left out."""
    if not isinstance(raw, dict):
        return _State()
    key, listed = raw.get("key"), raw.get("opened")
    legal = isinstance(key, str) and re.fullmatch("[0-9a-f]{32}", key)
    found = [recent for item in listed if (recent := _recent(item))] if isinstance(listed, list) else []
    return _State(bytes.fromhex(str(key)) if legal else b"", tuple(dict.fromkeys(found))[:MOST])


def _written(recent: Recent) -> dict[str, str]:
    """The entry of the file for a model; there a source is called a place."""
    return {"place": recent.source, "name": recent.name, "answers": recent.answers}


def _recent(raw: Any) -> Recent | None:
    if not isinstance(raw, dict) or raw.get("place") not in ("path", "hub"):
        return None
    name, answers = raw.get("name"), raw.get("answers", "")
    if not (_is_text(name) and _is_text(answers)):
        return None
    return Recent(raw["place"], name, answers) if raw["place"] == "hub" or os.path.isabs(name) else None


def _is_text(value: object) -> TypeGuard[str]:
    """A string that could be a path or a name."""
    return isinstance(value, str) and len(value) <= _LONGEST and not re.search("[\x00-\x1f\x7f\ud800-\udfff]", value)


def _file() -> Path | None:
    """The file of the list: VIZFORMER_STATE, or one in the user's state folder of this system."""
    try:
        if named := os.environ.get(VARIABLE, "").strip():
            return Path(named).expanduser().absolute() / _FILE
        if sys.platform == "win32":
            local = os.environ.get("LOCALAPPDATA", "")
            above = Path(local) if os.path.isabs(local) else Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            above = Path.home() / "Library" / "Application Support"
        else:
            state = os.environ.get("XDG_STATE_HOME", "")
            above = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
        return above / "vizformer" / _FILE
    except (OSError, RuntimeError):  # an account without a home
        return None

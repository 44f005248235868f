"""Checks whether a tokenizer.json may be read, before the `tokenizers` library opens it.

The library keeps the interpreter to itself while it reads a file, and all sessions of a server wait.  So a file is held
against `vizformer.text.bounds` first: a small one here, a larger one in a process of its own with limits of memory and
time, where the library then reads it too.  What was found is kept of the last `_MOST_KEPT` files.
"""

import hashlib
import json
import sys
import threading
from collections import OrderedDict
from typing import Any

from vizformer.errors import TokenizerError
from vizformer.jobs import limits
from vizformer.messages import N_, Message
from vizformer.text import bounds
from vizformer.text.text_growth import BoundsError, shown

LIMIT = 48 * limits.MEGABYTE  # bytes of a file; the largest in use have 34 MB
_SMALL = 2 * limits.MEGABYTE
_MOST_COMMAS = 2_500_000  # in a file: as many values; each takes some 100 bytes
_MOST_A_ROW, _MOST_BESIDE = 20, 100_000  # commas: a token has one, a merge two of its own, an added token eight
_TEXTS = ("Hello, world! 你好 1", " " * 200 + "x", "a" * 200 + "!", "\n" * 200, "\ufdfa\u0130é" * 20)
_MOST_KEPT = 256
_kept: OrderedDict[str, Message | None] = OrderedDict()  # digest of a file -> why it is refused, or None
_lock = threading.Lock()


class TrialError(TokenizerError):
    """A tokenizer.json that is refused; the message says why."""


class _SaidTwiceError(ValueError):
    """An object in a JSON file that has the same name twice."""


class BusyError(TrialError):
    """No further process can be started now, but perhaps later."""


def examine(content: str, rows: int | None = None) -> None:
    """Checks the content of a file; `rows` as in `bounds.check`.

    Raises:
        TrialError: the file is damaged, or exceeds the bounds.
        BusyError: no process for a large file can be started now.
    """
    raw = content.encode("utf-8", "surrogatepass")
    name = hashlib.blake2b(raw, digest_size=16).hexdigest() + f" {rows}"
    with _lock:
        known, said = name in _kept, _kept.get(name)
    if not known:
        if len(raw) > LIMIT:
            said = N_("{n} bytes; at most {most} are read", n=f"{len(raw):,}", most=f"{LIMIT:,}")
        elif raw.count(b",") > _MOST_COMMAS or raw.count(b"[") + raw.count(b"{") > _MOST_COMMAS // 2:
            said = N_("more than {most} values", most=f"{_MOST_COMMAS:,}")
        elif len(raw) <= _SMALL:
            said = _looked_at(raw, None)  # (what does not fit the weights is told in better words later)
        elif rows is not None and raw.count(b",") > _MOST_A_ROW * rows + _MOST_BESIDE:
            said = N_(
                "it has many more tokens than the weights have rows, {rows}: they belong to different models",
                rows=f"{rows:,}",
            )
        else:
            said = _apart(raw, rows)
        with _lock:
            _kept[name] = said
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    if said:
        raise TrialError(said)


def _looked_at(raw: bytes, rows: int | None) -> Message | None:
    """Why a file is refused; None if it is accepted."""
    try:
        # (not for a large file, which would take twice the memory; the library then uses the last value, as json does)
        bounds.check(json.loads(raw, object_pairs_hook=_object if len(raw) <= _SMALL else None), rows)
    except BoundsError as error:
        return error.message
    except RecursionError:
        return N_("its values are nested too deeply")
    except _SaidTwiceError:
        return N_("it has the same entry twice")
    except ValueError as error:
        return N_("it is not JSON: {error}", error=shown(error, 200))
    return None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The dict of a JSON object. It must not name anything twice: readers do not agree on which of the values counts."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _SaidTwiceError
    return made


def _apart(raw: bytes, rows: int | None) -> Message | None:
    """Why a file is refused, checked in a process of its own, where the library also reads the file and cuts a few
    texts.
    """
    size = len(raw) // limits.MEGABYTE + 1
    try:
        said = limits.tried(__name__, str(size), str(rows or ""), content=raw, seconds=10 + size)
    except OSError as error:  # no memory for a process
        raise BusyError("it cannot be checked now: {error}", error=str(error.strerror)) from error
    if said is None:
        return N_("reading it takes too much memory or time")
    found = json.loads(said)
    return found and Message(found["text"], found["values"])


def main() -> None:
    """Runs in the other process: reads the file from its input and prints why it is refused."""
    size, rows = int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2] else None
    from tokenizers import Tokenizer

    limits.limit(128 + 16 * size, 2 + size // 4)
    raw = sys.stdin.buffer.read()
    said = _looked_at(raw, rows)
    if said is None:
        try:
            backend = Tokenizer.from_str(raw.decode())
            backend.no_padding()
            backend.no_truncation()
            for text in _TEXTS:
                backend.decode(backend.encode(text).ids)
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # (a panic of the library is no Exception)
            said = Message("{text}", {"text": shown(str(error).partition("\n")[0] or type(error).__name__, 500)})
    sys.stdout.buffer.write(json.dumps(said and {"text": said.text, "values": said.values}).encode())


if __name__ == "__main__":
    main()

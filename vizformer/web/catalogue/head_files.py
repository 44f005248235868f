"""The heads of a long text as small files, each fetched by the browser when its reader wants it.

A page packs only an address.  The browser then asks for the chosen head, and for the small maps of one layer after the
other: the first map is on the screen before all heads have been looked through, another head comes without a run of the
page, and what a browser has fetched once it keeps.

An address is a name that nobody can guess (an HMAC with a key of this process): whoever has one was shown that page.  What
it stands for is kept for a while, bounded by bytes; a browser that asks later is told that it is gone, and tells its page.
"""

import hmac
import secrets
from typing import TYPE_CHECKING

import numpy as np

from vizformer.components.packing import head_columns, layer_columns, pack_address
from vizformer.web.catalogue import subject as subjects
from vizformer.web.catalogue import subject_cache
from vizformer.web.catalogue.bounded_cache import Cache, cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.view import Without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy import generic
    from numpy.typing import NDArray

    from vizformer.analysis import Kind, TraceHeads
    from vizformer.components.payload import HeadsPayload

PLACE = "vizformer-heads"  # the first part of the addresses' path
_ADDRESS_BYTES = 8 * 2**20  # of the texts that addresses stand for
_KEY = secrets.token_bytes(32)
_OFFERED = Cache(lambda: _ADDRESS_BYTES)


class GoneError(LookupError):
    """What an address stood for is not kept any more, or never was."""


def packed(subject: Subject, kind: "Kind", without: Without, base: str) -> "HeadsPayload":
    """The address of the heads of one kind, packed for the browser.

    Args:
        base: the path at which this server's addresses begin ("" where it has the whole name for itself).
    """
    name = hmac.digest(_KEY, repr((subject, kind, without)).encode(), "sha256").hex()[:40]
    _OFFERED.get(name, lambda: (subject, kind, without))
    return _payload(subject, kind, without, f"{base}/{PLACE}/{name}")


@cached
def _payload(subject: Subject, kind: "Kind", without: Without, address: str) -> "HeadsPayload":
    return pack_address(subject_cache.numbers(subject, kind, without), address)


def head_file(name: str, layer: int, head: int) -> bytes:
    """One head: what its map is computed from, or the map itself where numbers were set by hand in its mask."""
    return _file(head_columns(_found(name, layer, head), layer, head))


def layer_file(name: str, layer: int) -> bytes:
    return _file(layer_columns(_found(name, layer), layer))


def _found(name: str, layer: int, head: int = 0) -> "TraceHeads":
    """What an address stands for, where its numbers are kept: an address alone never starts a forward."""

    def missing() -> "tuple[Subject, Kind, Without]":
        raise GoneError(f"{name}, layer {layer}, head {head}")

    subject, kind, without = _OFFERED.get(name, missing)
    if not subjects.trace.holds(subject):
        missing()
    heads = subject_cache.numbers(subject, kind, without)
    if layer >= heads.shape[0] or head >= heads.shape[1]:
        missing()
    return heads


def _file(columns: "Mapping[str, NDArray[generic]]") -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(column) for name, column in columns.items()})

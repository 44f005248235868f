"""The heads of a text, and the boxes beside them, as small files, each fetched by the browser when its reader wants it.

A page packs only an address.  The browser then asks for the chosen head, and for the small maps of one layer after the
other: the first map is on the screen before all heads have been looked through, another head comes without a run of the
page, and what a browser has fetched once it keeps.

An address is a name that nobody can guess (an HMAC with a key of this process): whoever has one was shown that page.  What
it stands for is kept for a while, bounded by bytes; a browser that asks later is told that it is gone, and tells its page.
"""

import hmac
import json
import secrets
from typing import TYPE_CHECKING

import numpy as np

from vizformer.components.packing import head_columns, layer_columns, pack_address
from vizformer.errors import VizformerError
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
    from vizformer.analysis.one_forward.box_numbers import Box
    from vizformer.components.packing import HeadsPayload

PLACE = "vizformer-heads"  # the first part of the addresses' path
_ADDRESS_BYTES = 8 * 2**20  # of the texts that addresses stand for
_KEY = secrets.token_bytes(32)
_OFFERED = Cache(lambda: _ADDRESS_BYTES)


class GoneError(LookupError):
    """Raised for an address whose content is not kept any more, or never was."""


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
    return tensor_file(head_columns(_found(name, layer, head), layer, head))


def layer_file(name: str, layer: int) -> bytes:
    return tensor_file(layer_columns(_found(name, layer), layer))


def box_file(name: str, box: str, layer: int, row: int) -> bytes:
    """What a box of the picture does with the row of one token, as JSON."""
    from vizformer.analysis.one_forward.box_numbers import BOXES

    subject, kind, __ = _offered(name)
    if box not in BOXES:
        raise GoneError(f"{name}, {box}")
    try:
        return json.dumps(box_content(subject, box, kind, layer, row), ensure_ascii=False).encode()
    except VizformerError as error:
        raise GoneError(f"{name}, {box}, layer {layer}, row {row}") from error


def box_content(subject: Subject, box: "Box", kind: "Kind", layer: int, row: int) -> dict[str, object]:
    """The vectors of a box for a row, and their proof, as a browser reads them.

    Raises:
        TraceError: no such row or layer.
    """
    from vizformer.analysis.one_forward.box_numbers import numbers_of_box
    from vizformer.analysis.one_forward.picture_numbers import CELLS

    found = numbers_of_box(subject.checkpoint, subject.trace, box, kind, layer, row)
    proof = found.proof
    vectors = [
        {
            "name": one.name,
            "count": len(one.values),
            "cells": one.values[one.first : one.first + CELLS].tolist(),
            "first": one.first,
            "written": one.written,
            "terms": one.terms,
            "names": one.names,
        }
        for one in found.vectors
    ]
    said = None if proof is None else {"difference": proof.difference, "holds": proof.holds}
    return {"vectors": vectors, "proof": said, "look": found.look}


def _offered(name: str) -> "tuple[Subject, Kind, Without]":
    """The request that an address stands for, if its numbers are kept; an address alone never starts a forward."""

    def missing() -> "tuple[Subject, Kind, Without]":
        raise GoneError(name)

    found = _OFFERED.get(name, missing)
    return found if subjects.trace.holds(found[0]) else missing()


def _found(name: str, layer: int, head: int = 0) -> "TraceHeads":
    subject, kind, without = _offered(name)
    heads = subject_cache.numbers(subject, kind, without)
    if layer >= heads.shape[0] or head >= heads.shape[1]:
        raise GoneError(f"{name}, layer {layer}, head {head}")
    return heads


def tensor_file(columns: "Mapping[str, NDArray[generic]]") -> bytes:
    """A safetensors file, as the scripts read it."""
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(column) for name, column in columns.items()})

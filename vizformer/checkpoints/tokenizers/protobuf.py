"""Protocol buffers read from their bytes alone: fields by number, without a schema and without generated code.

A message is a row of (key, value): key = number << 3 | wire type, values are varints (0), 8 bytes (1), a length and as
many bytes (2), or 4 bytes (5).  Source: protobuf.dev/programming-guides/encoding.
"""

import struct
from collections.abc import Iterator

Value = int | bytes
LARGEST_NUMBER = 2**29 - 1


class WireError(ValueError):
    """Bytes that are no message."""


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """The fields of a message in order: number, and a varint as int, everything else as bytes.

    Raises:
        WireError: a field that is cut off, or of a kind that no message has any more.
    """
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if not 1 <= number <= LARGEST_NUMBER:
            raise WireError(f"field number {number} at byte {place}")
        if kind == 0:
            value, place = _varint(message, place)
            yield number, value
            continue
        if kind == 2:
            size, place = _varint(message, place)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise WireError(f"wire type {kind} at byte {place}")
        if size > end - place:
            raise WireError(f"a field of {size} bytes at byte {place} is cut off")
        yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; at most ten bytes."""
    value = shift = 0
    for place_now in range(place, min(place + 10, len(message))):
        byte = message[place_now]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place_now + 1
        shift += 7
    raise WireError(f"a number at byte {place} does not end")


def number(value: Value) -> int:
    """A varint as the signed number it stands for."""
    if not isinstance(value, int):
        raise WireError("bytes where a number belongs")
    return value - 2**64 if value >= 2**63 else value


def real(value: Value) -> float:
    """Four bytes as the float they stand for."""
    if not isinstance(value, bytes) or len(value) != 4:
        raise WireError("something else where a float belongs")
    return float(struct.unpack("<f", value)[0])


def raw(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a number where bytes belong")
    return value

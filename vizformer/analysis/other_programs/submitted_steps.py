"""Numbers that somebody's own program wrote, as tensors by name: from a file or from text; nothing of it is executed.

Whatever is read is bounded before it is touched: bytes, names, numbers, dimensions.  A .npz is a zip of arrays, each of
which says how many numbers it has; that is compared with the bytes that are there before any memory is asked for.
"""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import TypeGuard

import numpy as np
from numpy import ndarray

from vizformer.errors import TraceError
from vizformer.text.text_growth import shown

MAX_BYTES = 16 * 2**20  # of a file, packed and unpacked
MAX_TEXT_BYTES = 4 * 2**20  # of JSON: as Python's lists it takes thirty times as much
MAX_BRACKETS, MAX_WORDS = 100_000, 600_000  # of a text: a second of work at most
MAX_NAMES = 2000
_SIGNS = {"{": MAX_NAMES + 2, '"': 16 * MAX_NAMES, ",": MAX_WORDS}  # how often they may stand in JSON
MAX_DIMENSIONS = 6
SUFFIXES = ("safetensors", "npz", "json")

_WORD = re.compile(  # brackets, numbers, dots in place of numbers, names
    r"[\[\](){}]"
    # (possessive, and never from inside of a number: a million digits are gone through once)
    r"|[-+]?(?<![\w.])(?:inf|nan|\d++\.?\d*+(?:[eE][-+]?\d++)?|\.\d++(?:[eE][-+]?\d++)?)(?![\w.])"
    r"|\.\.\."
    r"|[^\W\d]\w*"
)
_FLOATS = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}
_BFLOAT16 = "BF16"


def read_file(name: str, content: bytes) -> dict[str, ndarray]:
    """The tensors of a .safetensors, .npz or .json file.

    Raises:
        TraceError: another kind of file, one that is damaged or too large, or that holds something else than numbers.
    """
    check_size(len(content))
    kind = name.rpartition(".")[2].lower()
    if kind == "safetensors":
        return _checked(safetensors_arrays(content))
    if kind == "npz":
        return _checked(npz_arrays(content))
    if kind == "json":
        if len(content) > MAX_TEXT_BYTES:  # (as text it may take four times as much)
            raise _too_large()
        return read_text(_decoded(content))
    raise TraceError("This is no .safetensors, .npz or .json file. Save the steps in one of these.")


def check_size(size: int) -> None:
    """Raises TraceError where so many bytes are more than is read."""
    if size > MAX_BYTES:
        raise _too_large()


def read_text(text: str, name: str = "") -> dict[str, ndarray]:
    """Tensors from JSON, {"name": [[...]], ...}, or one tensor as PyTorch and numpy print it, which is called `name`.

    Raises:
        TraceError: neither; dots in place of numbers; rows of different lengths; too much.
    """
    text = text.strip()
    if len(text) > MAX_TEXT_BYTES:
        raise _too_large()
    if text.count("[") > MAX_BRACKETS:
        raise _too_long_a_text()
    if text.startswith("{"):
        return _checked(_json(text))
    if not name:
        raise TraceError("A printed tensor does not say which step it is: choose one.")
    return _checked({name: _printed(text)})


def _decoded(content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged("not UTF-8") from error


def safetensors_arrays(content: bytes) -> dict[str, ndarray]:
    """The tensors of a .safetensors file.

    The header is JSON that names type, shape and place of each tensor; the numbers follow it.

    Source: https://github.com/huggingface/safetensors, "Format".
    """
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > len(content) - 8:
        raise _damaged("its header is longer than the file")
    if length > MAX_TEXT_BYTES:
        raise _too_large()
    header = _object(content[8 : 8 + length].decode("utf-8", "replace"))
    header.pop("__metadata__", None)
    body = memoryview(content)[8 + length :]
    found, taken = {}, 0
    if len(header) > MAX_NAMES:
        raise _too_many()
    for name, entry in header.items():
        kind, shape, (start, end) = _entry(entry, name)
        size = 2 if kind == _BFLOAT16 else np.dtype(_FLOATS[kind]).itemsize
        if not 0 <= start <= end <= len(body) or end - start != size * _count(shape):
            raise _damaged(f"{name[:60]}: its shape and its bytes do not fit")
        taken += end - start
        if taken > len(body):  # the same bytes under many names would become many tensors
            raise _damaged("its tensors overlap")
        raw = body[start:end]
        if kind == _BFLOAT16:  # the upper half of a float32
            values = (np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(raw, dtype=np.dtype(_FLOATS[kind]).newbyteorder("<"))
        try:
            found[name] = values.reshape(shape)
        except ValueError as error:  # no numbers, and sides of which numpy keeps no product
            raise _damaged(f"{name[:60]}: a shape that is too large") from error
    return found


def _entry(entry: object, name: str) -> tuple[str, tuple[int, ...], tuple[int, int]]:
    if isinstance(entry, dict):
        kind, shape, place = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
        if (kind in _FLOATS or kind == _BFLOAT16) and _whole(shape) and _whole(place) and len(place) == 2:
            return str(kind), tuple(shape), (place[0], place[1])
    raise _damaged(f"{name[:60]} has no type, shape and place that are read")


def _whole(values: object) -> TypeGuard[list[int]]:
    if not isinstance(values, list) or len(values) > MAX_DIMENSIONS:
        return False
    return all(type(value) is int and 0 <= value < 2**40 for value in values)


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count


def npz_arrays(content: bytes, most: int = MAX_BYTES, *, texts: bool = False) -> dict[str, ndarray]:
    """The arrays of a .npz file, of at most `most` bytes unpacked; with `texts` also those of texts.

    Raises:
        TraceError: a file that is damaged or too large, or that holds something else.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if len(members) > MAX_NAMES:
                raise _too_many()
            if sum(member.file_size for member in members) > most:
                raise _too_large(most)
            found, left = {}, most
            for member in members:
                if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # all that numpy writes
                    raise _damaged("compressed in a way that numpy does not write")
                with archive.open(member) as file:
                    raw = file.read(left + 1)  # the sizes that a zip gives need not be true
                left -= len(raw)
                if left < 0:
                    raise _too_large(most)
                found[member.filename.removesuffix(".npy")] = npy_array(raw, member.filename, texts=texts)
            return found
    except TraceError:
        raise
    except Exception as error:  # of zipfile and zlib, about a file from outside
        raise _damaged(str(error)[:120]) from error


def npy_array(raw: bytes, name: str, *, texts: bool = False) -> ndarray:
    """The array of a .npy file: its header is read first, and its bytes are no more than it says.

    Raises:
        TraceError: a file that is damaged, or that holds Python's objects.
    """
    file = io.BytesIO(raw)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except Exception as error:  # numpy parses the header as Python's tokenizer does, with all that this can raise
        raise _damaged(f"{name[:60]}: {str(error)[:120]}") from error
    rest = raw[file.tell() :]
    if dtype.hasobject or dtype.kind not in ("fiubUS" if texts else "fiub") or len(shape) > MAX_DIMENSIONS:
        raise _damaged(f"{name[:60]} holds something else than numbers")
    if any(side < 0 for side in shape) or _count(shape) * dtype.itemsize != len(rest):
        raise _damaged(f"{name[:60]}: its shape and its bytes do not fit")
    return np.frombuffer(rest, dtype=dtype).reshape(shape, order="F" if fortran else "C")


def _object(text: str) -> dict[str, object]:
    if any(text.count(sign) > most for sign, most in _SIGNS.items()):
        raise _too_long_a_text()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(f"no JSON: {str(error)[:120]}") from error
    if not isinstance(found, dict):
        raise _damaged("an object with names is needed")
    return {shown(name, len(name)): value for name, value in found.items()}


def _json(text: str) -> dict[str, ndarray]:
    found = _object(text)
    if len(found) > MAX_NAMES:
        raise _too_many()
    return {name: _array(values, name) for name, values in found.items()}


def _array(values: object, name: str) -> ndarray:
    """Nested lists of numbers as an array.

    Text is refused before numpy sees it, and so is what is nested too deeply: numpy would make texts of all.
    """
    level = [values]
    for _ in range(MAX_DIMENSIONS + 1):
        if all(not isinstance(one, list) for one in level):
            break
        level = [inner for one in level for inner in (one if isinstance(one, list) else [one])]
    if not all(isinstance(one, int | float) for one in level):
        raise _damaged(f"{name[:60]} holds something else than numbers")
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise _damaged(f"{name[:60]}: a number that is too large") from error
    except (ValueError, TypeError) as error:
        raise TraceError("{name} has rows of different lengths: it is no tensor.", name=name[:60]) from error


def _printed(text: str) -> ndarray:
    """tensor([[1., -inf], [0.5, 2e-3]], grad_fn=...) or array([...]), or the same without commas, as numpy prints it."""
    stack: list[list[object]] = []
    for number, found in enumerate(_WORD.finditer(text)):
        if number > MAX_WORDS:
            raise _too_long_a_text()
        word = found.group()
        if word == "[":
            if len(stack) > MAX_DIMENSIONS:
                raise _damaged("too many brackets")
            stack.append([])
        elif word == "]" and stack:
            done = stack.pop()
            if not stack:
                return _array(done, "tensor")
            stack[-1].append(done)
        elif word == "...":
            raise TraceError(
                "The tensor is printed with dots in place of numbers. Print all of it: "
                'torch.set_printoptions(profile="full").'
            )
        elif stack:
            try:
                stack[-1].append(float(word))
            except ValueError as error:
                raise _damaged(f"“{word[:20]}” among the numbers") from error
    raise TraceError("There is no tensor in this text: it should look like tensor([[0.1, 0.2], [0.3, 0.4]]).")


def _checked(found: Mapping[str, ndarray]) -> dict[str, ndarray]:
    if not found:
        raise TraceError("There is no tensor in it.")
    return {name: values if values.dtype.kind == "f" else values.astype(np.float64) for name, values in found.items()}


def _too_large(most: int = MAX_BYTES) -> TraceError:
    return TraceError(
        "That is more than is read here: at most {file} MB of a file, {text} MB of text. Hand in less, or a shorter "
        "sentence.",
        file=most // 2**20,
        text=MAX_TEXT_BYTES // 2**20,
    )


def _too_long_a_text() -> TraceError:
    return TraceError(
        "Of a text at most {rows:,} rows and {numbers:,} numbers are read here. Save the steps as .npz or .safetensors.",
        rows=MAX_BRACKETS,
        numbers=MAX_WORDS,
    )


def _too_many() -> TraceError:
    return TraceError("There are more than {n} names in it. Hand in fewer.", n=MAX_NAMES)


def _damaged(reason: str) -> TraceError:
    return TraceError("This cannot be read ({reason}). Save it again.", reason=reason)

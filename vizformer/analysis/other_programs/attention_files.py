"""Files of attention weights that somebody else made: bounded before they are read, and nothing in them is run.

found = read_attention("maps.npz", content)
"""

import json
import sys
from collections.abc import Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy import ndarray

from vizformer.analysis.heads.trace_heads import TraceNumbers
from vizformer.analysis.other_programs.attention_arrays import (
    MAX_CHARACTERS,
    MAX_TOKENS,
    NO_TOKENS,
    PAGE,
    AttentionArrays,
    Given,
    Limits,
    Tokens,
    attention_groups,
    check_numbers,
    labels,
)
from vizformer.analysis.other_programs.attention_outputs import TEXTS, collect, tokens_of
from vizformer.analysis.other_programs.submitted_steps import npy_array, npz_arrays, safetensors_arrays
from vizformer.errors import TraceError
from vizformer.messages import N_
from vizformer.model.trace_file import open_trace

_MOST_JSON = 4 * 2**20  # bytes of text: as Python's lists it takes thirty times as much
_SIGNS = {
    "[": 30_000,
    "{": 100,
    ",": 600_000,
    '"': 100_000,
}  # how often they may stand in it: half a second of work at most
_PICKLES = ("pt", "pth", "bin", "ckpt", "pkl", "pickle", "joblib")


def read_attention(
    name: str,
    content: bytes,
    tokens: Tokens = NO_TOKENS,
    limits: Limits = PAGE,
) -> dict[str, AttentionArrays]:
    """What a .npz, .npy, .safetensors or .json file holds (`attention_groups`); what is neither that nor tokens is named.

    A .npz and a .json may have texts as well, under the names of `attention_outputs.TEXTS`.  Of a trace that was saved each
    kind of attention is a group.

    Raises:
        TraceError: another kind of file, one that is damaged or too large, or no attention.
    """
    if len(content) > limits.file:
        raise TraceError(N_("The file is larger than {limit} MB. Save fewer layers in it.", limit=limits.file // 2**20))
    kind = name.rpartition(".")[2].lower()
    if kind == "safetensors" and b"vizformer.trace" in content[: 8 + int.from_bytes(content[:8], "little")]:
        return _of_trace(content, tokens, limits)
    if kind == "npz":
        given = _with_texts(npz_arrays(content, limits.file, texts=True))
    elif kind == "npy":
        given = Given(arrays={name.rpartition(".")[0] or name: npy_array(content, name)})
    elif kind == "safetensors":
        given = Given(arrays=safetensors_arrays(content))
    elif kind == "json":
        given = _json_arrays(content, limits)
    elif kind in _PICKLES:
        raise TraceError(
            "A .{kind} file is a program for Python's pickle, which is not run here. Save the arrays themselves: "
            "{code}",
            kind=kind,
            code='numpy.savez_compressed("maps.npz", **{f"layer{i}": a.float().numpy() for i, a in enumerate(attentions)})',
        )
    else:
        raise TraceError("This is no .npz, .npy, .safetensors or .json file. Save the arrays in one of these.")
    return attention_groups(given, tokens, limits)


def _with_texts(found: dict[str, ndarray]) -> Given:
    texts = {name: _texts(found.pop(name), name) for name in TEXTS if name in found and found[name].dtype.kind in "US"}
    others = [name for name, array in found.items() if array.dtype.kind in "US"]
    arrays = {name: array for name, array in found.items() if name not in others}
    return Given(arrays=arrays, tokens=tokens_of(texts), left_out=tuple(others))


def _json_arrays(content: bytes, limits: Limits) -> Given:
    """Nested lists, alone or by name, with tokens or without; as text they are bounded before they are parsed."""
    if len(content) > _MOST_JSON:
        raise TraceError(
            "Of a .json file at most {limit} MB are read, since a number takes many bytes there. Save the arrays as .npz.",
            limit=_MOST_JSON // 2**20,
        )
    for sign, most in _SIGNS.items():
        if content.count(sign.encode()) > most:
            raise TraceError(
                "Of a .json file at most {rows:,} rows and {numbers:,} numbers are read. Save the arrays as .npz.",
                rows=_SIGNS["["],
                numbers=_SIGNS[","],
            )
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise TraceError(
            "This cannot be read ({reason}). Save it again.", reason=f"no JSON: {str(error)[:120]}"
        ) from error
    if isinstance(found, dict):
        arrays: dict[str, Any] = {}
        for name, value in found.items():
            called = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")[:MAX_CHARACTERS]
            texts = isinstance(value, list) and value and all(isinstance(one, str) for one in value)
            arrays[called] = [one[:MAX_CHARACTERS] for one in value] if texts else _array(called, value)
        return collect(arrays, limits)
    if not isinstance(found, list):
        raise TraceError("There is no array in it: hand in attention weights, [layers, heads, queries, keys].")
    array = _array("attention", found)
    return collect({"attention": array} if isinstance(array, str) else array, limits)


def _array(name: str, value: object) -> Any:
    """Nested lists of numbers as an array, or as a list of arrays where layers differ; what else there is, as it is."""
    if not isinstance(value, list):
        return np.float32(value) if isinstance(value, float) else None if value is None else ""  # (no attention)
    level, depth = value, 0
    while level and any(isinstance(one, list) for one in level):
        level, depth = [inner for one in level for inner in (one if isinstance(one, list) else [one])], depth + 1
        if depth > 6:
            raise TraceError("{name} has rows of different lengths: it is no tensor.", name=name[:60])
    if not all(one is None or isinstance(one, int | float) for one in level):
        return ""
    try:
        return np.array(value, dtype=np.float32)  # (null becomes NaN)
    except OverflowError as error:
        raise TraceError(
            "This cannot be read ({reason}). Save it again.", reason="a number that is too large"
        ) from error
    except (ValueError, TypeError) as error:
        layers = [np.asarray(one, dtype=np.float32) for one in value if isinstance(one, list) and _is_square(one)]
        if len(layers) == len(value):
            return layers
        raise TraceError("{name} has rows of different lengths: it is no tensor.", name=name[:60]) from error


def _is_square(value: object) -> bool:
    try:
        return np.asarray(value, dtype=np.float32).ndim >= 2
    except (ValueError, TypeError, OverflowError):
        return False


def _of_trace(content: bytes, tokens: Tokens, limits: Limits) -> dict[str, AttentionArrays]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # (a trace is mapped: only files can be)
        path = Path(folder) / "trace.safetensors"
        path.write_bytes(content)
        numbers = TraceNumbers(open_trace(path))
        of_kinds = {kind: numbers.heads(kind) for kind in numbers.kinds}
        check_numbers(sum(prod(heads.shape) for heads in of_kinds.values()), limits)
        groups: dict[str, AttentionArrays] = {}
        for kind, heads in of_kinds.items():
            weights = np.empty(heads.shape, np.float32)
            for layer, head in np.ndindex(weights.shape[:2]):  # one map at a time: the memory is for all of them once
                weights[layer, head] = heads.pattern(layer, head)
            named = labels(*heads.shape[2:], tokens.queries or heads.query_tokens, tokens.keys or heads.key_tokens)
            sites = tuple(record.site for record in heads.records)
            groups[kind] = AttentionArrays(weights, *named, heads.blocked().copy(), sites)
        return groups


def _texts(array: ndarray, name: str) -> Sequence[str]:
    """Decodes an array of texts, each cut to its beginning."""
    if array.ndim != 1 or len(array) > MAX_TOKENS:
        raise TraceError(
            "{name} has the shape {shape}; tokens are one list of at most {most:,} texts.",
            name=name[:60],
            shape=str(list(array.shape)),
            most=MAX_TOKENS,
        )
    if array.dtype.kind == "U":  # four bytes a character, which may hold any number: numpy then refuses to read it
        codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)).copy()
        codes[codes > sys.maxunicode] = 0xFFFD
        array = codes.view(array.dtype)
    return tuple(
        (one.decode("utf-8", "replace") if isinstance(one, bytes) else one)[:MAX_CHARACTERS] for one in array.tolist()
    )

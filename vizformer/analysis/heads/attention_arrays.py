"""Attention that some other program computed, as arrays: of one's own framework, of images, of proteins.

    found = read_attention("maps.npz", content)            # a file that somebody else made: bounded, nothing is run
    found = attention_groups({"layer 0": a, "layer 1": b}) # arrays

One array may hold a layer or all of them; what has no place here is refused, with the shape that it has.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.trace_heads import TraceNumbers
from vizformer.analysis.own_steps.submitted_steps import npy_array, npz_arrays, safetensors_arrays
from vizformer.components.contract import Arrays
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import Reason
from vizformer.model.trace_file import open_trace
from vizformer.text.text_growth import shown

SUFFIXES = ("npz", "npy", "safetensors")
MAX_BYTES = 128 * 2**20  # of a file, packed and unpacked
MAX_NUMBERS = 32 * 2**20  # of all arrays together; each takes four bytes here, however few it has in the file
MAX_HEADS = 2**14  # of all layers together
MAX_TOKENS = 2**15  # of one side
MAX_CHARACTERS = 120  # of a token, and of a name
TOKENS = {"tokens": "both", "query_tokens": "queries", "key_tokens": "keys"}  # names of arrays of texts in a .npz
_NEAR_1 = {2: 2e-2, 4: 1e-3, 8: 1e-3}  # how far from 1 the sum of a row may be, by the bytes of a number
_NO_WEIGHT = 1e-3  # how far outside of 0..1 rounding may bring a weight


@dataclass(frozen=True)
class AttentionArrays(Arrays):
    """The heads of some layers, over one text; of arrays alone the future is taken for masked where every weight above the
    diagonal of all heads is exactly 0.
    """

    layers: tuple[str, ...] = ()  # what each layer's array is called where it came from
    notes: tuple[Message, ...] = ()  # what was taken for what, and rows that do not sum to 1


def read_attention(
    name: str, content: bytes, query_tokens: Sequence[str] = (), key_tokens: Sequence[str] = ()
) -> dict[str, AttentionArrays]:
    """What a .npz, .npy or .safetensors file holds: a group for each array that has all layers, one for single layers.

    A .npz may have texts as well, under the names tokens, query_tokens and key_tokens.  Of a trace that was saved each
    kind of attention is a group.

    Raises:
        TraceError: another kind of file, one that is damaged or too large, or no attention.
    """
    if len(content) > MAX_BYTES:
        raise TraceError(N_("The file is larger than {limit} MB. Save fewer layers in it.", limit=MAX_BYTES // 2**20))
    kind = name.rpartition(".")[2].lower()
    if kind == "npz":
        found = npz_arrays(content, MAX_BYTES, texts=True)
    elif kind == "npy":
        found = {name.rpartition(".")[0] or name: npy_array(content, name)}
    elif kind == "safetensors" and b"vizformer.trace" in content[: 8 + int.from_bytes(content[:8], "little")]:
        return _of_trace(content, query_tokens, key_tokens)
    elif kind == "safetensors":
        found = safetensors_arrays(content)
    else:
        raise TraceError("This is no .npz, .npy or .safetensors file. Save the arrays in one of these.")
    given = {"queries": query_tokens, "keys": key_tokens}
    for called, side in TOKENS.items():
        if called in found and found[called].dtype.kind in "US":
            texts = _texts(found.pop(called), called)
            for one in ("queries", "keys") if side == "both" else (side,):
                given[one] = given[one] or texts
    return attention_groups(found, given["queries"], given["keys"])


def _of_trace(content: bytes, query_tokens: Sequence[str], key_tokens: Sequence[str]) -> dict[str, AttentionArrays]:
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # (a trace is mapped: only files can be)
        path = Path(folder) / "trace.safetensors"
        path.write_bytes(content)
        numbers = TraceNumbers(open_trace(path))
        of_kinds = {kind: numbers.heads(kind) for kind in numbers.kinds}
        _check_numbers(sum(prod(heads.shape) for heads in of_kinds.values()))
        groups: dict[str, AttentionArrays] = {}
        for kind, heads in of_kinds.items():
            weights = np.empty(heads.shape, np.float32)
            for layer, head in np.ndindex(weights.shape[:2]):  # one map at a time: the memory is for all of them once
                weights[layer, head] = heads.pattern(layer, head)
            tokens = labels(*heads.shape[2:], query_tokens or heads.query_tokens, key_tokens or heads.key_tokens)
            sites = tuple(record.site for record in heads.records)
            groups[kind] = AttentionArrays(weights, *tokens, heads.blocked().copy(), sites)
        return groups


def _check_numbers(n: int) -> None:
    if n > MAX_NUMBERS:
        raise TraceError(
            "The arrays have more than {limit:,} numbers together. Hand in fewer layers, or a shorter text.",
            limit=MAX_NUMBERS,
        )


def attention_groups(
    arrays: Mapping[str, ndarray], query_tokens: Sequence[str] = (), key_tokens: Sequence[str] = ()
) -> dict[str, AttentionArrays]:
    """Arrays by name as heads: [layers, heads, n, n] (or [layers, 1, heads, n, n]) is a group of its own; those of
    [heads, n, n], [1, heads, n, n] or [n, n] are a layer each, in the order of the numbers in their names.

    `query_tokens` also name the keys where there are as many of both and no `key_tokens`.
    """
    _check_numbers(sum(array.size for array in arrays.values()))
    groups: dict[str, dict[str, ndarray]] = {}
    single: dict[str, ndarray] = {}
    for name in sorted(arrays, key=_in_order):
        whole, layers = _layers(name, arrays[name])
        if whole:
            groups[name] = {f"{name}[{index}]": one for index, one in enumerate(layers)}
        else:
            single[name] = layers[0]
    by_shape: dict[tuple[int, ...], dict[str, ndarray]] = {}
    for name, one in single.items():
        by_shape.setdefault(one.shape, {})[name] = one
    for found in by_shape.values():
        first, last = next(iter(found)), next(reversed(found))
        groups[first if len(found) == 1 else f"{first} … {last}"] = found
    if not groups:
        raise TraceError("There is no array in it: hand in attention weights, [layers, heads, queries, keys].")
    return {
        shown(name, MAX_CHARACTERS): _group(
            found, query_tokens, key_tokens, heads_of_one_layer=len(found) == 1 and arrays[name].ndim == 3
        )
        for name, found in groups.items()
    }


def as_arrays(arrays: object, depth: int = 0) -> dict[str, ndarray]:
    """One array, several in a list, or by name, of numpy or of what numpy understands (PyTorch's tensors too).

    Raises:
        TraceError: something else.
    """
    if isinstance(arrays, Mapping):
        return {str(name): _array(value) for name, value in arrays.items()}
    if isinstance(arrays, list | tuple) and arrays and not isinstance(arrays[0], int | float | list | tuple):
        return {str(index): _array(value) for index, value in enumerate(arrays)}
    return {"attention": _array(arrays)}


def _array(value: object) -> ndarray:
    detach = getattr(value, "detach", None)
    if detach is not None:  # a tensor of PyTorch, which may be on a device, and of a kind that numpy has not
        value = detach().cpu().float().numpy()
    found = np.asarray(value)
    if found.dtype.kind not in "fiub":
        raise TraceError("This is no array of numbers. Hand in attention weights, [layers, heads, queries, keys].")
    return found


def _in_order(name: str) -> tuple[tuple[int, int | str], ...]:
    """layer.2 before layer.10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name[:200]) if part)


def _layers(name: str, array: ndarray) -> tuple[bool, list[ndarray]]:
    """Whether an array holds all layers, and each as [heads, n_q, n_k]."""
    shape = array.shape
    if array.dtype.kind not in "fiub" or not 2 <= len(shape) <= 5 or 0 in shape:
        raise _no_attention(name, shape)
    if prod(shape[:-2]) > MAX_HEADS or max(shape[-2:]) > MAX_TOKENS:
        raise TraceError(
            "{name} has the shape {shape}; at most {heads:,} heads and {tokens:,} tokens are shown. Hand in fewer.",
            name=name[:60],
            shape=_written(shape),
            heads=MAX_HEADS,
            tokens=MAX_TOKENS,
        )
    if len(shape) == 5:
        if shape[1] != 1:
            raise TraceError(
                "{name} has the shape {shape}: {n} texts in one batch. Hand in one of them, [layers, heads, queries, "
                "keys].",
                name=name[:60],
                shape=_written(shape),
                n=shape[1],
            )
        return True, list(array[:, 0])
    if len(shape) == 4:
        return shape[0] > 1, list(array)
    return False, [array if len(shape) == 3 else array[None]]


def _group(
    layers: Mapping[str, ndarray], query_tokens: Sequence[str], key_tokens: Sequence[str], *, heads_of_one_layer: bool
) -> AttentionArrays:
    first = next(iter(layers.values()))
    weights = np.stack(list(layers.values()), dtype=np.float32, casting="unsafe")  # [layers, heads, n_q, n_k]
    _, _, n_q, n_k = weights.shape
    names = tuple(layers)
    low, high = float(weights.min()), float(weights.max())
    if not np.isfinite((low, high)).all():  # (one NaN makes both NaN)
        raise TraceError(
            "{name} has numbers that are not finite. Scores before the softmax have -inf where a key is masked: hand in "
            "the weights after it.",
            name=names[0][:60],
        )
    if low < -_NO_WEIGHT or high > 1 + _NO_WEIGHT:
        raise TraceError(
            "{name}: the numbers go from {low} to {high}, and weights are from 0 to 1. If these are scores, apply the "
            "softmax to the last axis first.",
            name=names[0][:60],
            low=f"{low:.3g}",
            high=f"{high:.3g}",
        )
    notes = _sums(weights, _NEAR_1.get(first.dtype.itemsize, 1e-3) if first.dtype.kind == "f" else 1e-3)
    if heads_of_one_layer:
        notes.append(N_("One array of {n} maps: they are taken as the heads of one layer.", n=weights.shape[1]))
    queries, keys = labels(n_q, n_k, query_tokens, key_tokens)
    future = None
    if n_q == n_k > 1 and not any(np.triu(one, 1).any() for one in weights.reshape(-1, n_q, n_k)):
        future = np.triu(np.full((n_q, n_k), Reason.FUTURE, np.uint8), 1)
    return AttentionArrays(np.clip(weights, 0.0, 1.0, out=weights), queries, keys, future, names, tuple(notes))


def _sums(weights: Float[ndarray, "layers heads n_q n_k"], near: float) -> list[Message]:
    """What is to say about rows that do not sum to 1."""
    n_off, n_empty, worst = 0, 0, (0.0, 0, 0, 0, 0.0)
    for layer, head in np.ndindex(weights.shape[:2]):  # of one map at a time: the sums of all might need more memory
        sums = weights[layer, head].sum(-1, dtype=np.float64)  # [queries]
        empty = np.abs(sums) <= 1e-6
        distance = np.where(empty, 0, np.abs(sums - 1))
        row = int(distance.argmax())
        n_off, n_empty = n_off + int((distance > near).sum()), n_empty + int(empty.sum())
        worst = max(worst, (float(distance[row]), -layer, -head, -row, float(sums[row])))
    notes, n_rows = [], prod(weights.shape[:3])
    if n_off:
        _, layer, head, row, total = worst
        notes.append(
            N_(
                "{n:,} of {all:,} rows do not sum to 1, the farthest off is row {row} of layer {layer}, head {head}: "
                "{total}. They are drawn as they are; weights after a softmax sum to 1.",
                n=n_off,
                all=n_rows,
                row=-row,
                layer=-layer,
                head=-head,
                total=f"{total:.4g}",
            )
        )
    if n_empty:
        notes.append(N_("{n:,} of {all:,} rows are 0 throughout: nothing is looked at there.", n=n_empty, all=n_rows))
    return notes


def labels(
    n_q: int, n_k: int, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of the queries and of the keys: those that are given, else numbers."""
    if not key_tokens and n_q == n_k:
        key_tokens = query_tokens
    for side, tokens, n in ((N_("queries"), query_tokens, n_q), (N_("keys"), key_tokens, n_k)):
        if tokens and len(tokens) != n:
            raise TraceError(
                "There are {n} {side} but {given} tokens for them. Give one for each, in order, or none.",
                n=n,
                side=side,
                given=len(tokens),
            )
    numbers = tuple(str(i) for i in range(max(n_q, n_k)))
    return _whole(query_tokens) or numbers[:n_q], _whole(key_tokens) or numbers[:n_k]


def _texts(array: ndarray, name: str) -> tuple[str, ...]:
    """The beginning of each text."""
    if array.ndim != 1 or len(array) > MAX_TOKENS:
        raise _no_attention(name, array.shape)
    if array.dtype.kind == "U":  # four bytes a character, which may hold any number: numpy then refuses to read it
        codes = array.view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)).copy()
        codes[codes > sys.maxunicode] = 0xFFFD
        array = codes.view(array.dtype)
    return tuple(
        (one.decode("utf-8", "replace") if isinstance(one, bytes) else one)[:MAX_CHARACTERS] for one in array.tolist()
    )


def _whole(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens with U+FFFD for each half of a pair of surrogates, of which no file and no page can be made."""
    return tuple(token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for token in tokens)


def _written(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _no_attention(name: str, shape: tuple[int, ...]) -> TraceError:
    return TraceError(
        "{name} has the shape {shape}, which is no attention: [layers, heads, queries, keys], or [heads, queries, keys] "
        "for each layer.",
        name=name[:60],
        shape=_written(shape),
    )

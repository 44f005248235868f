"""Attention that some other program computed, as arrays: of one's own framework, of images, of proteins.

    given = collect(outputs)                          # whatever a program handed out (`attention_outputs`)
    found = read_attention("maps.npz", content)       # a file that somebody else made (`attention_files`)
    groups = attention_groups(Given(...), tokens)     # heads by the name of the array, or of the kind of attention

One array may hold a layer or all of them; what has no place here is refused, with the shape that it has, or left out by
name where there is attention beside it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from vizformer.components.contract import Arrays
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import Reason
from vizformer.text.pieces import spelled_out, unturned
from vizformer.text.text_growth import shown

MAX_HEADS = 2**14  # of all layers together
MAX_TOKENS = 2**15  # of one side
MAX_LAYERS = 2000  # of one kind of attention
MAX_TEXTS = 64  # of a batch
MAX_GROUPS = 256  # kinds and shapes of attention, a choice each
MAX_CHARACTERS = 120  # of a token, and of a name
_NO_WEIGHT = 1e-3  # how far outside of 0..1 rounding may bring a weight
_OTHER = re.compile(r"mask|ids|hidden|logit|embed|score|loss|label|past|query|key|value|position", re.IGNORECASE)
_ATTENTION = re.compile(r"atten|attn|weight", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The largest input that is read: bytes of a file, packed and unpacked, and numbers in all arrays, four bytes each."""

    file: int
    numbers: int


PAGE = Limits(128 * 2**20, 32 * 2**20)
NOTEBOOK = Limits(2 * 2**30, 2**29)  # the memory is that of whoever asks: BERT-large at 1,024 tokens has 403 M numbers


@dataclass(frozen=True)
class AttentionArrays(Arrays):
    """The heads of some layers, over one text; of arrays alone the future is taken for masked where every weight above the
    diagonal of all heads is exactly 0.  A row of NaN stays one.
    """

    layers: tuple[str, ...] = ()  # what each layer's array is called where it came from
    notes: tuple[Message, ...] = ()  # what was taken for what, and rows that do not sum to 1
    text: int | None = None  # which text of a batch
    either: bool = False  # of one array whose first axis may be layers or the texts of a batch

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The numbers of the layers where their names are such, and not 0, 1, 2, ...; else None."""
        found = tuple(int(name) for name in self.layers if name.isdecimal() and len(name) < 6)
        return found if len(found) == len(self.layers) and found != tuple(range(len(found))) else None


@dataclass(frozen=True)
class Stack:
    """Layers of one kind of attention, as a program handed them out."""

    layers: Mapping[str, ndarray]  # each [texts, heads, n_q, n_k]
    either: bool = False  # one array: what is taken for its layers here may be the texts of a batch
    one_layer: bool = False  # an array [n, n_q, n_k], whose n is taken for heads
    # of layers that were joined: why a cell has no number, 0 where it has one [n_q, n_k]
    missing: Mapping[str, ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Tokens:
    """The labels that were given: of queries and keys, or of the texts that are read and written."""

    queries: Sequence[str] = ()
    keys: Sequence[str] = ()
    source: Sequence[str] = ()
    target: Sequence[str] = ()


NO_TOKENS = Tokens()


@dataclass(frozen=True)
class Given:
    """The arrays that a program returned, before it is known which of them are attention."""

    stacks: Mapping[str, Stack] = field(default_factory=dict)  # attention by the kind it is of
    arrays: Mapping[str, ndarray] = field(default_factory=dict)  # of which nothing but the names is known
    tokens: Tokens = NO_TOKENS
    left_out: tuple[str, ...] = ()  # names of what is no array of numbers
    notes: tuple[Message, ...] = ()


def attention_groups(given: Given, tokens: Tokens = NO_TOKENS, limits: Limits = PAGE) -> dict[str, AttentionArrays]:
    """The heads by name: a group for each kind of attention, for each array of all layers, for layers of one shape, and
    for each text of a batch, `name[text]`.

    [layers, heads, n, n] and [layers, texts, heads, n, n] are groups of their own; [heads, n, n], [1, heads, n, n] and
    [n, n] are a layer each, in the order of the numbers in their names, and so are [texts, heads, n, n] whose names differ
    in their numbers alone.

    `tokens` come before those that were found; those of the queries also name the keys where there are as many of both.

    Raises:
        TraceError: nothing of it is attention; too much of it; another number of tokens.
    """
    stacks, left_out = dict(given.stacks), list(given.left_out)
    if given.arrays:
        chosen, others = _told_apart(given.arrays)
        left_out += others
        check_numbers(sum(array.size for array in chosen.values()), limits)
        stacks |= _stacks(chosen)
    if not stacks:
        raise TraceError("There is no array in it: hand in attention weights, [layers, heads, queries, keys].")
    check_numbers(sum(one.size for stack in stacks.values() for one in stack.layers.values()), limits)
    tokens = Tokens(*((getattr(tokens, side) or getattr(given.tokens, side)) for side in _SIDES))
    notes = list(given.notes)
    if left_out:
        names = ", ".join(shown(name, 40) for name in left_out[:8]) + (", …" if len(left_out) > 8 else "")
        notes.append(N_("Left out, since it is no attention: {names}.", names=names))
    found: dict[str, tuple[Stack, Mapping[str, ndarray], int | None]] = {}
    for name, stack in stacks.items():
        if len(stack.layers) > (MAX_HEADS if stack.either else MAX_LAYERS):
            raise TraceError("There are more than {n:,} layers in it. Hand in fewer.", n=MAX_LAYERS)
        for part, layers in _of_one_shape(stack.layers).items():
            called = (
                name if len(part) == len(stack.layers) else _from_to(part) if name == "" else f"{name} {_from_to(part)}"
            )
            texts = next(iter(layers.values())).shape[0]
            _check_texts(texts)
            for text in range(texts):
                one = called or _from_to(part)
                found[f"{one}[{text}]" if texts > 1 else one] = (
                    stack,
                    {layer: array[text] for layer, array in layers.items()},
                    text if texts > 1 else None,
                )
    if len(found) > MAX_GROUPS:
        raise TraceError("There are more than {n} kinds and shapes of attention in it. Hand in fewer.", n=MAX_GROUPS)
    several, groups = len(found) > 1, dict[str, AttentionArrays]()
    for name, (stack, of_text, index) in found.items():
        group = _group(name, stack, of_text, tokens, several=several)
        said = (*group.notes,) if groups else (*notes, *group.notes)  # of all of it once
        groups[shown(name, MAX_CHARACTERS)] = replace(group, text=index, notes=said)
    if several and any(map(len, (tokens.queries, tokens.keys))) and not any(map(_named, groups.values())):
        first = next(iter(groups.values()))
        labels(*first.shape[2:], tokens.queries, tokens.keys)  # says what does not fit
    return groups


def texts_of(name: str, arrays: AttentionArrays) -> dict[str, AttentionArrays]:
    """Reads the first axis of an array as the texts of a batch: one group of one layer for each text.

    Raises:
        TraceError: more than `MAX_TEXTS`.
    """
    _check_texts(len(arrays.weights))
    found = {}
    for text, weights in enumerate(arrays.weights):
        one = replace(arrays, weights=weights[None], layers=(f"{name}[{text}]",), text=text, either=False, notes=())
        found[f"{name}[{text}]"] = replace(one, notes=tuple(_said_of(one.weights)))
    return found


def _check_texts(n: int) -> None:
    if n > MAX_TEXTS:
        raise TraceError(
            "These are {n:,} texts of a batch; at most {most} are shown. Hand in fewer.", n=n, most=MAX_TEXTS
        )


def check_numbers(n: int, limits: Limits) -> None:
    if n > limits.numbers:
        raise TraceError(
            "The arrays have more than {limit:,} numbers together. Hand in fewer layers, or a shorter text.",
            limit=limits.numbers,
        )


# --- which arrays are attention ---------------------------------------------------------------------------------------


def _told_apart(arrays: Mapping[str, ndarray]) -> tuple[dict[str, ndarray], list[str]]:
    """The arrays that are attention, and the names of the others; where none is, what speaks against the first."""
    by_name = {
        name: array
        for name, array in arrays.items()
        if not _OTHER.search(name) or (_ATTENTION.search(name) and not re.search("mask", name, re.IGNORECASE))
    }
    for named in (by_name, arrays):
        for kinds in ("f", "fiub"):
            found = {name: a for name, a in named.items() if a.dtype.kind in kinds and _is_attention(a)}
            if found:
                return found, [name for name in arrays if name not in found]
    if not arrays:
        return {}, []
    shaped = [name for name, array in (by_name or arrays).items() if 3 <= array.ndim <= 5]
    name = (shaped or list(by_name) or list(arrays))[0]
    _check_shape(name, arrays[name])
    _check_weights(name, *_ends(arrays[name]))
    raise _no_attention(name, arrays[name].shape)


def _is_attention(array: ndarray) -> bool:
    if not 2 <= array.ndim <= 5 or 0 in array.shape:
        return False
    low, high = _ends(array)
    return low >= -_NO_WEIGHT and high <= 1 + _NO_WEIGHT


def _ends(array: ndarray) -> tuple[float, float]:
    """The least and the largest number; NaN where nothing else is there, which is no reason to refuse it."""
    low, high = float(np.fmin.reduce(array, axis=None)), float(np.fmax.reduce(array, axis=None))
    return (0.0, 0.0) if low != low else (low, high)


def _stacks(arrays: Mapping[str, ndarray]) -> dict[str, Stack]:
    """Groups attention arrays into stacks of layers."""
    names = sorted(arrays, key=_in_order)
    alike: dict[str, list[str]] = {}
    for name in names:
        _check_shape(name, arrays[name])
        alike.setdefault(re.sub(r"\d+", "#", name[:200]), []).append(name)
    stacks: dict[str, Stack] = {}
    layers: dict[str, ndarray] = {}
    for name in names:
        array, siblings = arrays[name], alike[re.sub(r"\d+", "#", name[:200])]
        if array.ndim == 5:
            stacks[name] = Stack({f"{name}[{layer}]": one for layer, one in enumerate(array)})
        elif array.ndim == 4 and array.shape[0] > 1 and len(siblings) == 1:
            stacks[name] = Stack({f"{name}[{layer}]": one[None] for layer, one in enumerate(array)}, either=True)
        else:
            layers[name] = array.reshape((1,) * (4 - array.ndim) + array.shape)
    if layers:
        only = next(iter(layers))
        one_layer = len(layers) == 1 and arrays[only].ndim == 3 and arrays[only].shape[0] > 1
        stacks[only if len(layers) == 1 else ""] = Stack(layers, one_layer=one_layer)
    return stacks


def _of_one_shape(layers: Mapping[str, ndarray]) -> dict[tuple[str, ...], dict[str, ndarray]]:
    """The layers of each shape together, in the order of the first of them."""
    by_shape: dict[tuple[int, ...], dict[str, ndarray]] = {}
    for name, one in layers.items():
        by_shape.setdefault(one.shape, {})[name] = one
    return {tuple(found): found for found in by_shape.values()}


def _from_to(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"


def _in_order(name: str) -> tuple[tuple[int, int | str], ...]:
    """A sort key that puts layer.2 before layer.10."""
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d+)", name[:200]) if part)


def _check_shape(name: str, array: ndarray) -> None:
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


def _check_weights(name: str, low: float, high: float) -> None:
    if not np.isfinite((low, high)).all():
        raise TraceError(
            "{name} has numbers that are not finite. Scores before the softmax have -inf where a key is masked: hand in "
            "the weights after it.",
            name=name[:60],
        )
    if low < -_NO_WEIGHT or high > 1 + _NO_WEIGHT:
        raise TraceError(
            "{name}: the numbers go from {low} to {high}, and weights are from 0 to 1. If these are scores, apply the "
            "softmax to the last axis first.",
            name=name[:60],
            low=f"{low:.3g}",
            high=f"{high:.3g}",
        )


# --- what a group is, and what is said of it --------------------------------------------------------------------------


def _group(name: str, stack: Stack, layers: Mapping[str, ndarray], tokens: Tokens, *, several: bool) -> AttentionArrays:
    for layer, one in layers.items():
        _check_shape(layer, one)
    weights = np.stack(list(layers.values()), dtype=np.float32, casting="unsafe")  # [layers, heads, n_q, n_k]
    n_q, n_k = weights.shape[2:]
    names = tuple(layers)
    _check_weights(names[0], *_ends(weights))
    notes = _said_of(weights)
    if stack.one_layer:
        notes.append(N_("One array of {n} maps: they are taken as the heads of one layer.", n=weights.shape[1]))
    missing = [stack.missing[layer] for layer in names if layer in stack.missing]
    queries, keys, said = _labels_of(name, n_q, n_k, tokens, several=several, joined=bool(missing))
    future = _future(weights)
    if missing:
        every = np.stack(missing)
        reasons = every[0] if bool((every == every[0]).all()) else every
        future = np.where(reasons != 0, reasons, 0 if future is None else future).astype(np.uint8)
    return AttentionArrays(
        np.clip(weights, 0.0, 1.0, out=weights), queries, keys, future, names, (*notes, *said), either=stack.either
    )


def _future(weights: Float[ndarray, "layers heads n_q n_k"]) -> ndarray | None:
    n_q, n_k = weights.shape[2:]
    if n_q == n_k > 1 and not any(np.triu(one, 1).any() for one in weights.reshape(-1, n_q, n_k)):
        return np.triu(np.full((n_q, n_k), Reason.FUTURE, np.uint8), 1)
    return None


def _said_of(weights: Float[ndarray, "layers heads n_q n_k"]) -> list[Message]:
    """Warnings about rows that do not sum to 1, or that contain NaN."""
    near = _near_1(weights)
    n_off, n_empty, n_nan, worst = 0, 0, 0, (0.0, 0, 0, 0, 0.0)
    for layer, head in np.ndindex(weights.shape[:2]):  # of one map at a time: the sums of all might need more memory
        sums = weights[layer, head].sum(-1, dtype=np.float64)  # [queries]
        unknown = np.isnan(sums)
        n_nan, sums = n_nan + int(unknown.sum()), np.where(unknown, 1.0, sums)
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
    if n_nan:
        notes.append(
            N_(
                "{n:,} of {all:,} rows have NaN in them, no numbers: a softmax gives that where every key is masked. They "
                "are hatched.",
                n=n_nan,
                all=n_rows,
            )
        )
    return notes


def _near_1(weights: Float[ndarray, "layers heads n_q n_k"]) -> float:
    """How far from 1 the sum of a row may be: two steps of the precision in which the weights were rounded, at least 1e-3.

    A number of bfloat16 is a float32 whose lower half is 0, whatever the array says: numpy has no bfloat16.
    """
    maps = [np.ascontiguousarray(one) for one in weights.reshape(-1, *weights.shape[2:])]
    if not any((one.view(np.uint32) & 0xFFFF).any() for one in maps):
        return 2 * 2.0**-7
    if all(np.array_equal(one, one.astype(np.float16), equal_nan=True) for one in maps):
        return 2 * 2.0**-10
    return 1e-3


# --- tokens -----------------------------------------------------------------------------------------------------------

_SIDES = ("queries", "keys", "source", "target")


def _labels_of(
    name: str, n_q: int, n_k: int, tokens: Tokens, *, several: bool, joined: bool
) -> tuple[tuple[str, ...], tuple[str, ...], list[Message]]:
    """The labels of a group, and what is to say of them."""
    queries, keys = tokens.queries, tokens.keys
    if not queries and not keys and (tokens.source or tokens.target):
        queries, keys = _of_texts(name, n_q, n_k, tokens)
    elif several and keys and re.search("encoder|source|src", name, re.IGNORECASE) and n_q == n_k == len(keys):
        queries = keys
    elif several and queries and re.search("decoder|target|tgt", name, re.IGNORECASE) and n_q == n_k == len(queries):
        keys = ()
    notes = []
    if joined and len(queries) == n_q + 1:  # nobody read the token that was written last
        notes.append(N_("The last token was written and not read: it has no row."))
        keys = keys[:n_k] if len(keys) == n_k + 1 else keys
        queries = queries[:n_q]
    if several:
        fit = len(queries) in (0, n_q) and (
            len(keys) == n_k if keys else not queries or n_q != n_k or len(queries) == n_k
        )
        if not fit:
            notes.append(N_("The tokens do not fit these maps of {n_q} × {n_k}: they are numbered.", n_q=n_q, n_k=n_k))
            queries = keys = ()
    return (*labels(n_q, n_k, queries, keys), notes)


def _of_texts(name: str, n_q: int, n_k: int, tokens: Tokens) -> tuple[Sequence[str], Sequence[str]]:
    """The labels of the queries and the keys where it is known what was read and what was written."""
    source, target = tokens.source, tokens.target
    if re.search("cross", name, re.IGNORECASE):
        return target, source
    if re.search("decoder|target|tgt", name, re.IGNORECASE):
        return target, target
    if re.search("encoder|source|src", name, re.IGNORECASE):
        return source, source
    by_length = {(len(target), len(source)): (target, source)}  # (what comes first stays)
    by_length.setdefault((len(source), len(source)), (source, source))
    by_length.setdefault((len(target), len(target)), (target, target))
    return by_length.get((n_q, n_k), (target or source, source))


def _named(arrays: AttentionArrays) -> bool:
    return not all(one.isdecimal() for one in (*arrays.query_tokens, *arrays.key_tokens))


def labels(
    n_q: int, n_k: int, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The labels of the queries and of the keys: those that are given, else numbers.

    Those that a byte-level tokenizer wrote letter for byte are read as text.
    """
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


def _whole(tokens: Sequence[str]) -> tuple[str, ...]:
    """Tokens with U+FFFD for each half of a pair of surrogates, of which no file and no page can be made, as text."""
    whole = [token.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for token in tokens]
    return tuple(map(unturned, spelled_out(whole)))


def _written(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def _no_attention(name: str, shape: tuple[int, ...]) -> TraceError:
    return TraceError(
        "{name} has the shape {shape}, which is no attention: [layers, heads, queries, keys], or [heads, queries, keys] "
        "for each layer.",
        name=name[:60],
        shape=_written(shape),
    )

"""What programs hand out as attention, as arrays by layer: outputs of models, steps of `generate()`, lists, dicts.

collect(model(**inputs, output_attentions=True))                                         # its attentions
collect(model.generate(**inputs, output_attentions=True, return_dict_in_generate=True))  # the steps, joined
collect(outputs.attentions), collect({"layer 0": array, "tokens": tokens})
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from vizformer.analysis.other_programs.attention_arrays import NOTEBOOK, Given, Limits, Stack, Tokens, check_numbers
from vizformer.errors import TraceError
from vizformer.messages import N_, Message
from vizformer.model import Reason
from vizformer.text.text_growth import shown

_OF_OUTPUTS = "attentions"  # as transformers calls them: attentions, encoder_attentions, cross_attentions
TEXTS = {  # names of texts, as people save them beside their arrays
    "tokens": "both",
    "query_tokens": "queries",
    "key_tokens": "keys",
    "source_tokens": "source",
    "src_tokens": "source",
    "target_tokens": "target",
    "tgt_tokens": "target",
}
MAX_STEPS = 2**14


def collect(source: object, limits: Limits = NOTEBOOK) -> Given:
    """Finds the attention weights and the tokens in the output of a program.

    Raises:
        TraceError: numbers that are none, or too many; no weights, as fused kernels have none to hand out; steps of a
            generation that do not follow each other.
    """
    named = _fields(source)
    if named is not None:
        outputs = {name: value for name, value in named.items() if name.endswith(_OF_OUTPUTS)}
        return _of_output(named, outputs, limits) if outputs else _of_names(named, limits)
    if _is_empty(source):
        raise _fused()
    if not isinstance(source, list | tuple):
        return Given(arrays={"attention": as_array("attention", source, limits)})
    if not _tensors_in(source):
        return _of_numbers(source, limits)
    return Given({"": _stack("", source, limits)})


def tokens_of(named: Mapping[str, Sequence[str]]) -> Tokens:
    """The texts of a file or a dict by what they label; those of both sides are the queries' and the keys'."""
    sides: dict[str, Sequence[str]] = {}
    for name, texts in named.items():
        for side in ("queries", "keys") if TEXTS[name] == "both" else (TEXTS[name],):
            if name in ("query_tokens", "key_tokens") or not sides.get(side):
                sides[side] = tuple(texts)
    if "tokens" in named and "key_tokens" not in named:
        sides.pop("keys", None)  # (they are the keys' where there are as many)
        if "query_tokens" in named:
            sides["keys"] = tuple(named["tokens"])
    return Tokens(**sides)


def as_array(name: str, value: object, limits: Limits) -> ndarray:
    """An array of numpy, or of what numpy understands; tensors of PyTorch, on whatever device, as float32."""
    layout = str(getattr(value, "layout", "torch.strided"))
    sparse = layout != "torch.strided" or bool(getattr(value, "is_nested", False)) or hasattr(value, "todense")
    if sparse and not isinstance(value, ndarray):
        raise TraceError(
            "{name} is a sparse or nested tensor, which holds some of its numbers alone. Hand in all of them: .to_dense().",
            name=_called(name),
        )
    detach = getattr(value, "detach", None)
    if detach is not None:  # a tensor of PyTorch, which may be on a device, and of a kind that numpy has not
        check_numbers(int(value.numel()), limits)  # type: ignore[attr-defined]
        if str(value.device) == "meta":  # type: ignore[attr-defined]
            raise TraceError("{name} has a shape and no numbers (it is on the device meta).", name=_called(name))
        detached = detach().cpu()
        value = (detached.dequantize() if detached.is_quantized else detached).float().resolve_conj().numpy()
    try:
        found = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise TraceError("{name} has rows of different lengths: it is no tensor.", name=_called(name)) from error
    if found.dtype.name.startswith(("bfloat16", "float8")):  # of JAX, which numpy knows by name alone
        found = found.astype(np.float32)
    if found.dtype.kind not in "fiub":
        raise TraceError("This is no array of numbers. Hand in attention weights, [layers, heads, queries, keys].")
    check_numbers(found.size, limits)
    return found


def _called(name: str) -> str:
    return shown(name or "attention", 60)


def _fused() -> TraceError:
    return TraceError(
        "There are no attention weights in it. Fused kernels (SDPA, flash attention) never write them down: load the model "
        'with attn_implementation="eager", and call it with output_attentions=True.'
    )


def _fields(source: Any) -> dict[str, Any] | None:
    """The named fields of an object; None where it is an array, a list or a tuple without names."""
    if isinstance(source, Mapping):
        found = {str(name): value for name, value in source.items()}
        # an output of transformers leaves out what is None
        fields_of = getattr(source, "__dataclass_fields__", ())
        return {**{name: getattr(source, name, None) for name in fields_of}, **found}
    if is_dataclass(source) and not isinstance(source, type):
        return {one.name: getattr(source, one.name, None) for one in fields(source)}
    if isinstance(source, tuple) and hasattr(source, "_fields"):
        return dict(zip(source._fields, source, strict=True))
    if (
        not isinstance(source, list | tuple | ndarray)
        and not hasattr(source, "__array__")
        and hasattr(source, "__dict__")
    ):
        return dict(vars(source)) or None
    return None


def _of_output(named: Mapping[str, Any], outputs: Mapping[str, Any], limits: Limits) -> Given:
    """The attentions of a model's output; of a generation the steps, joined."""
    beams, stacks, arrays, notes = named.get("beam_indices"), dict[str, Stack](), dict[str, ndarray](), list[Message]()
    for name, value in outputs.items():
        if _is_empty(value):
            continue
        kind = name.removesuffix(_OF_OUTPUTS).rstrip("_") or "attention"
        if isinstance(value, list | tuple) and _tensors_in(value):
            stacks[kind] = _stack(kind, value, limits, beams=None if kind == "encoder" else beams, notes=notes)
        else:
            arrays[kind] = as_array(name, value, limits)
    if not stacks and not arrays:
        raise _fused()
    texts = {name: tuple(map(str, value)) for name, value in named.items() if name in TEXTS and _are_texts(value)}
    left_out = [name for name, value in named.items() if name not in (*outputs, *texts) and value is not None]
    return Given(stacks, arrays, tokens_of(texts), tuple(left_out), tuple(notes))


def _of_names(named: Mapping[str, Any], limits: Limits) -> Given:
    """Arrays and tokens by name; of what is neither, the names."""
    arrays, texts, left_out = dict[str, ndarray](), {}, []
    if named and all(map(_is_empty, named.values())):
        raise _fused()
    for name, value in named.items():
        if name in TEXTS and _are_texts(value):
            texts[name] = tuple(map(str, value))
        elif value is None or isinstance(value, str | bytes | Mapping) or callable(value) or _are_texts(value):
            left_out.append(name)
        elif isinstance(value, list | tuple) and _tensors_in(value):
            arrays |= {
                f"{name}.{index}": as_array(name, one, limits) for index, one in enumerate(value) if one is not None
            }
        else:
            arrays[name] = as_array(name, value, limits)
    return Given(arrays=arrays, tokens=tokens_of(texts), left_out=tuple(left_out))


def _are_texts(values: Any) -> bool:
    if isinstance(values, ndarray):
        return values.ndim == 1 and values.dtype.kind in "US"
    return isinstance(values, list | tuple) and len(values) > 0 and all(isinstance(one, str | bytes) for one in values)


def _tensors_in(value: object, depth: int = 0) -> bool:
    """Whether there is an array in lists of lists."""
    if isinstance(value, list | tuple):
        return depth < 3 and any(_tensors_in(one, depth + 1) for one in value)
    return len(getattr(value, "shape", ())) > 0


def _is_empty(value: object) -> bool:
    """Whether a value is None, or consists of nested lists of None."""
    return value is None or (isinstance(value, list | tuple) and all(map(_is_empty, value)))


def _of_numbers(source: Sequence[Any], limits: Limits) -> Given:
    """Nested lists of numbers: one array, or where their sides differ a layer each."""
    try:
        return Given(arrays={"attention": as_array("attention", source, limits)})
    except TraceError:
        layers = {str(index): as_array(f"attention[{index}]", one, limits) for index, one in enumerate(source)}
        if any(one.ndim < 2 for one in layers.values()):
            raise
    return Given({"": Stack({name: _whole(name, one) for name, one in layers.items()})})


def _stack(
    kind: str, layers: Sequence[Any], limits: Limits, beams: object = None, notes: list[Message] | None = None
) -> Stack:
    """Layers as they came, or those of the steps of a generation."""
    if any(isinstance(one, list | tuple) and _tensors_in(one) for one in layers):
        return _steps(kind, layers, limits, beams)
    found = {str(index): one for index, one in enumerate(layers) if one is not None}
    if not found:
        raise _fused()
    if notes is not None and len(found) < len(layers):
        absent = ", ".join(str(index) for index, one in enumerate(layers) if one is None)
        notes.append(N_("Layers that hand out no weights: {layers}.", layers=shown(absent, 80)))
    size = sum(int(np.prod(getattr(one, "shape", ()))) for one in found.values())
    check_numbers(size, limits)
    return Stack({name: _whole(name, as_array(name, one, limits)) for name, one in found.items()})


def _whole(name: str, layer: ndarray) -> ndarray:
    """Reshapes a layer to [texts, heads, n_q, n_k]."""
    if not 2 <= layer.ndim <= 4 or 0 in layer.shape:
        raise TraceError(
            "Layer {name} has the shape {shape}, which is no attention: [heads, queries, keys].",
            name=name,
            shape=str(list(layer.shape)),
        )
    return layer.reshape((1,) * (4 - layer.ndim) + layer.shape)


# --- the steps of a generation ----------------------------------------------------------------------------------------


def _steps(kind: str, steps: Sequence[Any], limits: Limits, beams: object) -> Stack:
    """A tuple of steps, each a tuple of layers [texts, heads, n_q, n_k], joined: a row for each token that was read.

    The first step reads the prompt, every later one what was written before it, most often one token.  A key that did not
    exist yet is masked.  With beams the rows of a text are those from which its tokens were chosen (`beam_indices`).
    """
    if not all(isinstance(step, list | tuple) for step in steps):
        raise _no_steps(kind)
    n_layers = len(steps[0])
    if len(steps) > MAX_STEPS or any(len(step) != n_layers for step in steps):
        raise _no_steps(kind)
    if any(one is None for step in steps for one in step):
        raise _fused()
    shapes = [[tuple(getattr(one, "shape", ())) for one in step] for step in steps]
    if any(len(shape) != 4 or 0 in shape for step in shapes for shape in step):
        raise _no_steps(kind)
    rows = None if beams is None else np.asarray(as_array("beam_indices", beams, limits), np.int64)
    if rows is not None and (rows.ndim != 2 or rows.shape[1] < 1 or rows.max() >= shapes[0][0][0]):
        raise _no_steps(kind)
    if rows is not None:
        rows = rows[:, : int((rows >= 0).any(0).sum())]
        steps, shapes = steps[: rows.shape[1]], shapes[: rows.shape[1]]
    sizes = [[shape[layer] for shape in shapes] for layer in range(n_layers)]
    n_q = sum(shape[2] for shape in sizes[0]) if sizes else 0
    check_numbers(
        sum((len(rows) if rows is not None else of[0][0]) * of[0][1] * n_q * max(one[3] for one in of) for of in sizes),
        limits,
    )
    layers, missing = {}, {}
    for layer in range(n_layers):
        arrays = [as_array(f"{kind} {layer}", step[layer], limits) for step in steps]
        if rows is not None:
            arrays = [one[rows[:, at]] for at, one in enumerate(arrays)]
        if any(one.shape[:2] != arrays[0].shape[:2] for one in arrays):
            raise _no_steps(kind)
        first = _first_keys(kind, arrays)
        n_k = max(begin + one.shape[3] for begin, one in zip(first, arrays, strict=True))
        n_k = min(n_k, max(_used(kind, arrays, n_q), 1))
        whole = np.zeros((*arrays[0].shape[:2], sum(one.shape[2] for one in arrays), n_k), np.float32)
        absent = np.full(whole.shape[2:], Reason.FUTURE, np.uint8)
        row = 0
        for begin, one in zip(first, arrays, strict=True):
            end = row + one.shape[2]
            width = min(one.shape[3], n_k - begin)
            whole[:, :, row:end, begin : begin + width] = one[..., :width]
            absent[row:end, :begin] = Reason.OUTSIDE_WINDOW
            absent[row:end, begin : begin + width] = 0
            row = end
        if "cross" not in kind and whole.shape[2] == n_k:
            ahead = np.triu(np.ones(absent.shape, bool), 1)
            if not np.any(whole[..., ahead]):  # also within the prompt
                absent[ahead] = Reason.FUTURE
        layers[str(layer)], missing[str(layer)] = whole, absent
    return Stack(layers, missing=missing)


def _first_keys(kind: str, arrays: Sequence[ndarray]) -> list[int]:
    """Which key of the whole text the first column of each step is."""
    read = list(np.cumsum([one.shape[2] for one in arrays]))
    keys = [one.shape[3] for one in arrays]
    if len(set(keys)) == 1:  # the keys of another text, or a cache that was made as long as it may become
        return [0] * len(keys)
    before = max(keys[0] - int(read[0]), 0)  # keys of an earlier call
    if all(key == before + n for key, n in zip(keys, read, strict=True)):
        return [0] * len(keys)
    first = [before + int(n) - key for key, n in zip(keys, read, strict=True)]
    if min(first) < 0:
        raise _no_steps(kind)
    return first  # a cache that keeps the last keys: a window


def _used(kind: str, arrays: Sequence[ndarray], n_q: int) -> int:
    """The number of leading key columns to read: the filled ones of a cache of fixed length; 2**62 for all of them."""
    keys = {one.shape[3] for one in arrays}
    if len(keys) > 1 or "cross" in kind or len(arrays) == 1 or max(keys) <= n_q:
        return 2**62
    read = 0
    for one in arrays:
        read += one.shape[2]
        if np.any(one[..., read:]):
            return 2**62
    return n_q


def _no_steps(kind: str) -> TraceError:
    return TraceError(
        "{name}: these are no steps of one generation, each with an array [texts, heads, queries, keys] of every layer. "
        "Hand in the attentions of an output alone.",
        name=_called(kind),
    )

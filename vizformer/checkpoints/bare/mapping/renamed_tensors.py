"""A mapping applied: the tensors under names that say their roles, which the reader by role then cannot mistake.

So there is one reader, one set of questions and one plan for all hand-written models; a mapping by hand takes the place
of its guesses alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from torch import Tensor

from vizformer.checkpoints.bare.mapping import roles
from vizformer.checkpoints.bare.structure import outer_parts
from vizformer.checkpoints.bare.structure.names import modules
from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.tensors.report import TensorFate
from vizformer.checkpoints.tensors.role_mapping import Entry, RoleMapping
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_OWN = {"gamma": "gamma", "beta": "beta", "a_2": "a_2", "b_2": "b_2", "a2": "a2", "b2": "b2"}
_USUAL = ("qkv", "c_attn", "in_proj", "to_qkv", "Wqkv")  # of common matrices: q_k_v is usual there
_PLAIN = ("weight", "bias", "w", "b", "kernel")
_BESIDE = {  # what the reader by role takes for granted of such names
    "embedding": "target_embedding",
    "source_embedding": "source_embedding",
    "position_embedding": "source_position_embedding",
    "decoder_position_embedding": "target_position_embedding",
}


class Applied(NamedTuple):
    weights: Weights  # those that have a role, and buffers that need none
    names: Mapping[str, str]  # the new name of each -> the tensor of the file
    left_out: tuple[str, ...]


def apply(mapping: RoleMapping, weights: Weights) -> Applied:
    """The tensors that have roles, under names that say them."""
    wrong: list[Message] = []
    chosen: dict[str, tuple[str, Entry]] = {}
    ranks = _ranks(mapping, weights)
    raw = {module.weight for module in modules(weights.tensors).values() if module.raw}
    both = any(role.startswith(("encoder.", "decoder.layers.")) for role in mapping.roles)
    for role, entry in mapping.roles.items():
        known = roles.find(role)
        if known is None:
            wrong.append(N_("{role} is no role", role=shown(role)))
            continue
        if ("#" in entry.tensor and "#" not in role) or ("*" in entry.tensor and not known[0].by_head):
            wrong.append(
                N_(
                    "{tensor} cannot play {role}: # stands for the number of a layer, and * for that of a head of queries, "
                    "keys, values or outputs",
                    role=shown(role),
                    tensor=shown(entry.tensor),
                )
            )
            continue
        found = _matching(entry.tensor, weights)
        if not found:
            wrong.append(N_("{tensor} is not in the file", tensor=shown(entry.tensor)))
        for name, numbers in found:
            places = {mark: ranks[place][n] for (mark, place), n in zip(_marks(entry.tensor), numbers, strict=True)}
            new = _internal(
                role, known[0], known[1], name, places, both, is_raw=entry.transpose is None and name in raw
            )
            if new in chosen:
                wrong.append(N_("{tensor} and {other} play one role", tensor=shown(name), other=shown(chosen[new][0])))
            chosen[new] = (name, entry)
    tensors: dict[str, Stored] = {}
    rows: dict[str, list[tuple[int, int]]] = {}
    for new, (name, entry) in chosen.items():
        stored = weights.tensors[name]
        shape = _shape(stored.shape, entry)
        if shape is None:
            wrong.append(
                N_(
                    "{tensor} {shape} cannot be turned over or has no such rows",
                    tensor=shown(name),
                    shape=list(stored.shape),
                )
            )
            continue
        tensors[new] = Stored(stored.file, shape, stored.dtype, partial(_read, stored, entry))
        if entry.rows is not None:
            rows.setdefault(name, []).append(entry.rows)
    wrong += _without_rows(rows, dict(chosen.values()), weights)
    taken = {name for name, __ in chosen.values()}
    left_out: dict[str, None] = {}
    for pattern in mapping.left_out:
        found = _matching(pattern, weights)
        if not found:
            wrong.append(N_("{tensor}, which is to be left out, is not in the file", tensor=shown(pattern)))
        left_out |= {name: None for name, __ in found}
    wrong += [
        N_("{tensor} has a role and is left out as well", tensor=shown(name)) for name in left_out if name in taken
    ]
    buffers = outer_parts.buffers(weights).unused
    free = [name for name in weights.tensors if name not in taken and name not in left_out and name not in buffers]
    wrong += [N_("{tensor} has no role and is not left out", tensor=shown(name)) for name in free]
    if wrong:
        raise CheckpointError(
            "The mapping by hand does not go with {file}: {problems}.", file=weights.where, problems=listed(wrong)
        )
    for name in buffers:
        if name not in taken and name not in left_out:
            tensors[name] = weights.tensors[name]
    names = {new: name for new, (name, __) in chosen.items()}
    return Applied(replace(weights, tensors=tensors), names, tuple(left_out))


def _marks(pattern: str) -> list[tuple[str, str]]:
    """Every # and * of a pattern with what stands before it: tensors that have that in common are numbered together."""
    return [(found[0], pattern[: found.start()]) for found in re.finditer(r"[#*]", pattern)]


def _matching(pattern: str, weights: Weights) -> list[tuple[str, list[int]]]:
    """The tensors whose names are like a pattern, each with the numbers that stand for its # and *."""
    if pattern in weights.tensors:
        return [(pattern, [0 for __ in _marks(pattern)])]
    if not _marks(pattern):
        return []
    like = re.compile(r"(\d{1,4})".join(map(re.escape, re.split(r"[#*]", pattern))), re.ASCII)
    found = ((name, like.fullmatch(name)) for name in weights.tensors)
    return [(name, [int(n) for n in matched.groups()]) for name, matched in found if matched]


def _ranks(mapping: RoleMapping, weights: Weights) -> dict[str, dict[int, int]]:
    """Numbers in the file -> which layer or head they are, from 0, among all that are numbered together.

    A layer that lacks a tensor keeps its number, so that the others do not move up.
    """
    found: dict[str, set[int]] = {}
    for entry in mapping.roles.values():
        for __, numbers in _matching(entry.tensor, weights):
            for (__, place), number in zip(_marks(entry.tensor), numbers, strict=True):
                found.setdefault(place, set()).add(number)
    return {place: {number: rank for rank, number in enumerate(sorted(n))} for place, n in found.items()}


def _internal(
    role: str, known: roles.Role, kind: str, name: str, places: Mapping[str, int], both: bool, *, is_raw: bool
) -> str:
    """The name under which the reader by role meets a tensor.

    What its own name says of norms that their author wrote is kept, as is whether it is a parameter without a module:
    then it is asked what they do, as it is for a model without a mapping.
    """
    module = role.rpartition(".")[0]
    module = module.replace("#", str(places.get("#", 0)))
    if "*" in places:
        holder, __, last = module.rpartition(".")
        module = f"{holder}.heads.{places['*']}.{last}"
    holder, dot, last = module.rpartition(".")
    if known.name.endswith((".qkv", ".kv")) and name.removesuffix(f".{kind}").rpartition(".")[2] not in _USUAL:
        module, last = f"{module}_proj", f"{last}_proj"  # in which order its rows lie is then asked
    if both and module in _BESIDE:
        return f"{_BESIDE[module]}.{kind}"
    if known.kind == "norm":
        if "rms" in name.lower():
            last = last.replace("norm", "rms_norm")
        leaf = re.split(r"[._]", name)[-1]
        own = _OWN.get(name.rpartition(".")[2])
        unnamed = leaf not in _PLAIN
        return f"{holder}{dot}{last}.{own or ({'weight': 'gamma', 'bias': 'beta'}[kind] if unnamed else kind)}"
    if is_raw and known.in_layers and known.kind in ("reads", "makes"):
        stem = last.removeprefix("W_")
        return f"{holder}{dot}{'W' if kind == 'weight' else 'b'}_{stem}"
    return f"{module}.{kind}"


def _shape(shape: Shape, entry: Entry) -> Shape | None:
    """The shape that a tensor has once it is turned over and cut; None where that cannot be."""
    if entry.transpose or entry.rows is not None:
        shape = shape[:2] if len(shape) == 3 and shape[2] == 1 else shape
        if entry.transpose and len(shape) != 2:
            return None
    shape = tuple(reversed(shape)) if entry.transpose else shape
    if entry.rows is None:
        return shape
    first, end = entry.rows
    return (end - first, *shape[1:]) if shape and end <= shape[0] else None


def _read(stored: Stored, entry: Entry) -> Tensor:
    tensor = stored.read()
    if (entry.transpose or entry.rows is not None) and tensor.dim() == 3:
        tensor = tensor[:, :, 0]
    tensor = tensor.T if entry.transpose else tensor
    return tensor if entry.rows is None else tensor[slice(*entry.rows)]


def _without_rows(
    rows: Mapping[str, list[tuple[int, int]]], entries: Mapping[str, Entry], weights: Weights
) -> Iterator[Message]:
    """Rows of tensors in pieces that no piece has."""
    for name, pieces in rows.items():
        shape = weights.tensors[name].shape
        end = 0
        for first, last in sorted(pieces):
            if first > end:
                break
            end = max(end, last)
        whole = shape[1] if entries[name].transpose else shape[0]
        if end < whole:
            yield N_("row {row} of {tensor} has no role", row=end, tensor=shown(name))


def by_tensor(fates: tuple[TensorFate, ...], applied: Applied, weights: Weights) -> tuple[TensorFate, ...]:
    """The fates of what lies in the file, where those of tensors under other names were found."""
    found: dict[str, TensorFate] = {}
    for fate in fates:
        name = applied.names.get(fate.name, fate.name)
        stored = weights.tensors.get(name)
        if stored is None:  # one that is missing, by the name of its role
            found[name] = fate
            continue
        more = found[name].becomes if name in found else ()
        used = name in found and found[name].fate == "used"  # a tensor in two roles is used in one of them
        becomes = tuple(dict.fromkeys((*more, *fate.becomes)))
        same = found[name] if used else fate
        found[name] = replace(same, name=name, shape=stored.shape, dtype=stored.dtype, becomes=becomes)
    for name in applied.left_out:
        stored = weights.tensors[name]
        note = N_("left out by hand")
        found[name] = TensorFate(name, stored.file, stored.shape, stored.dtype, "unused", (), note)
    return tuple(found.values())

"""Which files of a folder in Hugging Face layout are its weights: those of the usual names, else the only ones there.

A repository may keep its weights as a variant (model.fp16.safetensors, in shards model-00001-of-00002.fp16.safetensors
with model.safetensors.index.fp16.json), or as somebody called them.  Where there is a choice, nothing is guessed.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from vizformer.checkpoints.files.containers import STANDARD, open_file
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import (
    FLOATS,
    Stored,
    Weights,
    no_weights,
    open_index,
    open_safetensors,
    open_weights,
)
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

_KINDS = ((".safetensors",), (".bin", ".pth", ".pt"))  # of the first kind that is there
_INDEX = re.compile(r"(.+)\.(safetensors|bin)\.index(\.[\w-]+)?\.json")
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}(\.[\w-]+)?\.(safetensors|bin)")
_BESIDE = re.compile(r"(training_args|optimizer|scheduler|rng_state|scaler|trainer_state|adapter_model|openvino_)")

ADAPTER, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_NAME = re.compile(r"base_model\.model\.(.+?)(?:\.lora_(A|B)(?:\.default)?)?\.weight")
_READ = "peft_type r lora_alpha use_rslora rank_pattern fan_in_fan_out modules_to_save target_modules bias"
# Where it was trained, how, and on which modules: the tensors say which these are.
_NOTHING = """
base_model_name_or_path revision task_type inference_mode auto_mapping peft_version lora_dropout init_lora_weights
exclude_modules layers_to_transform layers_pattern loftq_config eva_config corda_config runtime_config megatron_core
qalora_group_size lora_ga_config
"""
_KNOWN = frozenset((*_READ.split(), *_NOTHING.split()))
_TRANSPOSED = ("gpt2", "openai-gpt", "imagegpt")  # whose matrices are stored as [in, out]


@dataclass(frozen=True)
class _Sum:
    """Reads a tensor with its LoRA update: base + scale * B A."""

    base: Stored
    a: Stored
    b: Stored
    scale: float
    transposed: bool

    def __call__(self) -> Tensor:
        added = self.scale * (self.b.read().float() @ self.a.read().float())
        return torch.add(self.base.read().float(), added.T if self.transposed else added)


def find_weights(folder: Folder) -> Weights:
    """The weights of a folder, with a note where they do not have the usual name."""
    name = choose(folder.name, folder.names())
    if name is None:
        refuse_adapter(folder)
        raise CheckpointError(no_weights(folder))
    if name.removesuffix(".index.json") in STANDARD:
        return _whole(folder, open_weights(folder))
    note = N_(
        "the weights are those of {file}, the only ones there; the usual name is {usual}",
        file=shown(name),
        usual=STANDARD[0],
    )
    found = open_index(folder, name) if name.endswith(".json") else open_file(folder, name).weights
    return _whole(folder, replace(found, notes=(note,)))


def _whole(folder: Folder, found: Weights) -> Weights:
    """The weights, with the update of an adapter where one lies beside them."""
    return adapted(folder, found) if folder.has(ADAPTER) else found


def choose(where: str, names: Collection[str]) -> str | None:
    """The file of weights among `names`, or the index of its parts; None where there is none."""
    for usual in STANDARD:
        for name in (usual, f"{usual}.index.json"):
            if name in names:
                return name
    for suffixes in _KINDS:
        indexes = [n for n in sorted(names) if (index := _INDEX.fullmatch(n)) and f".{index[2]}" in suffixes]
        files = [n for n in sorted(names) if n.lower().endswith(suffixes) and not _BESIDE.match(n)]
        parts = [n for n in files if _SHARD.fullmatch(n)]
        found = [*indexes, *(n for n in files if n not in parts)]
        if len(found) > 1:
            raise CheckpointError(
                "{folder} holds several files of weights: {files}. Leave only one of them there, or give it the "
                "name {usual}.",
                folder=where,
                files=", ".join(map(shown, found[:8])),
                usual=STANDARD[0],
            )
        if parts and not found:
            raise CheckpointError(
                "{folder} has {file}, a part of the weights, but no index that lists the parts "
                "({usual}.index.json). Copy it from the model's source.",
                folder=where,
                file=shown(parts[0]),
                usual=STANDARD[0],
            )
        if found:
            return found[0]
    return None


def shards(main: str, names: Collection[str]) -> list[str]:
    """The parts that belong to an index of this name, by their own names."""
    index = _INDEX.fullmatch(main)
    return [
        name
        for name in sorted(names)
        if index is not None and (part := _SHARD.fullmatch(name)) and part.groups() == (index[1], index[3], index[2])
    ]


def refuse_adapter(folder: Folder) -> None:
    """Says what an adapter is, where the folder is one."""
    if folder.has(ADAPTER):
        base = folder.object(ADAPTER).get("base_model_name_or_path")
        raise adapter_error(folder.name, base if isinstance(base, str) else "")


def adapter_error(name: str, base: str = "") -> CheckpointError:
    return CheckpointError(
        "{name} is an adapter (LoRA): it holds only what is to be added to the weights of another model, {base}. Put "
        "{config} and {weights} into the folder of that model, beside its config.json, and open it.",
        config=ADAPTER,
        weights=WEIGHTS,
        name=name,
        base=shown(base),
    )


# Adapters (LoRA), as the library `peft` writes them, in the folder of the model that they are added to.
#
#     W' = W + s B A,   A [r, in], B [out, r],   s = alpha / r, or alpha / sqrt(r) with rank-stabilised LoRA
#
# The sums are made when a tensor is read. The rank is that of the tensors: no number of the config makes anything
# large.
#
# Source: Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", section 4.1; Kalajdzievski 2023, "A
# Rank Stabilization Scaling Factor for Fine-Tuning with LoRA".
def adapted(folder: Folder, base: Weights) -> Weights:
    """The weights of a folder with what an adapter beside them adds.

    Raises:
        CheckpointError: another kind of adapter, or an option that is not read; tensors that do not fit the weights.
    """
    said = folder.object(ADAPTER)
    if problems := _problems(said):
        raise CheckpointError(
            "{file} asks for options of an adapter that VizFormer does not support: {problems}. Merge "
            "the adapter with the `peft` library (merge_and_unload), save the model with "
            "save_pretrained(), and open that folder.",
            file=ADAPTER,
            problems=listed(problems),
        )
    if not folder.has(WEIGHTS):
        raise CheckpointError(
            "{folder} has {file} and lacks {weights}, the adapter's own weights. Copy them from the adapter's source.",
            folder=folder.name,
            file=ADAPTER,
            weights=WEIGHTS,
        )
    path = folder.file(WEIGHTS)
    kind = folder.object("config.json").get("model_type") if folder.has("config.json") else None
    tensors, problems = _sums(said, open_safetensors(path, WEIGHTS), base.tensors, kind in _TRANSPOSED)
    if problems:
        raise CheckpointError(
            "{file} does not fit the weights of {folder}: {problems}. Put the adapter into the folder of the model that it "
            "was made for: {base}.",
            file=WEIGHTS,
            folder=folder.name,
            problems=listed(problems),
            base=shown(said.get("base_model_name_or_path")),
        )
    note = N_(
        "the folder contains an adapter (LoRA), by its own account for {base}: VizFormer added its "
        "update to the weights (tensors: {n})",
        n=len(tensors),
        base=shown(said.get("base_model_name_or_path")),
    )
    return replace(
        base,
        tensors={**base.tensors, **tensors},
        files={**base.files, WEIGHTS: path.stat().st_size},
        notes=(*base.notes, note),
    )


def _problems(said: Mapping[str, Any]) -> list[Message]:
    """The fields of an adapter's config that are not supported."""
    if said.get("peft_type") != "LORA":
        return [N_("peft_type={value}: supported is {options}", value=shown(said.get("peft_type")), options='"LORA"')]
    problems = []
    for name, least in (("r", 1), ("lora_alpha", 0)):
        value = said.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 2**31:
            problems.append(N_("{field}={value}: it must be a number above 0", field=name, value=shown(value)))
    if said.get("bias", "none") != "none":
        problems.append(N_("{field}={value}: this is not supported", field="bias", value=shown(said["bias"])))
    if not isinstance(said.get("modules_to_save") or [], list):
        problems.append(N_("{field}={value}: this is not supported", field="modules_to_save", value="…"))
    problems += [
        N_("{field}={value}: this is not supported", field=shown(name), value=shown(value))
        for name, value in said.items()
        if name not in _KNOWN and value not in (None, False, [], {})
    ]
    return problems


def _sums(
    said: Mapping[str, Any], own: Mapping[str, Stored], base: Mapping[str, Stored], transposed: bool
) -> tuple[dict[str, Stored], list[Message]]:
    """The tensors that become others, by their names in the model's file, and what does not fit."""
    problems: list[Message] = []
    pairs: dict[str, dict[str, Stored]] = {}
    made: dict[str, Stored] = {}
    places = _places(base)
    for name, stored in own.items():
        found = _NAME.fullmatch(name)
        place = None if found is None else _place(found[1], base, places)
        if stored.dtype not in FLOATS:
            problems.append(N_("{name} is stored as {dtype}", name=shown(name), dtype=shown(stored.dtype)))
        elif found is None or place is None:
            problems.append(N_("{name} belongs to none of its tensors", name=shown(name)))
        elif found[2] is not None:
            pairs.setdefault(place, {})[found[2]] = stored
        elif found[1].rpartition(".")[2] not in (said.get("modules_to_save") or []):
            problems.append(N_("{name} is not listed in {field}", name=shown(name), field="modules_to_save"))
        elif stored.shape != base[place].shape:
            problems.append(_other_shape(name, stored, base[place].shape))
        else:
            made[place] = stored
    for place, pair in pairs.items():
        stored = base[place]
        if len(pair) < 2:
            problems.append(N_("{name} lacks one of its two matrices", name=shown(place)))
            continue
        a, b = pair["A"], pair["B"]
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1] or stored.dtype not in FLOATS:
            problems.append(N_("the two matrices of {name} do not fit each other", name=shown(place)))
            continue
        rank, shape = a.shape[0], (b.shape[0], a.shape[1])
        if rank != said["r"] and not said.get("rank_pattern"):
            problems.append(
                N_("{name} has rank {rank}, {file} says {r}", name=shown(place), rank=rank, file=ADAPTER, r=said["r"])
            )
        if rank > min(shape):
            problems.append(
                N_("the rank {rank} of {name} is above {limit}", rank=rank, name=shown(place), limit=min(shape))
            )
            continue
        turned = stored.shape == shape[::-1] and (
            stored.shape != shape or transposed or bool(said.get("fan_in_fan_out"))
        )
        if stored.shape != shape and not turned:
            problems.append(_other_shape(place, stored, shape))
        scale = said["lora_alpha"] / (math.sqrt(rank) if said.get("use_rslora") else max(1, rank))
        dtype = "float64" if stored.dtype == "float64" else "float32"
        made[place] = Stored(stored.file, stored.shape, dtype, _Sum(stored, a, b, scale, turned), copied=True)
    listed_modules = said.get("target_modules")
    for module in listed_modules if isinstance(listed_modules, list) and pairs else []:
        if not any(f".{place}".endswith(f".{module}.weight") for place in pairs):
            problems.append(N_("it has no matrices for {module}", module=shown(module)))
    if not made and not problems:
        problems.append(N_("it is empty"))
    return made, problems


def _other_shape(name: str, stored: Stored, needed: tuple[int, ...]) -> Message:
    return N_(
        "{name} has shape {found}, but the adapter's matrices need {needed}",
        name=shown(name),
        found=list(stored.shape),
        needed=list(needed),
    )


def _places(base: Mapping[str, Stored]) -> dict[str, list[str]]:
    """Every end of the name of a tensor, without one or two parts of its beginning -> the tensors that end so."""
    found: dict[str, list[str]] = {}
    for name in base:
        parts = name.split(".")
        for first in range(1, min(len(parts), 3)):
            found.setdefault(".".join(parts[first:]), []).append(name)
    return found


def _place(module: str, base: Mapping[str, Stored], places: Mapping[str, list[str]]) -> str | None:
    """The tensor of a module's weight: its name may lack the beginning of the module's, or have more before it."""
    parts = f"{module}.weight".split(".")
    for first in range(min(len(parts) - 1, 3)):
        if (end := ".".join(parts[first:])) in base:
            return end
    longer = places.get(f"{module}.weight", [])
    return longer[0] if len(longer) == 1 else None

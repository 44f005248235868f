"""Which files of a folder in Hugging Face layout are its weights: those of the usual names, else the only ones there.

A repository may keep its weights as a variant (model.fp16.safetensors, in shards model-00001-of-00002.fp16.safetensors
with model.safetensors.index.fp16.json), or as somebody called them.  Where there is a choice, nothing is guessed.
"""

import re
from collections.abc import Collection
from dataclasses import replace

from vizformer.checkpoints.files import adapters
from vizformer.checkpoints.files.adapters import ADAPTER
from vizformer.checkpoints.files.containers import STANDARD, open_file
from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.files.weights import Weights, no_weights, open_index, open_weights
from vizformer.errors import CheckpointError
from vizformer.messages import N_

_KINDS = ((".safetensors",), (".bin", ".pth", ".pt"))  # of the first kind that is there
_INDEX = re.compile(r"(.+)\.(safetensors|bin)\.index(\.[\w-]+)?\.json")
_SHARD = re.compile(r"(.+)-\d{5}-of-\d{5}(\.[\w-]+)?\.(safetensors|bin)")
_BESIDE = re.compile(r"(training_args|optimizer|scheduler|rng_state|scaler|trainer_state|adapter_model|openvino_)")


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
    return adapters.adapted(folder, found) if folder.has(ADAPTER) else found


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
        weights=adapters.WEIGHTS,
        name=name,
        base=shown(base),
    )

"""The tensors of a file held against those that a family of models needs."""

import re
from collections.abc import Mapping
from dataclasses import replace

from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.family import Family
from vizformer.checkpoints.hugging_face.missing_parameters import stored
from vizformer.checkpoints.tensors.matching import Found, Match, fate, match_parts
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message


def match(
    family: Family, config: ModelConfig, names: Mapping[str, str], weights: Weights, shapes: Mapping[str, Shape]
) -> Match:
    """`names`: the family's name of every tensor -> its name in the file; `shapes`: of our parameters."""
    prefixed = any(stored.startswith(family.prefix) for stored in names.values())

    spare = {} if family.spare is None else family.spare(config)

    def reason(name: str, tensor: Found) -> Message | None:
        if name in spare:
            return spare[name][1]
        outside = prefixed and not tensor.name.startswith(family.prefix) and not name.startswith(family.head)
        return _reason(family, name, outside)

    follow = {} if family.computed is None else family.computed(config)
    others = {name: stored for name, stored in names.items() if name not in follow}
    for name, (first, __) in spare.items():
        if name in others and first not in others:
            others[first] = others.pop(name)
    made = {} if family.made is None else family.made(config)
    if family.made_by_names is not None:
        made = {**made, **family.made_by_names(config, others.keys())}
    parts = stored(family.weights(config), made)
    if family.by_names is not None:
        parts = family.by_names(parts, others.keys())
    found = match_parts(parts, family.ties(config), reason, others, weights, shapes)
    computed = [
        (Found(names[name], weights.tensors[names[name]]), make) for name, make in follow.items() if name in names
    ]
    fates = [fate(tensor, "unused", note=N_("it follows from config.json")) for tensor, __ in computed]
    return replace(found, fates=(*found.fates, *fates), computed=tuple(computed), made=made)


def _reason(family: Family, name: str, outside: bool) -> Message | None:
    """Why a tensor that no part asked for is not needed; None if it may be."""
    known = next((note for pattern, note in family.unused.items() if re.fullmatch(pattern, name)), None)
    return N_("outside the model itself: the head of another task") if known is None and outside else known

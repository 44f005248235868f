"""Which norm of a layer belongs to which of its sublayers: by place, by number, by the words of its name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vizformer.checkpoints.bare.structure.attentions import Attention
from vizformer.checkpoints.bare.structure.names import Module, numbers, words
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.errors import CheckpointError

CROSS = {"cross", "src", "enc", "encoder", "memory", "context", "mem", "encdec", "source", "crossattn", "inter"}
SELF = {"self", "masked", "mask", "slf", "dec", "decoder", "sa", "selfattn", "tgt", "trg", "causal"}
FEEDFORWARD = {
    "ff",
    "ffn",
    "mlp",
    "feed",
    "feedforward",
    "forward",
    "ffw",
    "fwd",
    "ffwd",
    "fc",
    "position",
    "positionwise",
    "pos",
    "net",
    "pff",
}
ATTENTION = {"attn", "att", "attention", "mha", "sa", "self", "heads", "attns", "attentions", "multihead", "mh"}


@dataclass(frozen=True)
class AttentionParts:
    """An attention: names of modules inside the layer."""

    attention: Attention
    out: tuple[str, ...] = ()  # what makes the result; a module for every head, or none
    q_norm: str = ""
    k_norm: str = ""


def norms_of(attentions: Mapping[str, object], feeds: bool) -> list[str]:
    """The norms that belong to the sublayers, in order."""
    found = [name.replace("_attention", "_norm") for name in attentions]
    return [*found, "feedforward_norm"] if feeds else found


def find(
    modules: Mapping[str, Module],
    taken: set[str],
    attentions: Mapping[str, AttentionParts],
    feedforward: Mapping[str, str],
    width: int,
    file: str,
    counted: bool,
) -> tuple[dict[str, str], tuple[str, str] | None]:
    found = [name for name, module in modules.items() if name not in taken and is_norm(module, width)]
    found = [name for name in found if name not in feedforward.values()]
    wanted = norms_of(attentions, bool(feedforward))
    if not counted and len(found) > len(wanted):  # norms of the whole model lie beside those of its only layer
        found = [name for name in found if not beside_by_name(name)]
    if not found:
        return {}, None
    if len(found) != len(wanted):
        raise CheckpointError(
            "{file} has {n} norms in a layer of {wanted} sublayers: {names}. Supported is one for each sublayer, "
            "before or after it, or none.",
            file=file,
            n=len(found),
            wanted=len(wanted),
            names=", ".join(shown(modules[name].path) for name in found[:6]),
        )
    if len(found) == 1:
        return {wanted[0]: found[0]}, None
    chosen = (
        _by_place(found, attentions, feedforward)
        or _by_number(found)
        or _by_words(found, wanted)
        or _nested(found, wanted, attentions)
    )
    if chosen is not None:
        return dict(zip(wanted, chosen, strict=True)), None
    if len(found) == 2:
        return {}, (found[0], found[1])
    raise CheckpointError(
        "{file} has three norms in a layer, {names}, and nothing says which belongs to which sublayer. Rename them "
        "(norm1, norm2, norm3).",
        file=file,
        names=", ".join(shown(modules[name].path) for name in found),
    )


def is_norm(module: Module, width: int) -> bool:
    """Whether a module is a norm by its shape; its author's own may have one number for the whole row."""
    if module.raw and not module.own and re.search("norm|ln", module.last, re.IGNORECASE) is None:
        return False  # a parameter of its author's own
    return module.weight is not None and (module.shape == (width,) or (module.own and module.shape == (1,)))


def beside_by_name(name: str) -> bool:
    """Whether a norm is said to stand before or after all layers."""
    return bool(
        words(name) & {"final", "last", "f", "emb", "embed", "embedding", "embeddings", "out", "output", "head", "top"}
    )


def _by_place(
    found: Sequence[str], attentions: Mapping[str, AttentionParts], feedforward: Mapping[str, str]
) -> list[str] | None:
    """Norms that lie in the modules of their sublayers."""
    places = [_home(parts.attention.path, attentions) for parts in attentions.values()]
    if feedforward:
        places.append(_common(list(feedforward.values())))
    chosen: list[str] = []
    for place in places:
        here = [name for name in found if place and name.startswith(f"{place}.")]
        others = [other for other in places if other != place]
        while not here and "." in place:  # the module around it, where that holds no other sublayer
            place = place.rpartition(".")[0]
            if any(other.startswith(f"{place}.") for other in others):
                return None
            here = [name for name in found if name.startswith(f"{place}.")]
        if len(here) != 1:
            return None
        chosen += here
    return chosen if len(set(chosen)) == len(found) else None


def _home(path: str, attentions: Mapping[str, AttentionParts]) -> str:
    """The module around an attention that holds no other."""
    others = [parts.attention.path for parts in attentions.values() if parts.attention.path != path]
    way = path.split(".")
    if len(way) > 1 and way[0].isdecimal() and not any(other.startswith(f"{way[0]}.") for other in others):
        return way[0]  # layers.0.0.fn beside layers.0.0.norm
    return path


def _common(names: Sequence[str]) -> str:
    ways = [name.split(".")[:-1] for name in names]
    n = 0
    while all(len(way) > n for way in ways) and len({way[n] for way in ways}) == 1:
        n += 1
    way = ways[0][:n]
    return way[0] if len(way) > 1 and way[0].isdecimal() else ".".join(way)


def _by_number(found: Sequence[str]) -> list[str] | None:
    """norm1, norm2; sublayer.0.norm, sublayer.1.norm; norm, norm2."""
    stems = {re.sub(r"_?\d+", "", name) for name in found}
    counted = [numbers(name) for name in found]
    if len(stems) != 1 or len(set(counted)) != len(found) or len({len(n) for n in counted if n}) != 1:
        return None
    return sorted(found, key=numbers)


def _by_words(found: Sequence[str], wanted: Sequence[str]) -> list[str] | None:
    by_last = {name.rpartition(".")[2].lower(): name for name in found}
    for first, second in (("input_layernorm", "post_attention_layernorm"), ("input_norm", "post_attention_norm")):
        if set(by_last) == {first, second}:
            return [by_last[first], by_last[second]]
    # input_sublayer, output_sublayer
    if len(found) == 2 and ["input" in words(name) for name in found].count(True) == 1:
        first, second = found if "input" in words(found[0]) else (found[1], found[0])
        if "output" in words(second):
            return [first, second]
    chosen: dict[str, str] = {}
    for name in found:
        said = words(name)
        if said & FEEDFORWARD and not said & ATTENTION:
            role = "feedforward_norm"
        elif "cross_norm" in wanted and said & CROSS:
            role = "cross_norm"
        elif said & (SELF | ATTENTION):
            role = "self_norm"
        else:
            continue
        if role in chosen:
            return None
        chosen[role] = name
    left = [role for role in wanted if role not in chosen]
    rest = [name for name in found if name not in chosen.values()]
    if len(left) == len(rest) == 1 and chosen:  # self_attn_layer_norm, final_layer_norm
        chosen[left[0]] = rest[0]
        left = []
    return [chosen[role] for role in wanted] if not left else None


def _nested(found: Sequence[str], wanted: Sequence[str], attentions: Mapping[str, AttentionParts]) -> list[str] | None:
    """One norm of the layer, and two in the module of an encoder's layer within it, which reads the encoder."""
    if len(wanted) != 3 or "cross_attention" not in attentions:
        return None
    home = attentions["cross_attention"].attention.path.rpartition(".")[0]
    inner = [name for name in found if home and name.startswith(f"{home}.")]
    outer = [name for name in found if name not in inner]
    ordered = _by_number(inner) if len(inner) == 2 else None
    return None if ordered is None or len(outer) != 1 else [outer[0], *ordered]

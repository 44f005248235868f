"""Layers with the same modules, one after the other: the stacks, and which of them is the encoder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vizformer.checkpoints.bare.structure.attentions import Attention
from vizformer.checkpoints.bare.structure.names import Module, is_number, steps
from vizformer.checkpoints.files.untrusted_folder import listed, shown
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

MOST_LAYERS, MOST_STACKS = 512, 8


@dataclass(frozen=True)
class Stack:
    prefix: tuple[str, ...]  # the steps to the list of layers, or to the only layer
    layers: tuple[Mapping[str, Module], ...]  # of every layer the modules, by their names inside of it
    attentions: tuple[Attention, ...]
    counted: bool = True

    @property
    def shown(self) -> str:
        return shown(".".join(self.prefix) or "*")

    def inside(self) -> Iterator[str]:
        return (name for layer in self.layers for module in layer.values() for name in module.names)


def find(found: Mapping[str, Module], attentions: Sequence[Attention], file: str) -> list[Stack]:
    """The first stacks, in the order of the file."""
    left = list(attentions)
    stacks: list[Stack] = []
    while left and len(stacks) < MOST_STACKS:  # a translator has two
        prefix, counted = _prefix(left[0], left)
        layers = _layers(found, prefix, counted)
        first = {module.path: inner for inner, module in layers[0].items()}
        members = [a for a in left if any(path in first for path in a.inside)]
        everything = {module.path for layer in layers for module in layer.values()}
        left = [a for a in left if not everything.intersection(a.inside)]
        if not members:
            raise CheckpointError(
                "{file} has attention in {where}, but not in the first of its layers: no arrangement that opens is like "
                "that.",
                file=file,
                where=shown(".".join(prefix)),
            )
        _alike(layers, file)
        stacks.append(Stack(prefix, tuple(layers), tuple(members), counted))
    return stacks


def _prefix(attention: Attention, others: Sequence[Attention]) -> tuple[tuple[str, ...], bool]:
    """The steps to the list of layers that an attention is in; to its only layer, where there is no list."""
    way = steps(attention.path)
    for place, step in enumerate(way):
        if not is_number(step):
            continue
        prefix = way[:place]
        inner: dict[int, list[list[str]]] = {}
        for other in others:
            there = steps(other.path)
            if there[:place] == prefix and len(there) > place and is_number(there[place]):
                inner.setdefault(int(there[place]), []).append(there[place + 1 :])
        first = min(inner)
        if first == 1 and attention.path.startswith(".".join([*prefix, ""])):  # of a list, whose layer 0 is missing
            continue
        alike = sorted(inner) == list(range(first, first + len(inner))) and all(
            p == inner[first] for p in inner.values()
        )
        if alike and first < 2 and len(inner[first]) <= 2 and len(inner) <= MOST_LAYERS:  # layer_1 may be the first
            return tuple(prefix), True
    return tuple(way[:-1] if not attention.by_head or len(way) < 2 else way[:-2]), False


def _layers(found: Mapping[str, Module], prefix: tuple[str, ...], counted: bool) -> list[dict[str, Module]]:
    layers: dict[int, dict[str, Module]] = {}
    n = len(prefix)
    for path, module in found.items():
        way = steps(path)
        if tuple(way[:n]) != prefix or len(way) <= n:
            continue
        if not counted:
            layers.setdefault(0, {})[".".join(way[n:])] = module
        elif is_number(way[n]) and int(way[n]) < MOST_LAYERS:
            layers.setdefault(int(way[n]), {})[".".join(way[n + 1 :])] = module
    return [layers[number] for number in sorted(layers)]


def _alike(layers: Sequence[Mapping[str, Module]], file: str) -> None:
    """Every layer has the same modules, of the same shapes."""
    kinds: dict[str, list[Module | None]] = {}
    for inner in dict.fromkeys(inner for layer in layers for inner in layer):
        kinds[inner] = [layer.get(inner) for layer in layers]
    wrong: list[Message] = []
    for inner, modules in kinds.items():
        known = [module for module in modules if module is not None]
        for number, module in enumerate(modules):
            if module is None:
                wrong.append(
                    N_(
                        "layer {number} has no {name}, as {other} is",
                        number=number,
                        name=shown(inner),
                        other=shown(known[0].path),
                    )
                )
            elif not module.is_like(known[0]):
                wrong.append(
                    N_(
                        "{name} {shape} is not like {other} {expected}",
                        name=" + ".join(map(shown, module.names)),
                        shape=list(module.shape),
                        other=" + ".join(map(shown, known[0].names)),
                        expected=list(known[0].shape),
                    )
                )
    if wrong:
        raise CheckpointError(
            "{file} has layers that are not alike: {problems}. The layers of a stack have the same tensors: one may "
            "be missing, or the layers differ in what they do, which does not open.",
            file=file,
            problems=listed(wrong),
        )

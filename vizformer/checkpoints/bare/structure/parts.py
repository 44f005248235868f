"""The tensors of a stack's layers in our block: heads joined, matrices turned, what is missing filled exactly."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vizformer.checkpoints.bare.layout import zeros
from vizformer.checkpoints.bare.structure.arithmetic import Sizes
from vizformer.checkpoints.bare.structure.block import Block
from vizformer.checkpoints.bare.structure.block_norms import AttentionParts
from vizformer.checkpoints.bare.structure.derived_tensors import Made, expanded, flattened, joined, repeated
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.tensors.tensor_map import Part, Shape

Fill = Callable[[Shape], Tensor]


@dataclass(frozen=True)
class Reading:
    """How the numbers are laid out."""

    sizes: Sizes
    n_heads: int
    turned: Mapping[bool, bool]  # of modules (False) and raw parameters (True), whether they are [in, out]
    in_turn: bool  # of each letter, one row of every head after the other, and not head by head
    # how those of several letters lie, where it is not letter by letter: "by_head": of head 0 each letter, then of head
    # 1, ..., and "by_head_number": number by number there; "by_number": row 0 of each letter and head, then row 1 of
    # each, ..., and "by_number_head": head by head there
    rows: str
    order: str  # of the letters ("v_k_q", "as_q_k_v"), where it is not that of their name
    joined_in_turn: bool  # whether what the heads have made is joined number by number, and not head by head
    pairs: bool  # whether rotary positions turn neighbours together, where ours turn halves
    # qkv_bias, out_bias, inner_bias: which linear layers of our block have biases
    qkv_bias: bool
    out_bias: bool
    inner_bias: bool
    normed: bool
    shifted: bool
    shifts: bool  # whether theirs have; then one without is a tensor too few
    qk_normed: bool  # whether queries and keys have norms, which may be without weights

    @property
    def d_head(self) -> int:
        return self.sizes.queries // self.n_heads

    def of_head(self, head: int, place: int, sizes: Sequence[int]) -> list[int]:
        """The rows of a head in a matrix of several letters, of which each has so many; `place` is that of the letter."""
        d, n, heads, before = self.d_head, len(sizes), sizes[place] // self.d_head, sum(sizes[:place])
        alternate = {
            "by_head": ((head * n + place) * d, 1),
            "by_head_number": (head * n * d + place, n),
            "by_number": (place * heads + head, n * heads),
            "by_number_head": (head * n + place, n * heads),
        }
        start, step = (before + head, heads) if self.in_turn else (before + head * d, 1)
        if n > 1 and self.rows in alternate:
            start, step = alternate[self.rows]
        return [start + step * number for number in range(d)]

    def in_order(self, letters: str) -> str:
        """The letters of a matrix in the order in which their rows lie."""
        return "".join(sorted(letters, key=self.order.find))


@dataclass
class Layers:
    """What becomes of the tensors: as in `Plan`."""

    parts: list[Part] = field(default_factory=list)
    made: dict[str, Made] = field(default_factory=dict)
    fills: dict[str, Fill] = field(default_factory=dict)

    def norm(self, module: Module | None, target: str, width: int, how: Reading) -> None:
        """A norm; without weights its scale is 1 and its shift 0."""
        for kind in ("weight", "bias") if how.shifted else ("weight",):
            name = None if module is None else module.weight if kind == "weight" else module.bias
            if module is not None and kind == "bias" and how.shifts:
                name = name or f"{module.path}.bias"  # which is missing
            if module is None or name is None:
                self.fills[f"{target}.{kind}"] = zeros if kind == "bias" else torch.ones
                continue
            stored = module.shape if kind == "weight" else module.bias_shape
            if stored == (1,) != (width,) and name in module.names:
                self.made[name] = expanded(name, width)
            self.parts.append(Part(name, (f"{target}.{kind}",)))


def add(
    layers: Layers, stack: Stack, block: Block, norms: Mapping[str, str], name: str, how: Reading, first: str = ""
) -> None:
    """Adds the layers of a stack, which is called `name` in our model; `norms` are those of its sublayers.

    With `first`, the norm of each sublayer is in our model that of the one before, and the first one is called so.
    """
    kinds = (*(own.replace("_attention", "_norm") for own in block.attentions), "feedforward_norm")
    own_norms = [f"{name}.layers.{number}.{own}" for number in range(len(stack.layers)) for own in kinds]
    own_norms = [first, *own_norms[:-1]] if first else own_norms
    theirs = [modules[norms[own]] if own in norms else None for modules in stack.layers for own in kinds]
    for target, module in zip(own_norms, theirs, strict=True) if how.normed else ():
        layers.norm(module, target, how.sizes.width, how)
    for number, modules in enumerate(stack.layers):
        target = f"{name}.layers.{number}"
        for own, parts in block.attentions.items():
            _attention(layers, modules, parts, f"{target}.{own}", how)
        _network(layers, modules, block, f"{target}.feedforward", how)


def _attention(layers: Layers, modules: Mapping[str, Module], parts: AttentionParts, target: str, how: Reading) -> None:
    for projection in parts.attention.projections:
        found = [modules[name] for name in projection.modules]
        letters = how.in_order(projection.letters)
        targets = [f"{target}.W_{letter.upper()}" for letter in letters]
        weight = _whole(layers, [m.weight or "" for m in found], [m.shape for m in found], found[0].raw, how)
        if how.sizes.repeated > 1:
            layers.made[weight] = repeated(weight, found[0].shape, how.sizes.repeated)
        _rows(layers, weight, found[0].shape[0], targets, "weight", letters, how)
        if not how.qkv_bias:
            continue
        biases = [m.bias for m in found if m.bias is not None]
        if len(biases) == len(found):
            bias = _whole(layers, biases, [m.bias_shape for m in found], False, how)
            if how.sizes.repeated > 1:
                layers.made[bias] = repeated(bias, found[0].bias_shape, how.sizes.repeated)
            _rows(layers, bias, found[0].bias_shape[0], targets, "bias", letters, how)
        else:
            layers.fills |= dict.fromkeys((f"{own}.bias" for own in targets), zeros)
    _result(layers, modules, parts, f"{target}.W_O", how)
    for norm, own in ((parts.q_norm, "q_norm"), (parts.k_norm, "k_norm")):
        if how.qk_normed:
            layers.norm(modules[norm] if norm else None, f"{target}.{own}", how.d_head, how)


def _whole(
    layers: Layers, names: Sequence[str], shapes: Sequence[Shape], raw: bool, how: Reading, *, columns: bool = False
) -> str:
    """The name of one tensor: the only one, turned if need be, or those of all heads together."""
    turn = how.turned[raw] and len(shapes[0]) == 2
    if len(names) == 1 and not turn:
        return names[0]
    first = tuple(reversed(shapes[0])) if turn else tuple(shapes[0])
    side = 1 if columns else 0
    if len(set(shapes)) > 1 or len(first) <= side:  # the matching says that these are too many or few
        return names[0]
    shape = tuple(n * len(names) if place == side else n for place, n in enumerate(first))
    name = names[0] if len(names) == 1 else _in_common(names)
    layers.made[name] = joined(names, shape, turn=turn, columns=columns)
    return name


def _in_common(names: Sequence[str]) -> str:
    """A name for all heads: blocks.0.sa.heads.#.key.weight."""
    one, other = names[0].split("."), names[1].split(".")
    return ".".join(a if a == b else "#" for a, b in zip(one, other, strict=False))


def _rows(
    layers: Layers, source: str, rows: int, targets: Sequence[str], kind: str, letters: str, how: Reading
) -> None:
    """The rows of a matrix or a bias, of which the file has so many, in the order that ours have."""
    full = tuple(f"{own}.{kind}" for own in targets)
    sizes = [how.sizes.queries if letter == "q" else how.sizes.keys for letter in letters]
    alternate = how.in_turn or (how.rows.startswith("by_") and len(letters) > 1)
    turns = how.pairs and any(letter in "qk" for letter in letters)
    known = layers.made[source].shape[0] if source in layers.made else rows
    if known != sum(sizes) or (not alternate and not turns):
        layers.parts.append(Part(source, full))
        return
    index: list[int] = []
    for place, (letter, size) in enumerate(zip(letters, sizes, strict=True)):
        for head in range(size // how.d_head):
            own = how.of_head(head, place, sizes)
            index += own[0::2] + own[1::2] if turns and letter in "qk" else own
    before = layers.made.get(source)
    order = torch.tensor(index)

    def build(tensors: Sequence[Tensor]) -> Tensor:
        whole = before.build(tensors) if before is not None else tensors[0]
        return whole[order]

    rest = (how.sizes.width,) if kind == "weight" else ()
    layers.made[source] = Made(before.sources if before is not None else (source,), (len(index), *rest), build)
    layers.parts.append(Part(source, full))


def _result(layers: Layers, modules: Mapping[str, Module], parts: AttentionParts, target: str, how: Reading) -> None:
    """The projection after the heads; without one, the heads' results are the attention's."""
    if not parts.out:
        order = in_turn(how) if how.joined_in_turn else slice(None)
        layers.fills[f"{target}.weight"] = lambda shape: torch.eye(*shape)[:, order]
        if how.out_bias:
            layers.fills[f"{target}.bias"] = zeros
        return
    found = [modules[name] for name in parts.out]
    names = [m.weight or "" for m in found]
    weight = _whole(layers, names, [m.shape for m in found], found[0].raw, how, columns=True)
    if how.joined_in_turn:
        _columns_in_turn(layers, weight, how)
    layers.parts.append(Part(weight, (f"{target}.weight",)))
    biases = [m.bias for m in found if m.bias is not None]
    # of a projection for every head: a sum
    if len(biases) > 1 and {m.bias_shape for m in found} == {(how.sizes.width,)}:
        name = _in_common(biases)
        layers.made[name] = Made(tuple(biases), (how.sizes.width,), lambda tensors: torch.stack(list(tensors)).sum(0))
        layers.parts.append(Part(name, (f"{target}.bias",)))
    elif biases:
        layers.parts.append(Part(biases[0], (f"{target}.bias",)))
    elif how.out_bias:
        layers.fills[f"{target}.bias"] = zeros


def in_turn(how: Reading) -> Tensor:
    """For each number of the heads, one head after the other, its place where they are joined number by number."""
    return torch.arange(how.sizes.queries).reshape(how.d_head, how.n_heads).T.flatten()


def _columns_in_turn(layers: Layers, weight: str, how: Reading) -> None:
    """The projection after the heads reads the numbers of all heads in turn: its columns, in the order that ours have."""
    before, queries = layers.made.get(weight), how.sizes.queries
    order = in_turn(how)

    def build(tensors: Sequence[Tensor]) -> Tensor:
        return (before.build(tensors) if before is not None else tensors[0])[:, order]

    layers.made[weight] = Made(before.sources if before is not None else (weight,), (how.sizes.width, queries), build)


def _network(layers: Layers, modules: Mapping[str, Module], block: Block, target: str, how: Reading) -> None:
    if not block.feedforward:  # one hidden number that nothing reads and that adds nothing
        kinds = ("weight", "bias") if how.inner_bias else ("weight",)
        layers.fills |= {f"{target}.{own}.{kind}": zeros for own in ("W_in", "W_out") for kind in kinds}
        return
    for own, name in block.feedforward.items():
        module = modules[name]
        weight = _whole(layers, [module.weight or ""], [module.shape], module.raw, how)
        if module.flat:
            layers.made[weight] = flattened(weight, module.shape)
        layers.parts.append(Part(weight, (f"{target}.{own}.weight",)))
        if module.bias is not None:
            layers.parts.append(Part(module.bias, (f"{target}.{own}.bias",)))
        elif how.inner_bias:
            layers.fills[f"{target}.{own}.bias"] = zeros

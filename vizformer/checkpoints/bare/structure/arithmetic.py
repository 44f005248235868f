"""What the layers compute with: the width of the rows, the sizes of heads and networks, which way matrices are written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vizformer.checkpoints.bare.structure.block import Block
from vizformer.checkpoints.bare.structure.block_norms import AttentionParts
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.errors import CheckpointError

_MOST_HEADS = 256


@dataclass(frozen=True)
class Sizes:
    """Of all attentions and networks of a model."""

    width: int
    # queries, keys: rows of the matrices of queries, and of keys and values, all heads together
    queries: int
    keys: int
    heads: int | None  # how many there are, where every one has modules of its own, or all have the same
    inner: int  # hidden numbers of the feed-forward network; 0 where there is none
    repeated: int = 1  # how often a matrix of one head stands for all of them: 1 where every head has its own numbers


def width(found: Mapping[str, Module], stacks: Sequence[Stack], used: Sequence[str]) -> int:
    """How wide the rows of the layers are."""
    attention = stacks[0].attentions[0]
    projection = attention.projections[0]
    rows, columns = found[projection.modules[0]].shape
    n = len(projection.letters)
    inside = set(used)
    beside = [module.shape for path, module in found.items() if path not in inside and module.is_matrix]
    ends = [shape[-1] for shape in beside]
    if not found[projection.modules[0]].raw:
        if n == 1 and rows == columns and rows not in ends:  # one matrix for all heads
            norms = [m.shape[0] for path, m in found.items() if path in inside and len(m.shape) == 1]
            wider = [side for side in set(norms) & set(ends) if side % rows == 0]
            return wider[0] if len(wider) == 1 else columns
        return rows if n > 1 and columns == n * rows else columns  # Conv1D keeps [in, out]
    if n > 1 and rows != columns:
        return min(rows, columns)
    return max((rows, columns), key=lambda side: (ends.count(side), side))


def is_conv(found: Mapping[str, Module], stacks: Sequence[Stack], width: int) -> bool:
    """Whether modules keep [in, out], as GPT-2's do: told by the fused matrix."""
    for stack in stacks:
        for attention in stack.attentions:
            for projection in attention.projections:
                module, n = found[projection.modules[0]], len(projection.letters)
                if n > 1 and not module.raw and module.shape == (width, n * width):
                    return True
    return False


def raw_is_turned(stacks: Sequence[Stack], blocks: Sequence[Block], width: int, file: str) -> bool | None:
    """Whether parameters without modules are [in, out]; None where shapes do not say and there are such."""
    said: set[bool] = set()
    some = False
    for stack, block in zip(stacks, blocks, strict=True):
        layer = stack.layers[0]
        for name, reads in _sides(block):
            module = layer[name]
            if not module.raw:
                continue
            some = True
            rows, columns = module.shape
            if rows != columns and width in (rows, columns):
                said.add((rows == width) is reads)
    if len(said) > 1:
        raise CheckpointError(
            "{file} keeps some of its matrices as [in, out] and others as [out, in]: that does not open.", file=file
        )
    return said.pop() if said else (None if some else False)


def _sides(block: Block) -> Iterator[tuple[str, bool]]:
    """Every matrix of a layer, and whether it reads the rows (or else makes them)."""
    for parts in block.attentions.values():
        yield from [(name, True) for name in parts.attention.inside]
        yield from [(name, False) for name in parts.out]
    for role, name in block.feedforward.items():
        yield (name, role != "W_out")


def sizes(
    stacks: Sequence[Stack], blocks: Sequence[Block], width: int, turned: Mapping[bool, bool], file: str
) -> Sizes:
    """The sizes, which all layers share; `turned` says of raw parameters and of modules whether they are [in, out]."""
    found: set[Sizes] = set()
    where: list[str] = []
    for stack, block in zip(stacks, blocks, strict=True):
        layer = stack.layers[0]

        def shape(name: str, layer: Mapping[str, Module] = layer) -> tuple[int, int]:
            rows, columns = layer[name].shape
            return (columns, rows) if turned[layer[name].raw] else (rows, columns)

        inner = shape(block.feedforward["W_in"])[0] if block.feedforward else 0
        for parts in block.attentions.values():
            queries, keys, heads, repeated = _heads(parts, shape, width, file)
            found.add(Sizes(width, queries, keys, heads, inner, repeated))
            where.append((stack.prefix and ".".join(stack.prefix)) or parts.attention.path)
    if len(found) > 1:
        raise CheckpointError(
            "{file} has attentions or feed-forward networks of several sizes ({where}): supported are those where "
            "all layers have the same.",
            file=file,
            where=", ".join(dict.fromkeys(map(shown, where))),
        )
    return found.pop()


def _heads(
    parts: AttentionParts, shape: Callable[[str], tuple[int, int]], width: int, file: str
) -> tuple[int, int, int | None, int]:
    """Rows of queries, rows of keys (and of values), the number of heads where it shows, and as how many one counts."""
    attention = parts.attention
    rows: dict[str, int] = {}
    out = sum(shape(name)[1] for name in parts.out)
    for projection in attention.projections:
        whole = sum(shape(module)[0] for module in projection.modules)
        n = len(projection.letters)
        if n == 3 and out and whole != 3 * out and (whole - out) % 2 == 0:
            rows |= {"q": out, "k": (whole - out) // 2, "v": (whole - out) // 2}
        else:
            rows |= dict.fromkeys(projection.letters, whole // n)
    side = rows["q"]
    alike = not attention.by_head and set(rows.values()) == {side, shape(attention.inside[0])[1]}
    if alike and side < width == out and width % side == 0 and width // side <= _MOST_HEADS:
        return width, width, width // side, width // side
    if rows["k"] != rows["v"] or (out or width) != rows["q"]:
        raise CheckpointError(
            "{file} has an attention ({name}) with {q} rows of queries, {k} of keys and {v} of values, and an output "
            "that reads {out}: supported are heads whose values are as wide as their keys.",
            file=file,
            name=shown(attention.path or attention.inside[0]),
            q=rows["q"],
            k=rows["k"],
            v=rows["v"],
            out=out or width,
        )
    return rows["q"], rows["k"], len(attention.projections[0].modules) if attention.by_head else None, 1

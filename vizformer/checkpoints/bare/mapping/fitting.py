"""Which tensors can play a role, by their shapes: what a form offers, so that nothing impossible can be chosen."""

from collections.abc import Mapping, Sequence

from vizformer.checkpoints.bare.mapping.kinds import TensorKind
from vizformer.checkpoints.bare.mapping.roles import Role, find
from vizformer.checkpoints.tensors.role_mapping import Entry
from vizformer.checkpoints.tensors.tensor_map import Shape

_LETTERS = "QKV"


def choices(
    kinds: Sequence[TensorKind],
    role: Role,
    part: str,
    width: int,
    *,
    current: Entry | None = None,
    turned: bool = False,
) -> list[Entry]:
    """The tensors whose shapes fit a role, with how they are to be read.

    Args:
        current: the entry that stands there now; it is among them as it is, if its tensor is.
        turned: whether square matrices of modules are [in, out], as the others of the file are.
    """
    layered = any("#" in kind.pattern for kind in kinds)
    found: list[Entry] = []
    for kind in kinds:
        pattern = kind.pattern
        if ("*" in pattern and not role.by_head) or (layered and role.in_layers != ("#" in pattern)):
            continue
        shape = kind.shape[:2] if len(kind.shape) == 3 and kind.shape[2] == 1 else kind.shape
        if part == "bias":
            found += [Entry(pattern)] if _is_bias(shape, role, width) else []
        elif role.kind in ("norm", "head norm"):
            fits = shape in ((width,), (1,)) if role.kind == "norm" else len(shape) == 1 and shape[0] <= width
            found += [Entry(pattern)] if fits else []
        elif role.kind == "table":
            found += _table(pattern, shape, width)
        elif len(shape) == 2:
            found += _matrix(kind, (shape[0], shape[1]), role, width, turned)
    known = [current if current is not None and _same(entry, current) else entry for entry in found]
    if current is not None and current not in known and any(kind.pattern == current.tensor for kind in kinds):
        known.insert(0, current)
    return known


def with_biases(
    entries: Mapping[str, Entry], kinds: Sequence[TensorKind], left_out: Sequence[str] = ()
) -> dict[str, Entry]:
    """The entries with the biases that lie beside the weights and that nobody gave another role."""
    found = dict(entries)
    free = {kind.pattern for kind in kinds} - {entry.tensor for entry in entries.values()} - set(left_out)
    for role, entry in entries.items():
        bias, its = f"{role.removesuffix('weight')}bias", f"{entry.tensor.removesuffix('weight')}bias"
        known = find(bias)
        if role.endswith(".weight") and entry.tensor.endswith("weight") and its in free and known and bias not in found:
            found[bias] = Entry(its, None, entry.rows)
    return found


def _same(one: Entry, other: Entry) -> bool:
    return (one.tensor, one.rows) == (other.tensor, other.rows)


def _is_bias(shape: Shape, role: Role, width: int) -> bool:
    if len(shape) != 1:
        return False
    return shape[0] in (1, width) if role.kind == "norm" else role.kind != "makes" or shape[0] == width


def _table(pattern: str, shape: Shape, width: int) -> list[Entry]:
    flat = tuple(side for side in shape if side != 1) if len(shape) == 3 else shape
    if len(flat) != 2 or width not in flat:
        return []
    return [Entry(pattern)] if flat[1] == width else [Entry(pattern, transpose=True)]


def _matrix(kind: TensorKind, shape: tuple[int, int], role: Role, width: int, turned: bool) -> list[Entry]:
    """[out, in], or [in, out] where only that fits; a third of a matrix of queries, keys and values; half of two."""
    rows, columns = shape
    small = rows == columns != width and width % rows == 0  # one matrix for all heads
    if rows == columns and (rows == width or small) and not role.name.endswith("kv"):
        transpose = True if turned and not kind.raw else None
        return [Entry(kind.pattern, transpose)] if not small or role.by_head else []
    ours = columns if role.kind == "reads" else rows
    if width not in shape:
        return []
    transpose = None if ours == width else True
    whole = columns if transpose else rows
    pieces = {"qkv": 3, "kv": 2}.get(role.name.rpartition(".")[2], 1)
    if whole % pieces and (pieces == 2 or whole <= width):  # fewer keys than queries leave other sums
        return []
    found = [Entry(kind.pattern, transpose)]
    last = role.name[-1:]
    if role.kind == "reads" and role.by_head and "*" not in kind.pattern:
        for n, letters in ((3, _LETTERS), (2, _LETTERS[1:])):
            if whole == n * width and last in letters:
                found += [Entry(kind.pattern, transpose, (i * width, (i + 1) * width)) for i in range(n)]
    return found

"""The roles that the reader by role gives to tensors, as a mapping that can be corrected by hand.

What it would have to ask (which of two norms, which of two tables) has no role in the proposal, so that nobody takes a
guess for a reading.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from vizformer.checkpoints.bare.layouts.tables import POSITION, Tables, find_tables
from vizformer.checkpoints.bare.mapping.kinds import TensorKind, find_kinds, patterns
from vizformer.checkpoints.bare.structure import outer_parts, reader
from vizformer.checkpoints.bare.structure.block import Block
from vizformer.checkpoints.bare.structure.findings import Found, tables
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import damaged
from vizformer.checkpoints.files.weights import FLOATS, Weights
from vizformer.checkpoints.tensors.role_mapping import Entry, RoleMapping
from vizformer.errors import CheckpointError
from vizformer.messages import Message

MOST_TENSORS = 20_000


@dataclass(frozen=True)
class Sheet:
    """The tensors and the roles of a file, side by side."""

    kinds: tuple[TensorKind, ...]
    proposal: RoleMapping  # the roles as they were read, as far as they were
    both: bool
    width: int  # of the rows, as found, or the side that most matrices have
    widths: tuple[int, ...]  # the sides that it may be, the most frequent first
    doubt: Message | None = None


def sheet(weights: Weights) -> Sheet:
    """Reads the tensors of a file as far as they can be read by role."""
    if len(weights.tensors) > MOST_TENSORS:
        raise damaged(weights.where, f"{len(weights.tensors):,} tensors; at most {MOST_TENSORS:,} are mapped by hand")
    buffers = outer_parts.buffers(weights)
    known = {name: stored for name, stored in weights.tensors.items() if name not in buffers.unused}
    floats = replace(weights, tensors={name: s for name, s in known.items() if s.dtype in FLOATS})
    names = patterns(floats)
    found: Found | None = None
    proposal, doubt = RoleMapping({}), None
    try:
        found = reader.find(weights)
        proposal = _tables_alone(floats, names) if found is None else _proposed(found, names)
    except CheckpointError as error:
        doubt = error.message
    sides = Counter(side for s in floats.tensors.values() if len(s.shape) == 2 for side in set(s.shape))
    widths = tuple(side for side, __ in sides.most_common() if side > 1)[:64]
    width = found.sizes.width if found is not None else next(iter(widths), 1)
    both = found is not None and found.both
    return Sheet(tuple(find_kinds(floats, names)), proposal, both, width, widths, doubt)


def _tables_alone(weights: Weights, names: Mapping[str, str]) -> RoleMapping:
    """What lies beside the layers, where nothing in them was understood: the tables that have names that say so."""
    inside = {name for name, pattern in names.items() if "#" in pattern}
    sides = Counter(weights.tensors[name].shape[-1] for name in inside if len(weights.tensors[name].shape) == 2)
    if not sides:
        return RoleMapping({})
    given = find_tables(weights, sides.most_common(1)[0][0], inside)
    roles = ("embedding.weight", "position_embedding.weight", "unembedding.weight")
    by_target = {target: names[part.source] for part in given.parts for target in part.targets if part.source in names}
    return RoleMapping({role: Entry(by_target[role]) for role in roles if role in by_target})


def _proposed(found: Found, names: Mapping[str, str]) -> RoleMapping:
    entries: dict[str, Entry] = {}

    def add(role: str, module: Module, *, turn: bool | None = None) -> None:
        for kind, name in (("weight", module.weight), ("bias", module.bias)):
            if name is not None:
                entries[f"{role}.{kind}"] = Entry(names[name], turn if kind == "weight" else None)

    given: Tables = tables(found)
    by_target = {target: part.source for part in given.parts for target in part.targets}
    ours = ("embedding.weight", "source_embedding.weight", "position_embedding.weight")
    for target in (*ours, "decoder_position_embedding.weight"):
        name = by_target.get(target, "")
        if given.open_pair is not None and name in given.open_pair:
            continue
        if name in names:
            entries[target] = Entry(names[name])
        elif name.endswith(outer_parts.ONE_HOT):
            entries[target] = Entry(names[found.made[name].sources[0]], transpose=True)
    waves = [name for name in given.unused if POSITION.search(name) and name in names]  # which are computed anew
    for role, name in zip((*ours[2:], "decoder_position_embedding.weight"), waves, strict=False):
        entries.setdefault(role, Entry(names[name]))
    if found.segments:
        entries["segment_embedding.weight"] = Entry(names[found.segments])
    for target, role in (("unembedding.weight", "unembedding.weight"), ("logit_bias", "unembedding.bias")):
        if by_target.get(target) in names:
            entries[role] = Entry(names[by_target[target]])
    if given.predicts and "unembedding.weight" not in entries:  # the same numbers as the embeddings
        for again in given.ties:
            if again.endswith(".weight") and again in names:
                entries["unembedding.weight"] = Entry(names[again])
    stacks = ("encoder.", "decoder.") if found.both else ("",)
    for number, (stack, block, place) in enumerate(zip(found.stacks, found.blocks, stacks, strict=True)):
        _layers(add, found, stack, block, f"{place}layers.#")
        for norms, role in ((found.norms.first, "embedding_norm"), (found.norms.last, "final_norm")):
            if number in norms:
                add(f"{place}{role}", norms[number])
    taken = {entry.tensor for entry in entries.values()}
    out = dict.fromkeys(names[name] for name in (*given.unused, *given.ties) if name in names)
    return RoleMapping(entries, tuple(pattern for pattern in out if pattern not in taken))


def _layers(add: Callable[..., None], found: Found, stack: Stack, block: Block, place: str) -> None:
    """The roles of the first layer, which are those of all."""
    layer = stack.layers[0]

    def turn(module: Module) -> bool | None:
        return None if module.raw else (True if found.turned[False] else None)

    def each(role: str, modules: Sequence[str]) -> None:
        if modules:
            first = layer[modules[0]]
            add(role, first, turn=turn(first))

    for own, parts in block.attentions.items():
        for projection in parts.attention.projections:
            letters = projection.letters
            role = f"W_{letters.upper()}" if len(letters) == 1 else letters
            each(f"{place}.{own}.{role}", projection.modules)
        each(f"{place}.{own}.W_O", parts.out)
        for norm, role in ((parts.q_norm, "q_norm"), (parts.k_norm, "k_norm")):
            if norm:
                add(f"{place}.{own}.{role}", layer[norm])
    for role, name in block.feedforward.items():
        if name in (block.gates or ()):
            continue
        each(f"{place}.feedforward.{role}", [name])
    for role, name in block.norms.items():
        add(f"{place}.{role}", layer[name])

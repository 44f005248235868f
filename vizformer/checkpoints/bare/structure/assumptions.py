"""What a reading by role assumes, in sentences for the report."""

from collections.abc import Iterator, Mapping, Sequence

from vizformer.checkpoints.bare.layouts.tables import Tables
from vizformer.checkpoints.bare.likeness import family
from vizformer.checkpoints.bare.structure import outer_parts
from vizformer.checkpoints.bare.structure.block import Block
from vizformer.checkpoints.bare.structure.findings import Found
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.messages import N_, Message

# the first line, which a mapping by hand takes the place of
READ_BY_ROLE = N_("read by role: query {q}, key {k}, value {v}, output {o}; network {up}, {down}; norms {norms}").text


def norms_beside(before: Mapping[int, Module | None], after: Mapping[int, Module | None]) -> list[Message]:
    """Where the norms beside the layers were taken to stand."""
    lines = [N_("{name} is the norm after the last layer", name=shown(m.path)) for m in after.values() if m]
    return lines + [N_("{name} is a norm after the embeddings", name=shown(m.path)) for m in before.values() if m]


def read_by_role(found: Found, tables: Tables, tied: bool = False) -> Iterator[Message]:
    """How the tensors were taken, whatever the answers are; `tied`: the logits are made with the table of embeddings."""
    for stack, block in zip(found.stacks, found.blocks, strict=True):
        yield _roles_said(stack.layers[0], block)
    for block in found.blocks:
        yield from block.assumed
    if name := family(found.weights):
        yield N_(
            "`transformers` gives such names to {family} and to relatives of it that compute something else: if this is "
            "one of them, open its folder with config.json",
            family=name,
        )
    block = found.blocks[-1]
    if block.attentions["self_attention"].attention.numbered:
        yield N_("the matrices that only numbers tell apart are query, key, value and output, in this order")
    if found.buffers.causal:
        yield N_("every position sees only those before it: {name} holds such a mask", name=shown(found.buffers.causal))
    if found.buffers.pairs:
        yield N_(
            "{name} turns neighbours of queries and keys together: rotary positions",
            name=shown(found.buffers.pairs),
        )
    if found.sizes.repeated > 1:
        yield N_("all heads of a layer have the same matrices: those in the file are as wide as one head")
    if not found.stacks[-1].counted:
        yield N_("the model has one layer, which is applied once")
    if found.both:
        yield N_("a position of the decoder sees all of the encoder's output")
    if not block.feedforward:
        yield N_("the layers have no feed-forward network: the one shown is made of zeros and adds nothing")
    if not all(parts.out for block in found.blocks for parts in block.attentions.values()):
        yield N_("attention has no projection after its heads: the one shown passes on what the heads made")
    if not found.layer_norms():
        yield N_("the layers have no weights of norms")
    if found.segments:
        yield N_("{name} is the table of segments", name=shown(found.segments))
    for name, recipe in found.made.items():
        if name.endswith(outer_parts.ONE_HOT):
            yield N_(
                "{name} reads every token as a vector with one 1: its columns are taken for the embeddings of tokens. "
                "Where the model reads other numbers, what is shown is not its input",
                name=shown(recipe.sources[0]),
            )
        elif name.endswith(outer_parts.WIDER):
            yield N_(
                "{name} makes the rows of {table} as wide as those of the layers: the products are taken for the "
                "embeddings of tokens, to which positions are added",
                name=shown(recipe.sources[1]),
                table=shown(recipe.sources[0]),
            )
    if lacking := found.without_bias():
        yield N_(
            "{names} have no bias in the file, although others like them do: it is 0",
            names=", ".join(shown(module.path) for module in lacking[:6]),
        )
    qkv, out, __ = found.biases
    if out and not qkv:
        yield N_("queries, keys and values have no biases in the file: those shown are 0")
    yield from tables.assumptions
    yield from tables.of_ends(tied)


def _roles_said(layer: Mapping[str, Module], block: Block) -> Message:
    """The roles as they were read, in the first layer of the last stack."""
    own = block.attentions["self_attention"]

    def named(names: Sequence[str]) -> str:
        return shown(layer[names[0]].path) if names else "-"

    said = {letter: p.modules for p in own.attention.projections for letter in p.letters}
    return N_(
        "read by role: query {q}, key {k}, value {v}, output {o}; network {up}, {down}; norms {norms}",
        q=named(said["q"]),
        k=named(said["k"]),
        v=named(said["v"]),
        o=named(own.out),
        up=named([block.feedforward["W_in"]]) if block.feedforward else "-",
        down=named([block.feedforward["W_out"]]) if block.feedforward else "-",
        norms=", ".join(shown(layer[name].path) for name in (*block.norms.values(), *(block.pair or ()))) or "-",
    )

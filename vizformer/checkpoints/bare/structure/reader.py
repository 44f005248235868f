"""State dicts of models that somebody wrote: a layout for all of them, found by role.

Attentions come first (their words are the most alike), then the layers around them, what else is in a layer, and what
lies beside the layers.  What no tensor tells is a question; a tensor without a role keeps the model from opening.
"""

from collections.abc import Mapping

from vizformer.checkpoints.bare.layout import Layout, Plan
from vizformer.checkpoints.bare.structure import arithmetic, attentions, outer_parts, stacks
from vizformer.checkpoints.bare.structure.assumptions import read_by_role
from vizformer.checkpoints.bare.structure.block import Block, read
from vizformer.checkpoints.bare.structure.derived_tensors import Made
from vizformer.checkpoints.bare.structure.findings import Found, tables
from vizformer.checkpoints.bare.structure.names import Module, modules
from vizformer.checkpoints.bare.structure.open_questions import find_open_questions, norm_kind
from vizformer.checkpoints.bare.structure.plan import make_plan
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.tensors.questions import Value
from vizformer.errors import CheckpointError

NAME = "hand-written"
_OURS = ".layers.0.feedforward.W_in.weight"  # of VizFormer's own format, whose config.json says everything


def recognise(weights: Weights) -> Layout | None:
    """The layout, if there is attention in the file."""
    if any(name.endswith(_OURS) for name in weights.tensors):
        return None
    found = find(weights)
    return None if found is None else _layout(found)


def recognise_mapped(weights: Weights) -> Layout | None:
    """The layout of tensors whose names say their roles, as a mapping by hand gave them."""
    found = find(weights)
    if found is None:
        raise CheckpointError(
            "The mapping by hand says of no tensors that they make queries, keys and values (W_Q, W_K and W_V, or "
            "qkv): without attention there is no model to show."
        )
    return _layout(found)


def find(weights: Weights) -> Found | None:
    """What plays which role, if there is attention in the file."""
    buffers = outer_parts.buffers(weights)
    named = {name: stored for name, stored in weights.tensors.items() if name not in buffers.unused}
    found = modules(named)
    attending = attentions.find(found)
    if not attending:
        return None
    ordered = _ordered(stacks.find(found, attending, weights.where), weights.where)
    return _found(weights, found, ordered, buffers)


def _ordered(found: list[Stack], file: str) -> tuple[Stack, ...]:
    """An encoder before the decoder that reads it, or one stack alone."""
    ordered = sorted(found, key=lambda stack: len(stack.attentions))
    kinds = [len(stack.attentions) for stack in ordered]
    if kinds in ([1], [1, 2]):
        return tuple(ordered)
    raise CheckpointError(
        "{file} has layers in an arrangement that does not open: {stacks}. Supported are one stack with one "
        "attention in a layer, or an encoder of such layers and a decoder with two attentions in a layer, one of "
        "which reads the encoder.",
        file=file,
        stacks=", ".join(
            f"{stack.shown} ({len(stack.layers)} × {', '.join(shown(a.path) for a in stack.attentions)})"
            for stack in ordered[:6]
        ),
    )


def _found(
    weights: Weights, found: Mapping[str, Module], ordered: tuple[Stack, ...], buffers: outer_parts.Buffers
) -> Found:
    file = weights.where
    used = {module.path for stack in ordered for layer in stack.layers for module in layer.values() if stack.counted}
    width = arithmetic.width(found, ordered, [*used, *(p for s in ordered for a in s.attentions for p in a.inside)])
    blocks = tuple(read(stack, width, file) for stack in ordered)
    for stack, block in zip(ordered, blocks, strict=True):
        if not stack.counted:  # whatever else lies there is beside the layer
            used |= {stack.layers[0][name].path for name in _roles(block)}
    raw = arithmetic.raw_is_turned(ordered, blocks, width, file)
    turned: dict[bool, bool | None] = {False: arithmetic.is_conv(found, ordered, width), True: raw}
    sizes = arithmetic.sizes(ordered, blocks, width, {kind: bool(said) for kind, said in turned.items()}, file)
    norms = outer_parts.norms(found, ordered, used, width, file)
    used |= {module.path for module in norms.modules()}
    made: dict[str, Made] = {}
    if (front := outer_parts.front(found, used, width)) is not None:
        made[front[0]] = front[1]
    inside = {name for path in used for name in found[path].names} | buffers.unused.keys()
    inside |= {name for recipe in made.values() for name in recipe.sources}
    segments = outer_parts.segments(weights, [name for name in weights.tensors if name not in inside], width)
    return Found(
        weights, found, ordered, blocks, sizes, turned, norms, buffers, made, frozenset({*inside, segments}), segments
    )


def _roles(block: Block) -> list[str]:
    names = [*block.norms.values(), *(block.pair or ()), *block.feedforward.values()]
    for parts in block.attentions.values():
        names += [*parts.attention.inside, *parts.out, *filter(None, (parts.q_norm, parts.k_norm))]
    return names


def _layout(found: Found) -> Layout:
    found_tables = tables(found)
    kind = norm_kind(found)
    left = find_open_questions(found, found_tables, kind)

    def model(answers: Mapping[str, Value]) -> Plan:
        return make_plan(found, kind, dict(answers))

    read = tuple(read_by_role(found, found_tables))
    ids_only = found_tables.embedding is None
    return Layout(NAME, tuple(left), model, found_tables.reshaped, ids_only, read=read, known=found.known())

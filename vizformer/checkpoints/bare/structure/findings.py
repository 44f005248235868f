"""All that was found in a file by role, before anything is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vizformer.checkpoints.bare.layout import is_one
from vizformer.checkpoints.bare.layouts.tables import Tables, find_tables
from vizformer.checkpoints.bare.structure import outer_parts
from vizformer.checkpoints.bare.structure.arithmetic import Sizes
from vizformer.checkpoints.bare.structure.block import Block
from vizformer.checkpoints.bare.structure.derived_tensors import Made, with_made
from vizformer.checkpoints.bare.structure.names import Module
from vizformer.checkpoints.bare.structure.stacks import Stack
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.tensors.questions import Value


@dataclass(frozen=True)
class Found:
    weights: Weights
    modules: Mapping[str, Module]
    stacks: tuple[Stack, ...]
    blocks: tuple[Block, ...]
    sizes: Sizes
    turned: Mapping[bool, bool | None]
    norms: outer_parts.Norms
    buffers: outer_parts.Buffers
    made: Mapping[str, Made]
    inside: frozenset[str]
    segments: str

    @property
    def both(self) -> bool:
        return len(self.stacks) == 2

    def known(self) -> dict[str, Value]:
        """What the tensors say of what others have to be asked."""
        found: dict[str, Value] = {}
        if self.sizes.heads is not None:
            found["n_heads"] = self.sizes.heads
        if self.buffers.causal:
            found["causal"] = True
        return found

    def layer_norms(self) -> list[Module]:
        """Those around the sublayers of all layers."""
        return [
            layer[name]
            for stack, block in zip(self.stacks, self.blocks, strict=True)
            for layer in stack.layers
            for name in (*block.norms.values(), *(block.pair or ()))
        ]

    def every_norm(self) -> list[Module]:
        """Those of the layers, and those beside them."""
        return [*self.norms.modules(), *self.layer_norms()]

    @property
    def qk_normed(self) -> bool:
        return any(block.attentions["self_attention"].q_norm for block in self.blocks)

    @property
    def is_packed(self) -> bool:
        """Whether the attentions are nn.MultiheadAttention, by the name of their packed matrix."""
        inside = {name for stack in self.stacks for name in stack.inside()}
        return any(name.rpartition(".")[2] == "in_proj_weight" for name in inside)

    def are_one(self, norms: Sequence[Module]) -> bool:
        """Whether all of these norms scale by exactly 1 and shift by 0."""
        return all(is_one(self.weights, module.weight, module.bias) for module in norms)

    def without_bias(self) -> list[Module]:
        """Linear layers of the first layers that have no bias, where others of their kind have one."""
        groups: list[list[Module]] = [[], [], []]
        for stack, block in zip(self.stacks, self.blocks, strict=True):
            layer = stack.layers[0]
            for parts in block.attentions.values():
                groups[0] += [layer[name] for name in parts.attention.inside]
                groups[1] += [layer[name] for name in parts.out]
            groups[2] += [layer[name] for name in block.feedforward.values()]
        mixed = [group for group in groups if any(module.bias is not None for module in group)]
        return [module for group in mixed for module in group if module.bias is None]

    @property
    def biases(self) -> tuple[bool, bool, bool]:
        """Whether projections to queries, keys and values, those after the heads, and the networks have biases."""
        qkv = out = inner = False
        for stack, block in zip(self.stacks, self.blocks, strict=True):
            layer = stack.layers[0]
            for parts in block.attentions.values():
                qkv |= any(layer[name].bias is not None for name in parts.attention.inside)
                out |= any(layer[name].bias is not None for name in parts.out)
            inner |= any(layer[name].bias is not None for name in block.feedforward.values())
        return qkv, out, inner


def tables(found: Found, source: str | None = None) -> Tables:
    view = with_made(found.weights, found.made)
    inside = found.inside - {name for recipe in found.made.values() for name in recipe.sources}
    return find_tables(view, found.sizes.width, inside, both=found.both, source=source)

"""The lectures' toy and the paper's examples, computed once for everybody."""

from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits

if TYPE_CHECKING:
    from torch import Tensor

    from vizformer.explain import Step
    from vizformer.explain.examples import PaperAttention


@cached
def toy_tensors(stack: str) -> "dict[str, Tensor]":
    """What can be set by hand in a layer of the toy: input, weights, and q, k, v [head, position, component]."""
    from vizformer.explain import toy, toy_tensors

    source = "x" if stack == "encoder" else "target"
    stored = {
        name: tensor
        for name, tensor in toy_tensors().items()
        if name == source or (name.startswith(f"{stack}.") and name != f"{stack}.output")
    }
    trace, site = toy().trace, f"{stack}.0.self"
    vectors = {f"{site}.{name}": getattr(trace[site], name) for name in ("q", "k", "v")}
    return {source: stored.pop(source), **vectors, **dict(sorted(stored.items()))}


@cached
def toy_layer(stack: str, edited: str = "") -> "list[Step]":
    """The toy's layer; items of `edited` that name its stored tensors change them, the others its forward."""
    from vizformer.explain import layer_steps, toy

    run = toy(edits.edit(edited))
    return layer_steps(run.checkpoint, run.trace, f"{stack}.0")


@cached
def first_layer_map(subject: Subject, stack: str, identity: bool, scaled: bool) -> "PaperAttention":
    """What the first layer's input gives with identity matrices, or with head 0's learned ones."""
    from vizformer.explain import examples

    return examples.first_layer_attention(subject.trace, stack, identity=identity, scaled=scaled)

"""The lectures' toy, computed once for everybody."""

from torch import Tensor

from vizformer import explain
from vizformer.explain import Step, layer_steps, toy
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.link import edits


@cached
def toy_tensors(stack: str) -> dict[str, Tensor]:
    """What can be set by hand in a layer of the toy: input, weights, and q, k, v [head, position, component]."""
    source = "x" if stack == "encoder" else "target"
    stored = {
        name: tensor
        for name, tensor in explain.toy_tensors().items()
        if name == source or (name.startswith(f"{stack}.") and name != f"{stack}.output")
    }
    trace, site = toy().trace, f"{stack}.0.self"
    vectors = {f"{site}.{name}": getattr(trace[site], name) for name in ("q", "k", "v")}
    return {source: stored.pop(source), **vectors, **dict(sorted(stored.items()))}


@cached
def toy_layer(stack: str, edited: str = "") -> list[Step]:
    """The toy's layer; items of `edited` that name its stored tensors change them, the others its forward."""
    run = toy(edits.edit(edited))
    return layer_steps(run.checkpoint, run.trace, f"{stack}.0")

"""Functions of a model or of a run, asked of what a page looks at, once for everybody (`bounded_cache`).

    contributions = of_run(head_outputs.contributions)
    contributions(subject, site, query)  # of subject.checkpoint, subject.trace, site, query

A function that needs neither is kept as it is: `cached(function)`.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

from torch import Tensor

from vizformer import explain
from vizformer.explain import Step, layer_steps, toy
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import Cached, cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link import edits
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from vizformer.checkpoints import Opened
    from vizformer.model import Trace

P = ParamSpec("P")
R = TypeVar("R")


def of_run(function: "Callable[Concatenate[Opened, Trace, P], R]") -> "Cached[Concatenate[Subject, P], R]":
    """A function of a checkpoint and a trace, asked of a `Subject`."""
    kept: Cached[Concatenate[Subject, P], R] = asked_of("subject", lambda one: (one.checkpoint, one.trace), function, 2)
    return kept


def of_trace(function: "Callable[Concatenate[Trace, P], R]") -> "Cached[Concatenate[Subject, P], R]":
    """A function of a trace, asked of a `Subject`."""
    kept: Cached[Concatenate[Subject, P], R] = asked_of("subject", lambda one: (one.trace,), function)
    return kept


def of_model(function: "Callable[Concatenate[Opened, P], R]") -> "Cached[Concatenate[ModelRef, P], R]":
    """A function of a checkpoint, asked of a `ModelRef`."""
    kept: Cached[Concatenate[ModelRef, P], R] = asked_of("model", lambda one: (model_cache.checkpoint(one),), function)
    return kept


def asked_of(name: str, read: Callable[[Any], tuple[Any, ...]], function: Callable[..., R], count: int = 1) -> Any:
    """A function whose first `count` arguments are what `read` reads off one thing that can be a key, kept."""
    first, *others = inspect.signature(function).parameters.values()

    @wraps(function)
    def asked(one: Any, *args: Any, **kwargs: Any) -> R:
        return function(*read(one), *args, **kwargs)

    cast(Any, asked).__signature__ = inspect.Signature([first.replace(name=name), *others[count - 1 :]])
    return cached(asked)


# The lectures' toy, computed once for everybody.
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

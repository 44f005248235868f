"""What comes after the last layer and predicts no tokens: the layers of another task, which are left out.

A layer is taken for that by its name and by its shape: it reads rows as wide as the stack's, and what it makes goes
nowhere but into the next layer of the head.  A layer that might stand in front of the stack is none.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from vizformer.checkpoints.bare.layout import summary
from vizformer.checkpoints.files.untrusted_folder import shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.messages import N_, Message

_SAYS_SO = re.compile(
    r"(?:^|[._])(?:out|outputs?|heads?|cls|classif\w*|pred\w*|score|regress\w*|pool\w*|logits?|generator)(?:[._]|\d|$)|"
    r"(?:head|output|classifier)(?:[._]|\d|$)",
    re.IGNORECASE,
)

_OF_A_LAYER = re.compile(r"\.(?:weight|bias|running_mean|running_var|num_batches_tracked)$")
_MAY_BE_A_ROW = re.compile(r"cls|pool|tok|emb|pos", re.IGNORECASE)  # a learned one, which is put before the text


def modules(names: Iterable[str], others: Collection[str]) -> dict[str, list[str]]:
    """Tensors by the outermost module that holds none of the `others`."""
    taken = {".".join(name.split(".")[:n]) for name in others for n in range(1, name.count(".") + 1)}
    found: dict[str, list[str]] = {}
    for name in names:
        parts = name.split(".")
        n = next((n for n in range(1, len(parts)) if ".".join(parts[:n]) not in taken), len(parts))
        found.setdefault(".".join(parts[:n]), []).append(name)
    return found


def after_the_stack(found: Mapping[str, list[str]], weights: Weights, d_model: int) -> list[str]:
    """The modules after the last layer, in the order in which they read each other's outputs."""
    left, chosen = dict(found), list[str]()
    made: set[int] = set()
    while True:
        after = [module for module, names in left.items() if _reads(module, names, weights, d_model, made)]
        if not after:
            return chosen
        chosen += after
        made |= {_matrices(left.pop(module), weights)[-1][0] for module in after}


def _reads(module: str, names: list[str], weights: Weights, d_model: int, made: set[int]) -> bool:
    """Whether a module reads rows of the stack, or what the head has `made` of them."""
    shapes = _matrices(names, weights)
    biased = any(name.endswith("bias") for name in names)
    if not shapes or not all(map(_OF_A_LAYER.search, names)) or (not biased and _MAY_BE_A_ROW.search(module)):
        return False
    (last, __), (__, first) = shapes[-1], shapes[0]
    if not (first in made or first % d_model == 0):
        return False
    # Without a name that says so, only a layer that cannot make the rows which the stack reads.
    return _SAYS_SO.search(module) is not None or (biased and len(shapes) == 1 and last != d_model)


def _matrices(names: list[str], weights: Weights) -> list[Shape]:
    """The shapes of a module's matrices, [out, in]; none where something else than linear layers and norms is in it."""
    shapes = [weights.tensors[name].shape for name in sorted(names, key=_natural)]
    return [] if any(len(shape) > 2 for shape in shapes) else [shape for shape in shapes if len(shape) == 2]


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts output_net.10 after output_net.9."""
    return [(int(part), "") if part.isdecimal() and len(part) < 9 else (-1, part) for part in name.split(".")]


def left_out(module: str, names: list[str], weights: Weights) -> Message:
    """The note that one module is left out as a task head."""
    tensors = {name: weights.tensors[name] for name in names}
    return N_(
        "by its name and shape {module} comes after the last layer: this head is left out ({summary})",
        module=shown(module),
        summary=summary(Weights(tensors, weights.files)),
    )

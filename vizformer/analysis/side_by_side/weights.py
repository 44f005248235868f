"""Which weights differ between two models of the same shape: a model before and after fine-tuning, two steps of a training.

For the tensors A of the first model and B of the second one, with D = B - A,

    relative     |D|_F / |A|_F, where |X|_F = sqrt(sum of the squares of all numbers)
    singular     the largest singular values of D: few large ones and small others mean that the change has a low rank

Of a part of a layer the sums go over all its tensors; of a head, over its own rows of W_Q, W_K and W_V (which query heads
share, where keys and values are shared) with their biases, and over its own columns of W_O.

Source of looking at the rank of a change: Aghajanyan et al. 2020, "Intrinsic Dimensionality Explains the Effectiveness of
Language Model Fine-Tuning"; Hu et al. 2021, "LoRA: Low-Rank Adaptation of Large Language Models", 7.3.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.heads.maps import Kind
from vizformer.analysis.side_by_side.runs import has_same_tokenizers
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError

CHEAP = 4 * 10**9  # multiplications for the singular values of one matrix: well below a second
SINGULAR = 3  # of the largest that are told
AT_ONCE = 2**16  # numbers that are worked on at once: they stay in the processor's cache
MATRICES = ("W_Q", "W_K", "W_V", "W_O")
PARTS = (*MATRICES, "feedforward", "norms")  # the parts of a layer, as columns of `MovedWeights.grid`
_TOKENS = {"embedding.weight", "source_embedding.weight", "unembedding.weight", "logit_bias", "prediction.logit_bias"}
_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.(?:(self|cross)_attention\.)?(?:relative\.)?(\w+)")
_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, kw_only=True)
class Moved:
    """How far some weights of the second model are from those of the first: |B - A|_F, and the length |A|_F."""

    distance: float
    length: float

    @property
    def relative(self) -> float:
        """|B - A|_F / |A|_F; infinite where A is 0 and B is not, 0 where both are."""
        if self.length > 0:
            return self.distance / self.length
        return math.inf if self.distance > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class MovedTensor(Moved):
    """How far one tensor has moved.

    Attributes:
        singular: the largest singular values of B - A, the largest first; None for what is no matrix, or a large one.
        left_out: rows that are not compared, since only one of the models has them or they stand for other tokens.
    """

    name: str
    shape: tuple[int, ...]
    singular: tuple[float, ...] | None
    left_out: int = 0


@dataclass(frozen=True, kw_only=True)
class MovedPart(Moved):
    """How far a part of a layer has moved, all its tensors together: one of `PARTS`, with the kind of attention of a matrix;
    of what belongs to no layer ("" and -1) its name.
    """

    part: str
    stack: str
    layer: int
    kind: Kind | None


@dataclass(frozen=True)
class MovedWeights:
    """All tensors that both models have.

    Attributes:
        tensors: those that moved most first, by `relative`; then those that were 0 in the first model, whose movement
            has nothing to be measured by.
        only_in_one: the names of tensors that the other model lacks or has in another shape; not compared.
        heads: `relative` of each head's own weights, of each kind of attention; NaN of layers that are not compared.
        rounded: some tensors of the one are those of the other in a 16-bit format: that counts as no movement.
    """

    tensors: tuple[MovedTensor, ...]
    only_in_one: tuple[str, ...]
    heads: Mapping[Kind, Float[ndarray, "n_layers n_heads"]] = field(default_factory=dict)
    rounded: bool = False

    @property
    def relative(self) -> float:
        """|B - A|_F / |A|_F of all compared numbers together."""
        return Moved(**_together(self.tensors)).relative

    @property
    def parts(self) -> tuple[MovedPart, ...]:
        """The changes summed up by part, in the order of `tensors`."""
        some: dict[tuple[str, int, Kind | None, str], list[Moved]] = defaultdict(list)
        for one in self.tensors:
            some[_place(one.name)].append(one)
        found = [
            MovedPart(part=part, stack=stack, layer=layer, kind=kind, **_together(tensors))
            for (stack, layer, kind, part), tensors in some.items()
        ]
        return tuple(sorted(found, key=_order))

    def most_moved_head(self, kind: Kind) -> tuple[int, int] | None:
        """The layer and the head of a kind of attention with the largest `relative`; None where no head has moved."""
        relative = self.heads.get(kind, np.empty((0, 0)))
        measured = np.where(np.isfinite(relative), relative, 0.0)
        if not measured.any():
            return None
        layer, head = np.unravel_index(int(measured.argmax()), measured.shape)
        return int(layer), int(head)

    def grid(self, kind: Kind) -> Float[ndarray, "n_layers parts"]:
        """`relative` of each of `PARTS` of the layers that have this kind of attention; NaN where there is no such part."""
        found = np.full((len(self.heads[kind]), len(PARTS)), np.nan)
        for one in self.parts:
            if one.stack == ("encoder" if kind == "encoder" else "decoder") and one.kind in (kind, None):
                found[one.layer, PARTS.index(one.part)] = one.relative
        return found


@torch.inference_mode()
def moved_weights(
    first: AnyCheckpoint,
    second: AnyCheckpoint,
    *,
    singular: bool = True,
    heard: Callable[[int, int], None] | None = None,
) -> MovedWeights:
    """Compares the parameters of two models by their names; a table that serves twice counts once, unless the other model
    has two.  Tables of tokens are compared row by row, of the tokens that both vocabularies have at the same place.

    `singular`: whether singular values are worked out, which takes most of the time.

    Raises:
        TraceError: no tensor of the one has the name and shape of one of the other.
    """
    ours, theirs = (dict(checkpoint.model.named_parameters()) for checkpoint in (first, second))
    for one, other in ((ours, theirs), (theirs, ours)):  # tied in the one, not in the other
        if "unembedding.weight" in other and "embedding.weight" in one:
            one.setdefault("unembedding.weight", one["embedding.weight"])
    rows = {name: _rows_in_common(first, second, name, ours[name], theirs[name]) for name in ours if name in theirs}
    common = [name for name, kept in rows.items() if kept is None or len(kept)]
    if not common:
        raise TraceError("The two models have no tensor of the same name and shape: nothing can have moved.")
    config, tensors, heads, rounded = first.model.config, list[MovedTensor](), dict[Kind, ndarray](), False
    for name in common:
        kept, shape = rows[name], tuple(ours[name].shape)
        a, b = (one[name].detach() if kept is None else one[name].detach()[kept] for one in (ours, theirs))
        if a.shape == b.shape and not torch.equal(a, b) and _is_rounded(a, b):
            a, rounded = b, True
        stack, layer, kind, part = _place(name)
        found = _squares(a, b, dim=0 if name.endswith("W_O.weight") else 1)
        if kind is not None and not name.endswith("W_O.bias"):  # of all heads together
            n = config.kv_heads if part in ("W_K", "W_V") else config.n_heads
            own = found.reshape(2, n, -1).sum(-1).repeat(config.n_heads // n, axis=1)
            sums = heads.setdefault(kind, np.full((2, config.layers_of(stack), config.n_heads), np.nan))
            sums[:, layer] = np.nan_to_num(sums[:, layer]) + own
        tensors.append(
            MovedTensor(
                name=name,
                shape=shape,
                distance=math.sqrt(found[0].sum()),
                length=math.sqrt(found[1].sum()),
                singular=_largest(a, b) if singular else None,
                left_out=0 if kept is None else max(len(ours[name]), len(theirs[name])) - len(kept),
            )
        )
        if heard is not None:
            heard(len(tensors), len(common))
    tensors.sort(key=lambda one: (*_order(one), one.name))
    others = sorted((ours.keys() | theirs.keys()) - set(common))
    with np.errstate(divide="ignore", invalid="ignore"):  # NaN for a head of zeros
        of_heads = {kind: np.sqrt(moved / np.where(own > 0, own, np.nan)) for kind, (moved, own) in heads.items()}
    return MovedWeights(tuple(tensors), tuple(others), of_heads, rounded)


def _order(one: Moved) -> tuple[bool, float]:
    return not math.isfinite(one.relative), -one.relative if one.length else -one.distance


def _together(some: Sequence[Moved]) -> dict[str, float]:
    return {name: math.hypot(*(getattr(one, name) for one in some)) for name in ("distance", "length")}


def _place(name: str) -> tuple[str, int, Kind | None, str]:
    """The stack, layer, kind of attention and part that a tensor belongs to."""
    if (at := _LAYER.match(name)) is None:
        return "", -1, None, name.removesuffix(".weight").removesuffix(".bias")
    stack, layer, attention, part = at.groups()
    if part not in MATRICES:
        return stack, int(layer), None, "norms" if "norm" in part else "feedforward"
    return stack, int(layer), "cross" if attention == "cross" else "encoder" if stack == "encoder" else "decoder", part


def _rows_in_common(first: AnyCheckpoint, second: AnyCheckpoint, name: str, a: Tensor, b: Tensor) -> Tensor | None:
    """Which rows of a tensor mean the same in both models: None all, none where the tensors cannot be compared."""
    may_be_longer = name in _TOKENS or name.endswith("position_embedding.weight")
    if a.shape[1:] != b.shape[1:] or (len(a) != len(b) and not may_be_longer):
        return torch.empty(0, dtype=torch.long)
    rows = torch.arange(min(len(a), len(b)))
    if name in _TOKENS and not has_same_tokenizers(first, second):
        of_source = name == "source_embedding.weight"
        readers = [one.tokenizer_of("encoder" if of_source else "decoder") for one in (first, second)]
        fewer, more = sorted(reader.vocab_size for reader in readers)  # rows after those of both fill a table up
        one, two = (reader.tokens([*range(min(fewer, len(rows)))]) for reader in readers)
        same = [x.text == y.text for x, y in zip(one, two, strict=True)]
        rows = rows[torch.tensor([same[row] if row < len(same) else row >= more for row in rows.tolist()])]
    return None if len(rows) == len(a) == len(b) else rows


def _is_rounded(a: Tensor, b: Tensor) -> bool:
    """Whether all numbers of the one are those of the other in a 16-bit format."""
    return any(
        any(bool((one[:1].to(kind) == one[:1]).all()) for one in (a, b))  # else the rest need not be looked at
        and (torch.equal(a.to(kind).to(a.dtype), b) or torch.equal(b.to(kind).to(b.dtype), a))
        for kind in _HALVES
    )


def _squares(a: Tensor, b: Tensor, dim: int) -> Float[ndarray, "two n"]:
    """Sums of squares of b - a and of a: of each row (dim 1), or of each column (dim 0)."""
    a, b = (one.reshape(len(one), -1) for one in (a, b))
    step, found = max(1, AT_ONCE // max(1, a.shape[1])), []
    for x, y in zip(torch.split(a, step), torch.split(b, step), strict=True):
        x, y = x.cpu().float(), y.cpu().float()
        both = (part.square().sum(dim, dtype=torch.float64) for part in (y - x, x))
        found.append(torch.stack(tuple(both)))
    return (torch.cat(found, dim=1) if dim else torch.stack(found).sum(0)).numpy()


def _largest(a: Tensor, b: Tensor) -> tuple[float, ...] | None:
    """Roots of the largest eigenvalues of the smaller of D D^T and D^T D; None where that is dear."""
    if a.ndim != 2 or min(a.shape) ** 2 * max(a.shape) > CHEAP:
        return None
    matrix = b.cpu().double() - a.cpu().double()
    small = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    values = torch.linalg.eigvalsh(small @ small.T).clamp_min(0.0).sqrt()  # from the smallest to the largest
    return tuple(values.flip(0)[:SINGULAR].tolist())

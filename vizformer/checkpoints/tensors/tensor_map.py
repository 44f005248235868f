"""Which tensor of a file becomes which of ours: one list per family, read in both directions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Shape = tuple[int, ...]

# Theirs -> ours: `transformers` has several names for one function.
ACTIVATIONS = {
    "relu": "relu",
    "relu2": "relu_squared",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "silu": "silu",
    "swish": "silu",
}
THEIRS = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}  # the first of several names


@dataclass(frozen=True)
class Part:
    """One tensor of the file and the parameters it becomes."""

    source: str  # its name, without the family's prefix
    # our parameters; several lie in the file one under the other (GPT-2's query, key and value)
    targets: tuple[str, ...]
    transposed: bool = False  # the file has [in, out] (GPT-2's Conv1D) where a linear layer has [out, in]
    row: bool = False  # the file has [1, n] where we have [n] (the bias of BART's logits)
    skip: int = 0  # rows at the start that no position uses (RoBERTa's table begins after the padding's row)
    # gives the rows of the file in the order in which the targets, one under the other, have them (rotary
    # positions of neighbouring numbers, in llama2.c's files); None: they are in it
    order: Callable[[], Tensor] | None = None

    def shape(self, ours: Mapping[str, Shape]) -> Shape:
        """The shape the file's tensor must have."""
        first, *rest = ours[self.targets[0]]
        if self.row:
            return (1, first, *rest)
        rows = first + sum(ours[name][0] for name in self.targets[1:]) + self.skip
        return tuple(reversed((rows, *rest))) if self.transposed else (rows, *rest)

    def split(self, stored: Tensor, ours: Mapping[str, Shape]) -> dict[str, Tensor]:
        """The parameters in `stored`: views, nothing is copied (but where rows are reordered)."""
        if self.row:
            return {self.targets[0]: stored[0]}
        whole = stored.T if self.transposed and stored.dim() == 2 else stored
        rows = [ours[name][0] for name in self.targets]
        if self.order is not None:
            whole = whole[self.order()]
        return dict(zip(self.targets, torch.split(whole[self.skip :], rows), strict=True))

    def join(self, weights: Mapping[str, Tensor]) -> Tensor:
        """The file's tensor, joined from our parameters."""
        if self.skip:
            raise ValueError(f"{self.source} has rows that are not known here")
        pieces = [weights[name] for name in self.targets]
        if self.row:
            return pieces[0][None].contiguous()
        whole = torch.cat(pieces)
        if self.order is not None:
            whole = whole[self.order().argsort()]
        return (whole.T if self.transposed and whole.dim() == 2 else whole).contiguous()


def linear(source: str, *targets: str, bias: bool = True, transposed: bool = False) -> list[Part]:
    """The weight and bias of a linear layer or a norm."""
    kinds = ("weight", "bias") if bias else ("weight",)
    return [
        Part(f"{source}.{kind}", tuple(f"{target}.{kind}" for target in targets), transposed and kind == "weight")
        for kind in kinds
    ]


def attention(theirs: str, letters: str) -> dict[str, list[str]]:
    """The modules of an attention that differ in `letters` alone: `theirs`, with a place for these -> ours."""
    ours = zip(letters.split(), "QKVO", strict=False)  # an output of another name may follow
    return {theirs.format(letter): [f"self_attention.W_{own}"] for letter, own in ours}


def layers(
    template: Mapping[str, Sequence[str]],
    source: str,
    target: str,
    n_layers: int,
    *,
    bias: bool = True,
    transposed: Sequence[str] = (),
    no_bias: Sequence[str] = (),
) -> list[Part]:
    """The parts of every layer: `template` is their module -> our modules, `source` and `target` have the number."""
    return [
        part
        for index in range(n_layers)
        for theirs, ours in template.items()
        for part in linear(
            f"{source.format(index)}.{theirs}",
            *(f"{target.format(index)}.{name}" for name in ours),
            bias=bias and theirs not in no_bias,
            transposed=theirs in transposed,
        )
    ]


def neighbours_apart(heads: int, d_head: int) -> Tensor:
    """The rows of W_Q or W_K where the file turns neighbouring numbers of a head, (2m, 2m + 1), and we (m, m + d/2).

    Queries and keys are reordered alike, so that their dot products, and with them all that follows, stay what they are.

    Source: Su et al. 2021, "RoFormer", equation 34; see `vizformer.model.positions.Rotation`.
    """
    one = torch.cat([torch.arange(0, d_head, 2), torch.arange(1, d_head, 2)])  # [d_head]
    return (torch.arange(heads)[:, None] * d_head + one).flatten()  # [heads * d_head]

"""How the residual streams of two runs point: their cosine, layer by layer and position by position."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.side_by_side.runs import TwoRuns
from vizformer.errors import TraceError

DOMINANT, TIMES_EVEN = 0.25, 8
"""A dimension is dominant where it has more than this share of the squared length of most rows of both runs, and more than
so many times an even share.
"""
MOST_LEFT_OUT = 16  # dimensions


@dataclass(frozen=True)
class StreamCosines:
    """The cosines of the residual streams of two runs, at the layers and the leading positions that both have.

    Attributes:
        cosines: without the dominant dimensions, NaN where a row is 0.
        whole: with all dimensions.
        left_out: the dominant dimensions of each point.
    """

    cosines: Float[ndarray, "points positions"]
    whole: Float[ndarray, "points positions"]
    left_out: tuple[tuple[int, ...], ...]


@torch.inference_mode()
def stream_cosines(runs: TwoRuns, stack: str) -> StreamCosines:
    """cos = x . y / (|x| |y|) of the rows x and y of both runs: of the embeddings, then of what every layer ends with.

    A few dimensions of a trained model may be so large in every row that any two rows point the same way; they are left
    out, the largest first, as long as there is one (Timkey & van Schijndel 2021, "All Bark and No Bite: Rogue Dimensions in
    Transformer Language Models Obscure Representational Quality").

    1 where they point the same way, 0 where they have nothing in common, NaN where one of them is 0.  The axes of two
    models that were not made from one another are not the same, so that their cosine says little; that of two steps of
    one training, or of a model before and after fine-tuning, says where they part.

    Raises:
        TraceError: no such stack; streams of other widths.
    """
    if stack not in runs.trace.tokens:
        raise TraceError("These models have no {stack}.", stack=stack)
    widths = [trace.residual(f"{stack}.0.pre").shape[-1] for trace in (runs.trace, runs.other)]
    if widths[0] != widths[1]:
        raise TraceError(
            "The residual streams have {first} and {second} numbers: there is no angle between them.",
            first=widths[0],
            second=widths[1],
        )
    n = runs.positions(stack)
    names = [f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(_layers(runs, stack)))]
    cosines, whole, left_out = [], [], []
    for name in names:
        x, y = (trace.residual(name)[:n].double() for trace in (runs.trace, runs.other))
        left_out.append(_dominant(torch.cat([x, y])))
        kept = torch.ones(widths[0], dtype=x.dtype, device=x.device)
        kept[list(left_out[-1])] = 0
        cosines.append(_cosine(x * kept, y * kept))
        whole.append(_cosine(x, y))
    return StreamCosines(torch.stack(cosines).cpu().numpy(), torch.stack(whole).cpu().numpy(), tuple(left_out))


def _cosine(x: Float[Tensor, "n d_model"], y: Float[Tensor, "n d_model"]) -> Float[Tensor, " n"]:
    lengths = x.norm(dim=-1) * y.norm(dim=-1)
    return torch.where(lengths > 0, (x * y).sum(-1) / lengths, torch.nan).clamp(-1.0, 1.0)


def _dominant(rows: Float[Tensor, "n d_model"]) -> tuple[int, ...]:
    """The dimensions that are dominant, one after the other, each among those that are left."""
    squares, found = rows.square(), list[int]()
    share = max(DOMINANT, TIMES_EVEN / rows.shape[1])
    while len(found) < MOST_LEFT_OUT:
        often = (squares > share * squares.sum(-1, keepdim=True)).double().mean(0)
        largest = int(often.argmax())
        if often[largest] <= 0.5:
            break
        found.append(largest)
        squares[:, largest] = 0
    return tuple(found)


def _layers(runs: TwoRuns, stack: str) -> int:
    """The layers that both models have."""
    counts = (
        sum(name.startswith(f"{stack}.") and name.endswith(".post") for name in trace.residuals)
        for trace in (runs.trace, runs.other)
    )
    return min(counts)

"""How the residual streams of two runs point: their cosine, layer by layer and position by position."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.side_by_side.runs import TwoRuns
from vizformer.errors import TraceError
from vizformer.messages import N_


@torch.inference_mode()
def stream_cosines(runs: TwoRuns, stack: str) -> Float[ndarray, "points positions"]:
    """cos = x . y / (|x| |y|) of the rows x and y of both runs: of the embeddings, then of what every layer ends with.

    1 where they point the same way, 0 where they have nothing in common, NaN where one of them is 0.  The axes of two
    models that were not made from one another are not the same, so that their cosine says little; that of two steps of
    one training, or of a model before and after fine-tuning, says where they part.

    Args:
        stack: "encoder" or "decoder".

    Returns:
        Of the layers and the leading positions that both have.

    Raises:
        TraceError: no such stack; streams of other widths.
    """
    if stack not in runs.trace.tokens:
        raise TraceError(N_("These models have no {stack}.", stack=stack))
    widths = [trace.residual(f"{stack}.0.pre").shape[-1] for trace in (runs.trace, runs.other)]
    if widths[0] != widths[1]:
        raise TraceError(
            N_(
                "The residual streams have {first} and {second} numbers: there is no angle between them.",
                first=widths[0],
                second=widths[1],
            )
        )
    n = runs.positions(stack)
    names = [f"{stack}.0.pre", *(f"{stack}.{layer}.post" for layer in range(_layers(runs, stack)))]
    rows = []
    for name in names:
        x, y = (trace.residual(name)[:n].double() for trace in (runs.trace, runs.other))
        lengths = x.norm(dim=-1) * y.norm(dim=-1)
        rows.append(torch.where(lengths > 0, (x * y).sum(-1) / lengths, torch.nan).clamp(-1.0, 1.0))
    found: ndarray = np.asarray(torch.stack(rows).cpu().numpy())
    return found


def _layers(runs: TwoRuns, stack: str) -> int:
    """The layers that both models have."""
    counts = (
        sum(name.startswith(f"{stack}.") and name.endswith(".post") for name in trace.residuals)
        for trace in (runs.trace, runs.other)
    )
    return min(counts)

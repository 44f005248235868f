"""The model's tensors as float64 arrays, with the numbers that an edit sets."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.model.trace import Trace


def float64(tensor: Tensor) -> Float[ndarray, "..."]:
    """A tensor of the model as a float64 array, whatever its dtype and device."""
    return tensor.detach().double().cpu().numpy()


def is_half(dtype: torch.dtype) -> bool:
    """Whether a dtype is half precision (bfloat16 or float16)."""
    return dtype in (torch.bfloat16, torch.float16)


def stored(array: Float[ndarray, "..."], dtype: torch.dtype) -> Float[ndarray, "..."]:
    """`array` as the model's tensors keep it: rounded to bfloat16 or float16; as it is in the longer dtypes.

    A model in half precision rounds whenever it writes a tensor, and the next operation reads what was written.  So does
    the arithmetic here: otherwise the two would drift apart from step to step, and nothing could be proved sharply.
    """
    if not is_half(dtype):
        return array
    return float64(torch.from_numpy(np.ascontiguousarray(array)).to(dtype))


def softmax(scores: Float[ndarray, "*n m"], sink: ndarray | float | None = None) -> Float[ndarray, "*n m"]:
    """exp(s_j) / sum_j' exp(s_j') along the last axis; a row of nothing but -inf gives 0, as in the fused call.

    `sink` [..., 1] is one more score of each row, which is in the sum and has no column.
    """
    if sink is not None:
        column = np.broadcast_to(sink, (*scores.shape[:-1], 1))
        return softmax(np.concatenate([scores, column], axis=-1))[..., :-1]
    exps = exponentials(scores)[1]
    total = exps.sum(-1, keepdims=True)
    return exps / np.where(total == 0, 1.0, total)


def exponentials(scores: Float[ndarray, "*n m"]) -> tuple[Float[ndarray, "*n m"], Float[ndarray, "*n m"]]:
    """s_j - max_j' s_j' and e to this power, row by row; a row of nothing but -inf has no maximum, and stays."""
    top = scores.max(-1, keepdims=True)
    shifted = scores - np.where(np.isfinite(top), top, 0.0)
    return shifted, np.exp(shifted)


def set_cells(trace: Trace, name: str, array: Float[ndarray, "*h n d"], first: int = 0) -> Float[ndarray, "*h n d"]:
    """`array` with the numbers that the trace's edit sets in tensor `name`, whose rows from `first` on it holds."""
    cells = [] if trace.edit is None else trace.edit.cells_of(name)
    rows = range(first, first + array.shape[-2])
    cells = [cell for cell in cells if cell.index[-2] in rows]
    array = array.copy() if cells else array
    for cell in cells:
        *head, row, component = cell.index
        array[*head, row - first, component] = cell.value
    return array


def was_edited(trace: Trace, name: str, lead: tuple[int, ...] = ()) -> bool:
    """Whether the edit sets a number of tensor `name` with the first indices `lead`."""
    cells = [] if trace.edit is None else trace.edit.cells_of(name)
    return any(cell.index[: len(lead)] == lead for cell in cells)


def rescaled(trace: Trace, site: str) -> bool:
    """Whether the edit changes the divisor sqrt(d_head) of the scores at `site`."""
    return trace.edit is not None and (site in trace.edit.unscaled or trace.edit.temperatures.get(site, 1.0) != 1.0)

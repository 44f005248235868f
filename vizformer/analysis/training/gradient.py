"""The gradient of one training step: how large it is for every matrix of every layer.

    g_W = dL/dW,  L the mean cross-entropy of the rows that are asked;   |g_W| is its Frobenius norm

Only the weights' gradient is computed; nothing is changed.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from numpy import ndarray
from torch import nn

from vizformer.explain.loss_parts import Asked
from vizformer.model import Trace, Transformer, without_memory
from vizformer.model.block import Block, Stack

MOST_TOKENS = 96  # of all stacks together: a forward and a backward while somebody waits
KINDS = ("W_Q", "W_K", "W_V", "W_O", "W_Q'", "W_K'", "W_V'", "W_O'", "W_1", "W_2")
"""The matrices of a layer; those with a prime are cross-attention's.  A gate is counted with W_1."""


@dataclass(frozen=True)
class StepGradient:
    loss: float
    layers: tuple[str, ...]  # "encoder.0", ..., the rows of `norms`
    kinds: tuple[str, ...]  # the matrices that the model has, of `KINDS`; the columns of `norms`
    norms: Float[ndarray, "layers kinds"]  # |g_W|; NaN where a layer has no such matrix
    table: float  # |g| of the table of embeddings
    table_rows: int  # how many of its rows have a gradient that is not 0
    total: float  # the norm of all gradients together, which is what is clipped

    @property
    def largest(self) -> tuple[int, int]:
        """Row and column of the matrix with the largest gradient."""
        found = np.unravel_index(int(np.nanargmax(self.norms)), self.norms.shape)
        return int(found[0]), int(found[1])

    @property
    def shares(self) -> Float[ndarray, "layers kinds"]:
        """The share of each matrix in the sum of squares over all layers' matrices; 0 where there is no matrix."""
        squares = np.nan_to_num(self.norms**2)
        return squares / squares.sum()


def step_gradient(model: Transformer, trace: Trace, asked: Sequence[Asked]) -> StepGradient:
    """The gradient of the mean loss of these rows, for the text of the trace; dropout is off.

    Raises:
        ValueError: no rows, or more tokens than `MOST_TOKENS`.
    """
    ids = [torch.tensor([[token.id for token in tokens]]) for tokens in trace.tokens.values()]
    if not asked or sum(one.shape[1] for one in ids) > MOST_TOKENS:
        raise ValueError(f"{len(asked)} rows and {sum(one.shape[1] for one in ids)} tokens")
    device = model.embedding.weight.device
    right = torch.tensor([one.right.id for one in asked], device=device)
    with torch.enable_grad():
        twin = _trainable_twin(model)
        names, weights = zip(*twin.named_parameters(), strict=True)
        logits = twin(*(one.to(device) for one in ids))[0, [one.row for one in asked]]
        loss = F.cross_entropy(logits.float(), right)
        found = torch.autograd.grad(loss, weights, allow_unused=True)
    gradients = {name: gradient for name, gradient in zip(names, found, strict=True) if gradient is not None}
    norms_of = torch.stack([gradient.float().norm() for gradient in gradients.values()]).tolist()
    lengths = dict(zip(gradients, norms_of, strict=True))
    table = gradients.get("embedding.weight")
    layers, norms = [], []
    for prefix, block in _blocks(model):
        layers.append(prefix.replace(".layers", ""))
        norms.append([_together([lengths.get(f"{prefix}.{name}") for name in of]) for of in _matrices(block)])
    there = _there(norms)
    return StepGradient(
        loss.item(),
        tuple(layers),
        tuple(KINDS[column] for column in there),
        np.array(norms)[:, there],
        lengths.get("embedding.weight", 0.0),
        0 if table is None else int(table.any(dim=1).sum()),
        _together(list(lengths.values())),
    )


def matrix_lengths(model: Transformer) -> Float[ndarray, "layers kinds"]:
    """The Frobenius norm |W| of every matrix of `StepGradient.norms`."""
    found = []
    for __, block in _blocks(model):
        own = dict(block.named_parameters())
        found.append([_together([float(own[name].detach().float().norm()) for name in of]) for of in _matrices(block)])
    return np.array(found)[:, _there(found)]


def _blocks(model: Transformer) -> list[tuple[str, Block]]:
    """The layers with the beginning of their parameters' names: "encoder.layers.0"."""
    return [
        (f"{stack.name}.layers.{index}", block)
        for stack in (model.encoder, model.decoder)
        if isinstance(stack, Stack)
        for index, block in enumerate(stack.layers)
        if isinstance(block, Block)
    ]


def _there(rows: Sequence[Sequence[float]]) -> list[int]:
    """The columns of `KINDS` that some layer has."""
    return [column for column in range(len(KINDS)) if not all(math.isnan(row[column]) for row in rows)]


def _matrices(block: Block) -> list[list[str]]:
    """The names of a layer's parameters that make up each of `KINDS`."""
    crossing = [] if block.cross_attention is None else ["W_Q", "W_K", "W_V", "W_O"]
    there = {name for name, __ in block.named_parameters()}

    def of_network(*letters: str) -> list[str]:
        return [name for letter in letters if (name := f"feedforward.W_{letter}.weight") in there]

    return [
        *(
            [whole for whole in (f"self_attention.{name}.weight",) if whole in there]
            for name in ("W_Q", "W_K", "W_V", "W_O")
        ),
        *([f"cross_attention.{name}.weight"] if crossing else [] for name in ("W_Q", "W_K", "W_V", "W_O")),
        of_network("in", "gate"),
        of_network("out"),
    ]


def _together(lengths: Sequence[float | None]) -> float:
    """The length of several vectors put end to end; NaN of none."""
    known = [length for length in lengths if length is not None]
    return math.hypot(*known) if known else math.nan


def _trainable_twin(model: Transformer) -> Transformer:
    """A model that shares the weights of `model`, as parameters that require a gradient."""
    shared: dict[int, object] = {id(buffer): buffer for buffer in model.buffers()}
    shared |= {id(weight): nn.Parameter(weight.detach()) for weight in model.parameters()}
    return copy.deepcopy(model, shared).eval()


# Dropout: the loss of a text while it is switched on.
#
#     y_m = x_m b_m / (1 - p),   b_m = 0 with probability p, else 1        (training; in use y = x)
#
# Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
def training_losses(
    model: Transformer, trace: Trace, rows: Sequence[int], right: Sequence[int], p: float, seed: int, runs: int
) -> Float[ndarray, " runs"]:
    """The mean cross-entropy of these rows (nats) in several passes with dropout p; the model itself stays as it is."""
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        twin = _twin(model, p)
        torch.manual_seed(seed)
        device = model.embedding.weight.device
        ids = [torch.tensor([[token.id for token in tokens]] * runs, device=device) for tokens in trace.tokens.values()]
        log_p = twin(*ids)[:, list(rows)].double().log_softmax(-1)  # [runs, rows, vocab_size]
        wanted = torch.tensor(list(right), device=device).expand(runs, -1)[..., None]
        found: ndarray = -log_p.gather(-1, wanted).mean((1, 2)).cpu().numpy()
    return found


def _twin(model: Transformer, p: float) -> Transformer:
    """A model in training mode with dropout p that shares the weights of `model`."""
    with without_memory():
        twin = Transformer(replace(model.config, dropout=p))
    twin.load_state_dict(model.state_dict(), assign=True)
    twin.materialise_buffers()
    return twin.train()

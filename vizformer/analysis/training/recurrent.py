"""How much each token still counts at the last position: exact gradients of a GRU and of a Transformer.

    |d last / d x_t|_F = sqrt(sum_ij (d last_i / d x_t,j)^2)          the Frobenius norm of a Jacobian

A recurrent state h_n depends on x_t through a product of n - t Jacobians, d h_(s+1) / d h_s; where these shrink what
passes through them, the product falls exponentially with the distance (Hochreiter 1991; Bengio, Simard & Frasconi
1994; Pascanu, Mikolov & Bengio 2013).  In a Transformer a single layer leads from x_t to the last position.

A gradient says how strongly a small change would be felt. It is no measure of what is known or used.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from vizformer.model import Transformer
from vizformer.training.gru import GRULanguageModel

_ROWS = 64  # of the Jacobian at a time: they bound the memory


def gru_gradients(model: GRULanguageModel, ids: list[int]) -> Float[np.ndarray, " n"]:
    """|d h_(n-1) / d x_t|_F for every t: the last hidden state against the vector of token t, [d_h, d_x] each."""
    with torch.enable_grad():
        x = model.embedding(torch.tensor([ids])).detach().requires_grad_(True)  # [1, n, d_x]
        last = model.gru(x)[0][0, -1]  # [d_h]
        return _norms(last, x)


def transformer_gradients(
    model: Transformer, ids: list[int], segments: Int[Tensor, "1 n"] | None = None
) -> Float[np.ndarray, " n"]:
    """|d y_(n-1) / d x_t|_F for every t, of the stack that reads the text, [d_model, d_model] each.

    y is the stack's output, x what its first layer gets: the token's vector with all that the model adds to it.
    """
    row = torch.tensor([ids], device=model.embedding.weight.device)
    with torch.inference_mode():
        start = model.embed(row, segments=segments)
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):  # (the fused kernel cannot be differentiated in batches)
        x = start.clone().requires_grad_(True)  # [1, n, d_model]
        stack = model.decoder if model.encoder is None else model.encoder
        assert stack is not None
        y = stack(x, model.forward_pass("decoder" if model.encoder is None else "encoder", row))  # [1, n, d_model]
        return _norms(y[0, -1], x)


class Felt(NamedTuple):
    """The gradient norm of a token at the last position, divided by that of the last token itself."""

    token: int
    share: float


def felt(sizes: Float[np.ndarray, " n"], back: int) -> Felt:
    """The token `back` positions before the last; `sizes` are norms as `gru_gradients` gives them."""
    token = len(sizes) - 1 - back
    return Felt(token, float(sizes[token] / sizes[-1]))


def least_felt(sizes: Float[np.ndarray, " n"]) -> Felt:
    """The token that counts least, the first of them."""
    return felt(sizes, len(sizes) - 1 - int(sizes.argmin()))


def jacobian_cost(model: Transformer, n: int) -> int:
    """What `transformer_gradients` of n tokens takes: d_model rows of the Jacobian * n tokens * parameters of the layers,
    as each row goes back through every matrix of the stack, for every token.
    """
    stack = model.decoder if model.encoder is None else model.encoder
    assert stack is not None
    return model.config.d_model * n * sum(parameter.numel() for parameter in stack.layers.parameters())


def _norms(last: Float[Tensor, " d"], x: Float[Tensor, "1 n d_x"]) -> Float[np.ndarray, " n"]:
    """Frobenius norms of d last / d x_t, from `_ROWS` exact rows of the Jacobian at a time."""
    squares = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
    for rows in torch.split(torch.eye(len(last), dtype=last.dtype, device=last.device), _ROWS):
        (part,) = torch.autograd.grad(last, x, rows, retain_graph=True, is_grads_batched=True)  # [rows, 1, n, d_x]
        squares += part.double().square().sum((0, 1, 3))
    return squares.sqrt().cpu().numpy()

"""How much of the gradient arrives at the first layer: with a residual connection and without, norm after or before.

Stacks of layers as they are before any training, on random rows, with the loss L = (1/n) sum_i r_i . y_i for random
directions r_i; measured is |dL/dW_in|, the Frobenius norm of the gradient of the feed-forward's first matrix.

A norm alone keeps the size of the gradient, but not what the rows say: without the sum they are the same after two layers
(Dong, Cordonnier & Loukas 2021, "Attention is not all you need").

Source: He et al. 2015, "Deep Residual Learning"; Xiong et al. 2020, "On Layer Normalization in the Transformer
Architecture".
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from vizformer.config import ModelConfig
from vizformer.model import Transformer
from vizformer.model.block import Block, Stack
from vizformer.model.feedforward import FeedForward
from vizformer.model.forward_pass import ForwardPass
from vizformer.model.initialisation import initialise
from vizformer.options import NormOrder
from vizformer.training.repeater import GRULanguageModel

Arrangement = Literal["post", "pre", "norm_only", "bare"]
"""The arrangements: norm(x + f(x)); x + f(norm(x)); norm(f(x)), without the sum; f(x), without sum and norm."""
ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)
DEPTHS = (1, 2, 4, 8, 16, 24)
WIDTH, ROWS = 64, 12  # d_model, tokens

_ROWS = 64  # of the Jacobian at a time: they bound the memory


class Felt(NamedTuple):
    """The gradient norm of a token at the last position, divided by that of the last token itself."""

    token: int
    share: float


@dataclass(frozen=True)
class Untrained:
    gradients: Float[ndarray, " depth"]  # |dL/dW_in| of every layer
    likeness: float  # mean cosine of two different rows of the output; 1: all tokens have become the same


def untrained(arrangement: Arrangement, depth: int, seed: int = 0) -> Untrained:
    """The gradients and the output of an untrained encoder of this depth.

    Raises:
        ValueError: no layer.
    """
    if depth < 1:
        raise ValueError(f"{depth} layers have no gradient")
    order: NormOrder = "pre" if arrangement == "pre" else "none" if arrangement == "bare" else "post"
    config = ModelConfig(
        vocab_size=1,
        d_model=WIDTH,
        n_heads=4,
        d_ff=4 * WIDTH,
        n_encoder_layers=depth,
        norm_order=order,
        residual="none" if arrangement in ("norm_only", "bare") else "sequential",
        final_norm=order == "pre",
        dropout=0.0,
    )
    with torch.enable_grad(), torch.random.fork_rng(devices=[]), sdpa_kernel(SDPBackend.MATH):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed asks for the stack of calls, for GPUs: 7 ms
        x, directions = torch.randn(1, ROWS, WIDTH), torch.randn(1, ROWS, WIDTH) / WIDTH**0.5
        stack = Stack(config, "encoder", depth, cross=False)
        initialise(stack, config, set())
        blocks = [block for block in stack.layers if isinstance(block, Block)]
        y = stack(x, ForwardPass())
        networks = [block.feedforward for block in blocks]
        weights = [network.W_in.weight for network in networks if isinstance(network, FeedForward)]
        found = torch.autograd.grad((y * directions).sum() / ROWS, weights)
    rows = F.normalize(y.detach()[0].double(), dim=-1)  # [ROWS, WIDTH]
    likeness = float(((rows @ rows.T).sum() - ROWS) / (ROWS * (ROWS - 1)))
    return Untrained(np.array([float(gradient.norm()) for gradient in found]), likeness)


@dataclass(frozen=True)
class ByDepth:
    """The first layer's gradient and the likeness of the output rows, for every depth of `DEPTHS`."""

    gradients: dict[Arrangement, Float[ndarray, " depths"]]
    likeness: dict[Arrangement, Float[ndarray, " depths"]]

    def times(self, depth: int) -> float:
        """How many times as large the gradient is with sum and norm ("post") as without both ("bare")."""
        index = DEPTHS.index(depth)
        return float(self.gradients["post"][index] / self.gradients["bare"][index])


def powers_of_ten(depth: int, seed: int = 0) -> float:
    """log10 of how many times as large the first layer's gradient is with sum and norm as without both."""
    post, bare = (untrained(kind, depth, seed).gradients[0] for kind in ARRANGEMENTS[::3])
    return float(np.log10(post / bare))


def by_depth(seed: int = 0) -> ByDepth:
    """Measures all arrangements at all depths; this takes about a second."""
    found = {kind: [untrained(kind, depth, seed) for depth in DEPTHS] for kind in ARRANGEMENTS}
    return ByDepth(
        {kind: np.array([one.gradients[0] for one in each]) for kind, each in found.items()},
        {kind: np.array([one.likeness for one in each]) for kind, each in found.items()},
    )


# How much each token still counts at the last position: exact gradients of a GRU and of a Transformer.
#
#     |d last / d x_t|_F = sqrt(sum_ij (d last_i / d x_t,j)^2)          the Frobenius norm of a Jacobian
#
# A recurrent state h_n depends on x_t through a product of n - t Jacobians, d h_(s+1) / d h_s; where these shrink
# what passes through them, the product falls exponentially with the distance (Hochreiter 1991; Bengio, Simard &
# Frasconi 1994; Pascanu, Mikolov & Bengio 2013). In a Transformer a single layer leads from x_t to the last
# position.
#
# A gradient says how strongly a small change would be felt. It is no measure of what is known or used.
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

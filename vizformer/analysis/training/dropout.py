"""Dropout: the loss of a text while it is switched on.

    y_m = x_m b_m / (1 - p),   b_m = 0 with probability p, else 1        (training; in use y = x)

Source: Srivastava et al. 2014, "Dropout: A Simple Way to Prevent Neural Networks from Overfitting".
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.model import Transformer, without_memory
from vizformer.model.trace import Trace


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

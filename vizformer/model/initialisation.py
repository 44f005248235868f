"""The initial weights of a model before training, or a model without any."""

import math
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from vizformer.config import ModelConfig
from vizformer.model.attention import Attention


def initialise(model: nn.Module, config: ModelConfig, token_tables: Collection[nn.Module]) -> None:
    """Xavier for matrices, as in the reference implementations; embeddings so that x_0 has unit scale per entry.

    W ~ U(-a, a) with a = sqrt(6 / (fan_in + fan_out)); the embeddings of tokens (`token_tables`) ~ N(0, 1 / d_model)
    where they are multiplied by sqrt(d_model); all other tables ~ N(0, 0.02^2), and those of tokens too where not.
    Source: Glorot & Bengio 2010, "Understanding the difficulty of training deep feedforward neural networks", (16).
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, Attention):
            # The fans are those of W_Q, W_K and W_V as one matrix, as in PyTorch: smaller scores at first, faster learning
            # (5.8 against 3.3 BLEU after 600 updates, tests/benchmarks/README.md).
            projections = [module.W_Q, module.W_K, module.W_V]
            bound = math.sqrt(6 / (config.d_model + sum(p.out_features for p in projections)))
            for projection in projections:
                nn.init.uniform_(projection.weight, -bound, bound)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            scaled = config.scaled_embedding and module in token_tables
            nn.init.normal_(module.weight, std=config.d_model**-0.5 if scaled else 0.02)


class _Unfilled(TorchFunctionMode):
    """A mode in which torch's functions that fill tensors with numbers do nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


@contextmanager
def without_memory() -> Iterator[None]:
    """Within this block modules are made with shapes but without numbers (PyTorch's device "meta"), in no time."""
    with torch.device("meta"), _Unfilled():
        yield

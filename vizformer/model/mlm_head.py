"""The head between the last row of a stack and the unembedding."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vizformer.config import ModelConfig
from vizformer.model.feedforward import activation
from vizformer.model.norms import norm


class PredictionTransform(nn.Module):
    """BERT's masked-language-model head: t = norm(act(x W + b)); the logits are then t W_U + `logit_bias`.

    Source: Devlin et al. 2018, and the weights published with it.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = activation(config)
        self.norm = norm(config)
        self.logit_bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, x: Float[Tensor, "*n d_model"]) -> Float[Tensor, "*n d_model"]:
        out: Tensor = self.norm(self.activation(self.dense(x)))  # [..., d_model]
        return out

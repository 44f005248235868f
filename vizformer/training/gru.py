"""The small recurrent language model that the lesson "The map" sets beside the Transformers; `recipes.gru` trains it."""

from pathlib import Path

import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from vizformer.assets import asset
from vizformer.text import Tokenizer

WEIGHTS = "gru.safetensors"
TOKENIZER = asset("models", "stories", "tokenizer.json")


class GRULanguageModel(nn.Module):
    """x_t = embedding[id_t];  h_t = GRU(x_t, h_(t-1)), h_(-1) = 0;  logits_t = (h_t W_P) embedding^T.

    r_t = sigmoid(W_ir x_t + b_ir + W_hr h_(t-1) + b_hr)            what of the old state is looked at
    u_t = sigmoid(W_iz x_t + b_iz + W_hz h_(t-1) + b_hz)            what of the old state stays
    c_t = tanh(W_in x_t + b_in + r_t * (W_hn h_(t-1) + b_hn))       what may replace it
    h_t = (1 - u_t) * c_t + u_t * h_(t-1)

    Source: Cho et al. 2014, in the form of `torch.nn.GRU`; the embedding serves the logits too (Press & Wolf 2017).
    """

    def __init__(self, vocab_size: int, d_x: int, d_h: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_x)
        self.gru = nn.GRU(d_x, d_h, batch_first=True)
        self.projection = nn.Linear(d_h, d_x)
        nn.init.normal_(self.embedding.weight, std=d_x**-0.5)

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def forward(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d_h"]:
        """The hidden state h_t after every token."""
        states: Tensor = self.gru(self.embedding(ids))[0]
        return states

    def logits(self, states: Float[Tensor, "*n d_h"]) -> Float[Tensor, "*n vocab_size"]:
        """The logits of the next token: (h W_P) embedding^T."""
        return F.linear(self.projection(states), self.embedding.weight)


def load_gru(folder: Path) -> tuple[GRULanguageModel, Tokenizer]:
    """The model in a folder, without gradients, and the tokenizer of `stories`, which it was trained with."""
    weights = {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}
    vocab_size, d_x = weights["embedding.weight"].shape
    model = GRULanguageModel(vocab_size, d_x, weights["projection.weight"].shape[1])
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False), Tokenizer.from_file(TOKENIZER)

"""The two small networks of the lesson "Cross-attention": they read symbols and repeat them.

`recipes.bottleneck` trains them on the same random symbols in the same order.  One decoder gets the last state of the
encoder alone, one vector however long the text was; the other one looks at the state after every symbol.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from vizformer.assets import asset
from vizformer.text import Tokenizer

Memory = Literal["one", "every"]
"""The decoder's view of the text: the encoder's last state alone, or its state after every symbol."""

MEMORIES: tuple[Memory, ...] = ("one", "every")
SYMBOLS = 32
START = SYMBOLS  # the end mark is the number after it

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


class Repeater(nn.Module):
    """h_t = GRU(x_t, h_(t-1));  s_i = GRU'(y_i, s_(i-1)), s_(-1) = h_(n-1);  logits_i = [s_i; z_i] W_o + b_o

    one:    z_i = h_(n-1)                                                     whatever the text was, one vector
    every:  z_i = sum_t a_it h_t,  a_i = softmax((s_i W_a) h^T / sqrt(d_h))   the state after each symbol, looked up anew

    y_0 is the start mark, y_i the symbol said before.

    Source: Cho et al. 2014 and Sutskever et al. 2014 (one vector); Luong et al. 2015, "general" (a look-up).
    """

    def __init__(self, d_x: int, d_h: int, memory: Memory) -> None:
        super().__init__()
        self.memory = memory
        self.embedding = nn.Embedding(SYMBOLS + 2, d_x)
        self.encoder = nn.GRU(d_x, d_h, batch_first=True)
        self.decoder = nn.GRU(d_x, d_h, batch_first=True)
        self.look = nn.Linear(d_h, d_h, bias=False)
        self.output = nn.Linear(2 * d_h, SYMBOLS + 2)

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def read(self, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n d_h"]:
        """The encoder's state h_t after every symbol."""
        states: Tensor = self.encoder(self.embedding(ids))[0]
        return states

    def write(
        self, ids: Int[Tensor, "b m"], states: Float[Tensor, "b n d_h"], before: Float[Tensor, "1 b d_h"] | None = None
    ) -> tuple[Float[Tensor, "b m v"], Float[Tensor, "1 b d_h"], Float[Tensor, "b m n"]]:
        """The logits of the next symbol, the decoder's last state, and the weights a.

        `ids` are the symbols written so far, `before` the decoder's state before them (None: at the beginning).
        """
        last = states[:, -1]  # [b, d_h]
        s, after = self.decoder(self.embedding(ids), last[None] if before is None else before)  # [b, m, d_h]
        if self.memory == "one":
            weights = torch.zeros(*s.shape[:2], states.shape[1])
            weights[..., -1] = 1
            z = last[:, None].expand_as(s)
        else:
            scores = self.look(s) @ states.mT / states.shape[-1] ** 0.5  # [b, m, n]
            weights = scores.softmax(-1)
            z = weights @ states
        return self.output(torch.cat([s, z], -1)), after, weights

    @torch.inference_mode()
    def repeat(self, ids: Int[Tensor, "b n"], count: int) -> tuple[Int[Tensor, "b count"], Float[Tensor, "b count n"]]:
        """The `count` symbols that greedy decoding writes, and the weights a of each."""
        states = self.read(ids)
        new, state = torch.full((len(ids), 1), START), None
        said, looked = [], []
        for _ in range(count):
            logits, state, weights = self.write(new, states, state)
            new = logits.argmax(-1)  # [b, 1]
            said.append(new)
            looked.append(weights)
        return torch.cat(said, 1), torch.cat(looked, 1)


@dataclass(frozen=True)
class Said:
    symbols: tuple[int, ...]  # as many as were read, including the end mark if the network ends early
    looked: Float[np.ndarray, "n n"]  # where the decoder looked, [said, read]; with one vector always at the last state


def say_again(model: Repeater, symbols: Sequence[int]) -> Said:
    """Repeats one text of at least one symbol, numbers from 0 to `SYMBOLS` - 1."""
    said, looked = model.repeat(torch.tensor([list(symbols)]), len(symbols))
    return Said(tuple(said[0].tolist()), looked[0].numpy())


def share_right(said: Sequence[int], symbols: Sequence[int]) -> float:
    """The share of positions at which the two sequences agree."""
    return sum(a == b for a, b in zip(said, symbols, strict=True)) / len(symbols)


def as_symbols(ids: Sequence[int], seed: int = 0) -> tuple[int, ...]:
    """Token ids as symbols: each different id becomes a symbol of its own, drawn at random, while there are symbols left.

    The text ends before the first token for which no symbol is left.
    """
    drawn = torch.randperm(SYMBOLS, generator=torch.Generator().manual_seed(seed)).tolist()
    names: dict[int, int] = {}
    for id in ids:
        if id not in names and len(names) == SYMBOLS:
            break
        names.setdefault(id, drawn[min(len(names), SYMBOLS - 1)])
    return tuple(names[id] for id in itertools.takewhile(names.__contains__, ids))


def load_repeater(folder: Path, memory: Memory) -> Repeater:
    """The network in a folder, without gradients."""
    weights = {name: tensor.float() for name, tensor in load_file(folder / f"{memory}.safetensors").items()}
    d_x, d_h = weights["embedding.weight"].shape[1], weights["look.weight"].shape[0]
    model = Repeater(d_x, d_h, memory)
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False)


# The small recurrent language model that the lesson "The map" sets beside the Transformers; `recipes.gru` trains it.
def load_gru(folder: Path) -> tuple[GRULanguageModel, Tokenizer]:
    """The model in a folder, without gradients, and the tokenizer of `stories`, which it was trained with."""
    weights = {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}
    vocab_size, d_x = weights["embedding.weight"].shape
    model = GRULanguageModel(vocab_size, d_x, weights["projection.weight"].shape[1])
    model.load_state_dict(weights)
    return model.eval().requires_grad_(False), Tokenizer.from_file(TOKENIZER)

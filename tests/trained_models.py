"""Tiny models of strangers that have learned something in a second or two, and texts of what they learned."""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests import handmade_models
from tests.strangers import LONGEST, D, V, Waves, sine_waves, stack

PERIOD = 4
HIDES = V - 1  # the token id that hides another one; no text has it


def rounds(count: int, seed: int) -> Tensor:
    """Lines of LONGEST tokens, [count, LONGEST]: four at random, again and again."""
    dice = torch.Generator().manual_seed(seed)
    first = torch.randint(3, V - 1, (count, PERIOD), generator=dice)
    return first.repeat(1, -(-LONGEST // PERIOD))[:, :LONGEST]


def of_ids(lines: Tensor) -> str:
    return " ".join(str(int(id)) for id in lines.flatten())


def learned(model: nn.Module, task: str, steps: int = 200) -> nn.Module:
    """The model after some steps of Adam: "next" token, "hidden" tokens, or the "copy" of a source."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
        elif not parameter.any():
            nn.init.zeros_(parameter)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(steps):
        lines = rounds(64, step + 1)
        if task == "next":
            logits, right = model(lines[:, :-1]), lines[:, 1:]
        elif task == "hidden":
            hidden = torch.rand(lines.shape) < 0.15
            logits, right = model(lines.masked_fill(hidden, HIDES))[hidden], lines[hidden]
        else:
            mark = torch.ones(64, 1, dtype=torch.long)
            target = torch.cat([mark, lines[:, :6], 2 * mark], dim=1)
            logits, right = model(lines[:, :6], target[:, :-1]), target[:, 1:]
        loss = F.cross_entropy(logits.flatten(0, -2), right.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * (1 - step / steps)
    return model


class Cloze(nn.Module):
    """An encoder that says what is hidden: nothing in its weights tells the token id that hides."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.waves, self.encoder, self.head = nn.Embedding(V, D), Waves(), stack(), nn.Linear(D, V)
        self.waves.register_buffer("pe", sine_waves(LONGEST)[:, None])

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.encoder(self.waves(self.embedding(ids))))


PAIRS = "\n".join(f"{of_ids(line[:6])}\t{of_ids(line[:6])}" for line in rounds(40, 99_999))
TEXT = of_ids(rounds(150, 99_999))


@cache
def weights(name: str) -> dict[str, Any]:
    """The weights of one of `handmade.MODELS`, or of "cloze", that has learned its task."""
    if name == "cloze":
        return learned(Cloze(), "hidden", 300).state_dict()
    model = handmade_models.MODELS[name]
    return learned(model.make(), "copy" if model.output == "translation" else "next").state_dict()

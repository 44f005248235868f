"""Tiny models of strangers that have learned something in a second or two, and texts of what they learned.

Their weights lie here: trained anew on another processor, they come out otherwise, and then decide less or more.
`python -m tests.trained_models` trains them again.
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from tests import conventions, handmade_models
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


TRAINED: dict[str, Callable[[], nn.Module]] = {
    "attention_only": lambda: learned(handmade_models.MODELS["attention only"].make(), "next"),
    "cloze": lambda: learned(Cloze(), "hidden", 600),
    "copying": lambda: learned(handmade_models.MODELS["gamma and beta"].make(), "copy"),
    "norms_after_the_sum": lambda: learned(conventions.FORKS["norms after the sum"].make(), "next"),
}


def file(name: str) -> Path:
    return Path(__file__).with_name(f"{name}.safetensors")


def weights(name: str) -> dict[str, Tensor]:
    """The state dict of one of `TRAINED`."""
    return load_file(file(name))

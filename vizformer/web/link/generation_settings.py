"""How the page Generation writes: its settings as one short text, for the link.

"sampling,t0.8,k40,s7" draws at temperature 0.8 from the 40 best tokens with seed 7; what is at its default is left out.
"""

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from vizformer import generation
from vizformer.messages import N_
from vizformer.web.link.link_settings import UnusableError

if TYPE_CHECKING:
    from vizformer.generation import Sampling

Strategy = Literal["greedy", "sampling", "beam"]
STRATEGIES: tuple[str, ...] = get_args(Strategy)
LARGEST_SEED = 2**31 - 1  # browsers count exactly to 2**53; nobody types more than this
MOST_NEW = 200
MOST_IN_A_BEAM = 24  # new tokens: a longer tree cannot be read

_LETTERS = {
    "n": "new",
    "t": "temperature",
    "k": "top_k",
    "p": "top_p",
    "m": "min_p",
    "r": "penalty",
    "s": "seed",
    "w": "width",
    "a": "alpha",
}
LIMITS: dict[str, tuple[float, float]] = {
    "new": (1, MOST_NEW),
    "temperature": (0.0, 2.0),
    "top_k": (0, 99_999),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "penalty": (0.5, 2.0),
    "seed": (0, LARGEST_SEED),
    "width": (1, 6),
    "alpha": (0.0, 2.0),
}


@dataclass(frozen=True)
class Settings:
    """The settings of generation; greedy uses `new` and `penalty`, a beam `new`, `width` and `alpha`, sampling the rest."""

    strategy: Strategy = "greedy"
    new: int = 60
    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.0
    penalty: float = 1.0
    seed: int = 0
    width: int = 3
    alpha: float = 0.6

    @property
    def sampling(self) -> "Sampling":
        if self.strategy == "greedy":
            return generation.Sampling(temperature=0.0, repetition_penalty=self.penalty)
        return generation.Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.penalty,
            seed=self.seed,
        )


def write(settings: Settings) -> str:
    """The text that `read` reads; what is at its default is left out."""
    usual = Settings()
    parts: list[str] = [] if settings.strategy == usual.strategy else [settings.strategy]
    for letter, name in _LETTERS.items():
        if (value := getattr(settings, name)) != getattr(usual, name):
            parts.append(f"{letter}{value:g}" if isinstance(value, float) else f"{letter}{value}")
    return ",".join(parts)


def read(text: str) -> Settings:
    unusable = UnusableError(N_("it must be a list such as sampling,t0.8,k40,s7"))
    values: dict[str, Any] = {}
    for part in text.split(",") if text else ():
        if part in STRATEGIES:
            name, value = "strategy", part
        elif (found := re.fullmatch(r"([a-z])([0-9]{1,10}(?:\.[0-9]{1,4})?)", part)) and found[1] in _LETTERS:
            name = _LETTERS[found[1]]
            kind = type(getattr(Settings(), name))
            if kind is int and "." in found[2]:
                raise unusable
            value = kind(found[2])
            low, high = LIMITS[name]
            if not low <= value <= high:
                raise unusable
        else:
            raise unusable
        if name in values:
            raise unusable
        values[name] = value
    return Settings(**values)


def changed(text: str, **changes: Any) -> str:
    return write(replace(read(text), **changes))

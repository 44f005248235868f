"""A number that the author of a model has measured: the loss of a text, or the first logits of its last token."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from vizformer.checkpoints.weighing.search import Apart, Measured
from vizformer.errors import TraceError

LEAST_DIGITS = 4  # of a loss: with fewer, some wrong combination has it by chance
LEAST_LOGITS = 3
MOST_CHARACTERS = 4_000  # as a notebook prints a row of logits
ROUNDING = 2e-5  # of float32, on another machine, for numbers about 1
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")


@dataclass(frozen=True)
class Printed:
    numbers: Measured
    half: Measured  # how far each may be from what the model computes: half a unit of its last digit, and rounding

    @property
    def is_loss(self) -> bool:
        return len(self.numbers) == 1

    def is_met(self, measured: Measured) -> bool:
        return bool((np.abs(measured - self.numbers) <= self.half).all())

    def distance(self, measured: Measured) -> float:
        """How far the numbers are from these, in the mean."""
        return float(np.abs(measured - self.numbers).mean())

    def apart(self, one: Measured, other: Measured) -> Apart:
        """By how much the first is further away."""
        return Apart(self.distance(one) - self.distance(other), 0.0, 0.0)

    def is_chance(self, measured: Sequence[Measured]) -> bool:
        """Whether some of so many different losses may well meet this one by chance."""
        losses = np.concatenate(measured)
        spread = float(np.quantile(losses, 0.9) - np.quantile(losses, 0.1))
        return self.is_loss and 2 * float(self.half[0]) * len(losses) > 0.05 * spread


def printed(said: str | float | Sequence[float], vocab_size: int) -> Printed:
    plain = said.tolist() if hasattr(said, "tolist") else said
    text = (
        plain if isinstance(plain, str) else " ".join(map(str, plain if isinstance(plain, (list, tuple)) else [plain]))
    )
    if len(text) > MOST_CHARACTERS:
        raise TraceError(
            "The author's numbers take {n:,} characters; at most {most:,} are read. Take the first logits of a row.",
            n=len(text),
            most=MOST_CHARACTERS,
        )
    found = [Decimal(number) for number in _NUMBER.findall(text)]
    values = np.array([float(number) for number in found])
    digits = min((len(number.as_tuple().digits) for number in found), default=0)
    if not (len(found) == 1 or LEAST_LOGITS <= len(found) <= vocab_size) or not np.isfinite(values).all():
        raise TraceError(
            "{n} numbers were found. The author's number is a loss, or {least} and more logits of the last token (at "
            "most {most}, from the first on), as they were printed.",
            n=len(found),
            least=LEAST_LOGITS,
            most=vocab_size,
        )
    if len(found) == 1 and digits < LEAST_DIGITS:
        raise TraceError(
            "{number} has {n} digits: a wrong combination may have it by chance. Give a loss to {least} digits, or "
            "logits.",
            number=str(found[0]),
            n=digits,
            least=LEAST_DIGITS,
        )
    units = np.array([10.0 ** int(number.as_tuple().exponent) for number in found])
    return Printed(values, units / 2 + ROUNDING * np.maximum(1.0, np.abs(values)))

"""What a head does to the logits of the tokens that it looks at: it raises them, or works against them.

At row i a head looks most at some token t (marks left out).  Its effect there is its own term of the logit of t, less the
mean logit of all tokens (`attribution.direct`):

    effect_i = z_i W_O . g_i(t)

and t was *expected* where, without this term, it is one of the EXPECTED tokens with the largest logits of the row.

    copying        the mean effect is above LEAST, and the effect is above 0 in most rows
    suppressing    it is below -LEAST, below 0 in most rows, and most of it falls on rows whose token was expected
    anti-copying   it is below -LEAST, below 0 in most rows, and most of it falls on other rows

A head without a role does something else, or writes for other heads.  These are direct effects: what later parts make of it
is not in them.

Source: McDougall et al. 2023, "Copy Suppression: Comprehensively Understanding an Attention Head"; Elhage et al. 2021,
"A Mathematical Framework for Transformer Circuits" (copying); Wang et al. 2022, "Interpretability in the Wild" (negative
name movers).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from vizformer.analysis.attribution.direct import logit_attribution
from vizformer.analysis.attribution.lens import predicting_stack
from vizformer.analysis.frames import frame
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Trace

SignedRoleName = Literal["copying", "suppressing", "anti-copying"]
LEAST = 0.1  # the mean effect, in nats of logit, from which on a head has a role
MOST_ROWS = 24  # of all texts, evenly: each is a way back through the model
EXPECTED = 10
_MOST = 2 / 3  # the share of the rows, or of the summed effect, that a role needs


@dataclass(frozen=True)
class SignedRole:
    """The effects of a head on the logits of the tokens that it attends to; see the module.

    Attributes:
        texts, rows: of each effect the text and the row, from 0.
        weights: what the head gives to them.
        effects: on their logits, in nats.
        expected: whether the token was among those with the largest logits without the effect.
    """

    site: str
    head: int
    texts: Int[ndarray, " rows"]
    rows: Int[ndarray, " rows"]
    tokens: Int[ndarray, " rows"]
    weights: Float[ndarray, " rows"]
    effects: Float[ndarray, " rows"]
    expected: Bool[ndarray, " rows"]

    @property
    def mean(self) -> float:
        return float(self.effects.mean())

    @property
    def role(self) -> SignedRoleName | None:
        """The role of the head; None where none is clear."""
        sign = np.sign(self.mean)
        if abs(self.mean) < LEAST or float((np.sign(self.effects) == sign).mean()) < _MOST:
            return None
        if sign > 0:
            return "copying"
        lowered = np.minimum(self.effects, 0.0)
        return "suppressing" if lowered[self.expected].sum() <= _MOST * lowered.sum() else "anti-copying"

    def to_frame(self) -> Any:
        """A DataFrame: a row for each effect."""
        columns = (self.texts, self.rows, self.tokens, self.weights, self.effects, self.expected)
        return frame(zip(*columns, strict=True), ("text", "row", "token", "weight", "effect", "expected"))


def signed_role(checkpoint: AnyCheckpoint, traces: Sequence[Trace], site: str, head: int) -> SignedRole:
    """What a head of the self-attention that predicts does to the logits of what it looks at; of MOST_ROWS rows.

    Raises:
        TraceError: another attention, no such head, or no row that looks at a token.
    """
    if not site.startswith(f"{predicting_stack(checkpoint)}.") or not site.endswith(".self"):
        raise TraceError(
            "{site} does not look at tokens whose logits the model tells: choose the self-attention of the stack that "
            "predicts.",
            site=site,
        )
    looked = [
        (text, row, key, weight)
        for text, trace in enumerate(traces)
        for row, (key, weight) in _looked_at(trace, site, head).items()
    ]
    if not looked:
        raise TraceError("No row of these texts looks at a token. Give longer ones.")
    kept = [looked[at] for at in np.unique(np.linspace(0, len(looked) - 1, MOST_ROWS).round().astype(int))]
    found, stack = [], site.partition(".")[0]
    for text, row, key, weight in kept:
        trace = traces[text]
        token = trace.tokens[stack][key].id
        terms = logit_attribution(checkpoint, trace, row, token).terms
        effect = sum(term.value for term in terms if (term.part, term.place, term.head) == ("head", site, head))
        logits = trace.logits[row].double()
        above = int((logits > logits[token] - effect).sum()) - int(effect < 0)  # (its own logit may be above it)
        found.append((text, row, token, weight, effect, above < EXPECTED))
    texts, rows, tokens, weights, effects, expected = (np.array(column) for column in zip(*found, strict=True))
    return SignedRole(site, head, texts, rows, tokens, weights, effects, expected)


def _looked_at(trace: Trace, site: str, head: int) -> dict[int, tuple[int, float]]:
    """row -> the non-special key with the largest weight, and this weight; without rows where special tokens get more."""
    tokens = trace.tokens[site.partition(".")[0]]
    pattern = trace[site].pattern(head).float()  # [n, n]
    marks = torch.tensor([token.special for token in tokens], device=pattern.device)
    weights, keys = pattern.masked_fill(marks, 0.0).max(-1)
    least = pattern[:, marks].sum(-1) if bool(marks.any()) else torch.zeros_like(weights)
    pairs = enumerate(zip(keys.tolist(), weights.tolist(), least.tolist(), strict=True))
    return {row: (key, weight) for row, (key, weight, rest) in pairs if weight > rest and not tokens[row].special}

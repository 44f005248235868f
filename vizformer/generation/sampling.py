"""How the next token is chosen from the logits: the distribution is cut, then a token is drawn from the rest."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from vizformer.errors import GenerationError
from vizformer.messages import N_, Message

LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """The options of a draw; the defaults draw from the model's own distribution.

    They work in this order (as in `transformers`): repetition_penalty, temperature, top_k, top_p, min_p.

    Attributes:
        temperature: the logits are divided by it; below 1 sharpens, above 1 flattens, 0 takes the most probable token.
        top_k: only the k most probable tokens stay (Fan et al. 2018, "Hierarchical Neural Story Generation"); 0: all.
        top_p: only the most probable tokens that together reach p stay, the one that reaches it included (nucleus
            sampling, Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"); 1: all; 0: the best one.
        min_p: only tokens at least min_p times as probable as the best one stay (Nguyen et al. 2024, "Turning Up the
            Heat"); 0: all; 1: the best one.
        repetition_penalty: positive logits of tokens that occurred before are divided by it, negative ones multiplied
            (Keskar et al. 2019, "CTRL", 4.1); 1: no penalty; below 1: repetition is rewarded.
        seed: the seed of the random numbers; the same seed gives the same text.

    Raises:
        GenerationError: illegal values; all of them are listed at once.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if problems := tuple(self._wrong_types()) or tuple(self._out_of_bounds()):
            raise GenerationError("These sampling options cannot be used: {problems}.", problems=problems)

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    def _wrong_types(self) -> Iterator[Message]:
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                yield N_("{name}={value!r}: must be a number", name=name, value=value)
        for name in ("top_k", "seed"):
            if type(getattr(self, name)) is not int:
                yield N_("{name}={value!r}: must be a whole number", name=name, value=getattr(self, name))

    def _out_of_bounds(self) -> Iterator[Message]:
        if self.temperature < 0:
            yield N_(
                "temperature={value}: must not be negative; 0 takes the most probable token", value=self.temperature
            )
        if self.top_k < 0:
            yield N_("top_k={value}: must not be negative; 0 keeps all tokens", value=self.top_k)
        for name in ("top_p", "min_p"):
            if not 0 <= getattr(self, name) <= 1:
                yield N_("{name}={value}: must be from 0 to 1", name=name, value=getattr(self, name))
        if self.repetition_penalty <= 0:
            yield N_("repetition_penalty={value}: must be above 0; 1 is no penalty", value=self.repetition_penalty)
        if not 0 <= self.seed <= LARGEST_SEED:
            yield N_("seed={value}: must be from 0 to {last}", value=self.seed, last=LARGEST_SEED)


GREEDY = Sampling(temperature=0.0)  # always the most probable token


class Cut(IntEnum):
    """Why a token was cut from the distribution; the first cut that removed it counts."""

    KEPT = 0
    TOP_K = 1
    TOP_P = 2
    MIN_P = 3
    GREEDY = 4  # cut by temperature 0, which keeps only the most probable token
    NEVER = 5  # the model never generates it (padding)


class NextToken(NamedTuple):
    """The distribution of the next token before and after the cut, [vocab_size] each.

    Attributes:
        probabilities: softmax(logits), the model's own distribution.
        filtered: the distribution that the token is drawn from: penalised, tempered, cut, and normalised again.
        cut: uint8, a `Cut` for every token.
    """

    probabilities: Tensor
    filtered: Tensor
    cut: Tensor


def next_token(
    logits: Tensor, previous: Sequence[int] = (), sampling: Sampling = GREEDY, *, never: int | None = None
) -> NextToken:
    """The model's distribution of the next token, and what `sampling` makes of it.

    filtered_i = exp(l_i / T) / sum_(j kept) exp(l_j / T) for tokens that are kept, else 0;  l: the penalised logits.

    Args:
        logits: [vocab_size].
        previous: ids that count as repeated: the whole text so far.
        sampling: the options.
        never: an id that cannot be chosen, whatever its logit.

    Raises:
        GenerationError: logits that are not numbers.
    """
    scores = logits.float()  # [vocab_size]
    probabilities = torch.softmax(scores, dim=-1)
    _check_finite(probabilities[0])  # one NaN makes all of them NaN
    scores = penalised(scores, previous, sampling.repetition_penalty)
    if never is not None:
        scores = scores.index_fill(0, torch.tensor([never], device=scores.device), -torch.inf)
    if sampling.is_greedy:
        best = int(scores.argmax())
        cut = torch.full(scores.shape, Cut.GREEDY, dtype=torch.uint8, device=scores.device)
        cut[best] = Cut.KEPT
        if never is not None:
            cut[never] = Cut.NEVER
        only = torch.zeros_like(probabilities)
        only[best] = 1.0
        return NextToken(probabilities, only, cut)
    # relative to the largest, so that a temperature close to 0 gives no infinities of which to take differences
    tempered = torch.softmax((scores - scores.max()).double() / sampling.temperature, dim=-1)
    cut = _cuts(tempered, sampling)
    if never is not None:
        cut[never] = Cut.NEVER
    filtered = tempered.masked_fill(cut > 0, 0.0)
    return NextToken(probabilities, (filtered / filtered.sum()).float(), cut)


def best_token(logits: Tensor, *, never: int | None = None) -> int:
    """argmax of the logits [vocab_size] without `never`: the token that `next_token` keeps at temperature 0.

    Raises:
        GenerationError: logits that are not numbers.
    """
    best = logits.max(dim=-1)
    _check_finite(best.values)  # NaN is larger than any number here
    if never is None or int(best.indices) != never:
        return int(best.indices)
    return int(logits.index_fill(0, torch.tensor([never], device=logits.device), -torch.inf).argmax())


def _check_finite(number: Tensor) -> None:
    if not math.isfinite(float(number)):
        raise GenerationError(
            "The model's logits are not numbers: a number set by hand is too large, the weights are damaged, the "
            "training diverged, or float16 is too narrow for it."
        )


def penalised(logits: Tensor, previous: Sequence[int], penalty: float) -> Tensor:
    """The logits with those of `previous` reduced: l / penalty for l > 0, l * penalty for l < 0."""
    if penalty == 1 or not previous:
        return logits
    seen = torch.tensor(sorted(set(previous)), device=logits.device)
    found = logits[seen]
    return logits.index_copy(0, seen, torch.where(found < 0, found * penalty, found / penalty))


def draw_token(filtered: Tensor, generator: torch.Generator) -> int:
    """A token drawn from the distribution; on the CPU, so that a seed gives the same text on every device."""
    return int(torch.multinomial(filtered.cpu(), 1, generator=generator))


def _cuts(probabilities: Tensor, sampling: Sampling) -> Tensor:
    """A `Cut` for every token; the most probable one is always kept."""
    if sampling.top_k == 0 and sampling.top_p == 1 and sampling.min_p == 0:  # no cut needs the sorted vocabulary
        return torch.zeros(probabilities.shape, dtype=torch.uint8, device=probabilities.device)
    ordered = torch.sort(probabilities, descending=True, stable=True)
    kept = ordered.values  # [vocab_size], most probable first; from here on places in that order
    cut = torch.zeros(kept.shape, dtype=torch.uint8, device=kept.device)
    if 0 < sampling.top_k < len(kept):
        cut[sampling.top_k :] = Cut.TOP_K
        kept = kept.masked_fill(cut > 0, 0.0)
    if sampling.top_p < 1:
        share = kept / kept.sum()
        before = share.cumsum(0) - share  # the sum of all more probable ones
        cut[(before >= sampling.top_p) & (cut == 0)] = Cut.TOP_P
    if sampling.min_p > 0:
        cut[(kept < sampling.min_p * kept[0]) & (cut == 0)] = Cut.MIN_P
    cut[0] = Cut.KEPT
    return torch.empty_like(cut).scatter_(0, ordered.indices, cut)

"""What the heads of a model carry: names, numbers, a "not"; by what is lost without each head, over prompts of some kinds.

With LD = ln(P(answer) / P(wrong)) of a prompt, and LD' without a head (zero in its place, `over_prompts`), the share of a
head in a kind of prompts is

    share = mean(LD - LD') / mean(LD)

A head carries a kind as its own where its share of that kind is above its shares of all other kinds, controls included, in
all but ALPHA / (heads x kinds) of the bootstrap draws (Bonferroni: the best of many heads looks good by luck).

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (one head out); Voita et al. 2019, "Analyzing
Multi-Head Self-Attention" (roles of a translator's heads); Efron 1979, "Bootstrap Methods: Another Look at the Jackknife".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.causes.ablation import Part

MODEL = "zh-en"  # of which it is measured by `recipes.head_roles`
ASKED = ("names", "numbers", "negation")
KINDS = (*ASKED, "things", "qualities")  # the last two are controls
ALPHA, DRAWS, LEVEL = 0.05, 10_000, 0.95


@dataclass(frozen=True)
class HeadRoles:
    kinds: tuple[str, ...]  # the kinds of prompts
    heads: tuple[Part, ...]  # the heads of the model
    # how much of the lead of the right answer is lost without a head, as a part of it
    shares: Float[ndarray, "kinds heads"]
    # low, high: the ends of the bootstrap interval of each share
    low: Float[ndarray, "kinds heads"]
    high: Float[ndarray, "kinds heads"]
    own: Bool[ndarray, "kinds heads"]  # whether a head carries a kind as its own
    rows: tuple[int, ...]  # the number of prompts of each kind

    def strongest(self, kind: str) -> int:
        """The place of the head that carries a kind as its own, else of the one with the largest share of it."""
        at = self.kinds.index(kind)
        return int(np.lexsort((self.shares[at], self.own[at]))[-1])

    def most_of_others(self, kind: str, head: int) -> int:
        """The place of the other kind of which a head has the largest share."""
        others = np.where(np.array(self.kinds) == kind, -np.inf, self.shares[:, head])
        return int(np.argmax(others))


def roles_of_heads(effects: Mapping[str, tuple[ndarray, ndarray]], heads: Sequence[Part], seed: int = 0) -> HeadRoles:
    """The roles of heads.

    Args:
        effects: of two kinds or more LD' - LD [rows, heads] and LD [rows].
        seed: of the bootstrap.
    """
    rng, n = np.random.default_rng(seed), len(heads)
    shares, drawn = list[ndarray](), list[ndarray]()
    for values, odds in effects.values():
        counts = rng.multinomial(len(odds), np.full(len(odds), 1 / len(odds)), size=DRAWS)
        shares.append(-values.mean(0) / odds.mean())
        drawn.append(-(counts @ values) / (counts @ odds)[:, None])
    of_draws = np.stack(drawn)  # [kinds, draws, heads]
    low, high = np.quantile(of_draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
    ahead = [of_draws[at] - np.delete(of_draws, at, 0).max(0) for at in range(len(shares))]
    own = np.stack([np.quantile(one, ALPHA / (n * len(shares)), axis=0) > 0 for one in ahead])
    counted = tuple(len(odds) for _, odds in effects.values())
    return HeadRoles(tuple(effects), tuple(heads), np.stack(shares), low, high, own, counted)

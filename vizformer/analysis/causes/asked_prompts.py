"""What a model makes of the rows of a set of prompts: runs, and the tokens with which the answers begin."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.prompt_pairs import PromptPair, log_odds
from vizformer.analysis.causes.prompt_sets import LEAST, PromptRow, PromptSet
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.messages import Message
from vizformer.model import Trace

MOST_TOKENS = 256  # of a prompt, both stacks together

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


@dataclass(frozen=True)
class Asked:
    """One row of a prompt set, tokenized and run through a model."""

    number: int  # of the row, from 0
    # clean, corrupted: the runs; the second is made when it is asked for, and None where the row has none
    clean: Trace
    corrupted: Callable[[], Trace] | None
    row: int  # of the output
    # answer, wrong: token ids; without a wrong answer all other tokens are
    answer: tuple[int, ...]
    wrong: tuple[int, ...]

    @property
    def odds(self) -> float:
        """ln of how many times as probable the answer is as the wrong one, for the clean prompt."""
        return float(log_odds(self.clean.logits[self.row], self.answer, self.wrong))

    def pair(self) -> PromptPair:
        """The two runs.

        Raises:
            TraceError: the row has no corrupted prompt, or it has too many tokens; or see `PromptPair`.
        """
        if self.corrupted is None:
            raise TraceError("This row has no corrupted prompt: fill its column corrupted.")
        return PromptPair(self.clean, self.corrupted(), self.row, self.answer, self.wrong)


def ask(checkpoint: AnyCheckpoint, row: PromptRow, number: int = 0) -> Asked:
    """A row as the model reads it; without an answer its most probable token is taken.

    Raises:
        TraceError: it cannot be read: too many tokens, no mask or no target where the model needs it, an answer that is the
            wrong one as well.
    """
    shape = checkpoint.shape
    if shape.architecture == "encoder-decoder" and not row.target:
        raise TraceError("Say what the decoder has read so far: the answers are compared after the same words.")
    clean = _run(checkpoint, row.clean, row)
    at = len(clean.logits) - 1
    if shape.architecture == "encoder-only":
        read = [token.id for token in clean.tokens["encoder"]]
        if shape.mask_id not in read:
            raise TraceError("This prompt has no mask, in whose place the answer would stand.")
        at = read.index(shape.mask_id)
    answer, wrong = (_ids(checkpoint, row, said) for said in (row.answer, row.wrong))
    answer = answer or (int(clean.logits[at].argmax()),)
    if set(answer) & set(wrong):
        raise TraceError("The answer and the wrong answer begin with the same token.")
    corrupted = cache(partial(_run, checkpoint, row.corrupted, row)) if row.corrupted else None
    return Asked(number, clean, corrupted, at, answer, wrong)


def _run(checkpoint: AnyCheckpoint, text: str, row: PromptRow) -> Trace:
    n = len(checkpoint.encode(text)) + (len(checkpoint.encode_target(row.target)) if row.target else 0)
    if n > MOST_TOKENS:
        raise TraceError("A prompt of a set has at most {limit} tokens; this one has {n}.", limit=MOST_TOKENS, n=n)
    return checkpoint.trace(text, target=row.target or None)


def _ids(checkpoint: AnyCheckpoint, row: PromptRow, said: str) -> tuple[int, ...]:
    words = [word.strip() for word in said.split("|") if word.strip()]
    found = tuple(dict.fromkeys(id for word in words if (id := _first_id(checkpoint, row, word)) is not None))
    if words and not found:
        raise TraceError(
            "“{word}” does not go on this prompt: the model reads it as one token with the end of it.", word=words[0]
        )
    return found


def _first_id(checkpoint: AnyCheckpoint, row: PromptRow, word: str) -> int | None:
    """The token with which a word begins where it is read: behind the prompt, or in the place of its mask.

    None where it becomes one token with the end of the prompt.
    """
    shape = checkpoint.shape
    if shape.architecture == "encoder-only":
        before = [token.id for token in checkpoint.encode(row.clean)]
        at = before.index(shape.mask_id) if shape.mask_id in before else 0
        mask = checkpoint.tokenizer.tokens([shape.mask_id or 0])[0].text
        return checkpoint.encode(row.clean.replace(mask, word, 1))[at].id
    both = shape.architecture == "encoder-decoder"
    encode, text = (checkpoint.encode_target, row.target) if both else (checkpoint.encode, row.clean)
    before = [token.id for token in encode(text)]
    before = before[: len(before) - (before[-1] == shape.eos_id)]
    last = text[-1]
    joins = ord(word[0]) > 0x2E80 or not (last.isalnum() or last in ",.;:!?") or (last.isdigit() and word[0].isdigit())
    after = [token.id for token in encode(text + (word if joins else f" {word}"))]
    return after[len(before)] if after[: len(before)] == before and len(after) > len(before) else None


def read_rows(
    checkpoint: AnyCheckpoint, prompts: PromptSet, *, paired: bool = False
) -> tuple[list[Asked], list[tuple[int, Message]]]:
    """The rows of a set that a model can read, at least LEAST, and why it cannot read the others; see `each_row`."""
    refused = list[tuple[int, Message]]()
    return list(each_row(checkpoint, prompts, refused, paired=paired)), refused


def each_row(
    checkpoint: AnyCheckpoint, prompts: PromptSet, refused: list[tuple[int, Message]], *, paired: bool = False
) -> Iterator[Asked]:
    """The rows of a set that a model can read, each run when it is asked for: a run of 256 tokens takes 10 MB and more.

    Args:
        refused: to which the numbers of the other rows are added, and why it cannot read them.
        paired: only those with two prompts that can be compared.

    Raises:
        TraceError: fewer than LEAST, said after the last one.
    """
    for number, row in enumerate(prompts.rows):
        try:
            one = ask(checkpoint, row, number)
            if paired:
                one.pair()
        except TraceError as error:
            refused.append((number, error.message))
        else:
            yield one
            del one
    if (n := len(prompts.rows) - len(refused)) < LEAST:
        raise TraceError(
            "Of this set the model can read {n} prompts, and a mean needs two. Of the first other one: {why}",
            n=n,
            why=refused[0][1],
        )


# What the heads of a model carry: names, numbers, a "not"; by what is lost without each head, over prompts of some
# kinds.
#
# With LD = ln(P(answer) / P(wrong)) of a prompt, and LD' without a head (zero in its place, `over_prompts`), the
# share of a head in a kind of prompts is
#
#     share = mean(LD - LD') / mean(LD)
#
# A head carries a kind as its own where its share of that kind is above its shares of all other kinds, controls
# included, in all but ALPHA / (heads x kinds) of the bootstrap draws (Bonferroni: the best of many heads looks good
# by luck).
#
# Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?" (one head out); Voita et al. 2019,
# "Analyzing Multi-Head Self-Attention" (roles of a translator's heads); Efron 1979, "Bootstrap Methods: Another Look
# at the Jackknife".
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

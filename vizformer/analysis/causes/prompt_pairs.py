"""Two prompts of equal length that differ in a word or two, so that the model's answer differs.

With the logit difference

    LD = logit of the clean prompt's answer - logit of the corrupted prompt's answer, at one row of the output

the clean run and the corrupted run are LD(clean) and LD(corrupted), and an intervention is judged by where it brings LD
between the two (`vizformer.analysis.causes.patching`).

Source: Zhang & Nanda 2023, "Towards Best Practices of Activation Patching", section 2 (two prompts, logit difference).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from vizformer.analysis.one_forward.predictions import writable
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.model import Trace
from vizformer.model.input_check import row_at, token_id


def log_odds(
    logits: Float[Tensor, "*b vocab_size"], answer: Sequence[int], other: Sequence[int]
) -> Float[Tensor, "*b"]:
    """ln(P(answer) / P(other)): the difference of two logits, or of ln sum exp of several; without others, ln P(answer)."""
    wide = logits.double()

    def total(tokens: Sequence[int]) -> Tensor:
        return wide[..., tokens[0]] if len(tokens) == 1 else wide[..., list(tokens)].logsumexp(-1)

    return total(answer) - (total(other) if other else wide.logsumexp(-1))


def several(token: int | tuple[int, ...]) -> tuple[int, ...]:
    """Makes a tuple of one token; leaves a tuple of tokens as it is."""
    return token if isinstance(token, tuple) else (token,)


@dataclass(frozen=True)
class PromptPair:
    """Two prompts that differ, and what the model says to each.

    Attributes:
        clean, corrupted: a forward over each; their texts have the same numbers of tokens.
        row: of the output, where the answers are compared.
        answer, other: the token that the clean prompt should give, and that of the corrupted one; or several, of which any
            counts (`log_odds`).

    Raises:
        TraceError: texts of different lengths, a row or token that is not there, runs with numbers set by hand, or two
            prompts between which the answer does not move.
    """

    clean: Trace
    corrupted: Trace
    row: int
    answer: int | tuple[int, ...]
    other: int | tuple[int, ...]

    def __post_init__(self) -> None:
        _require_equal_lengths(self.clean, self.corrupted)
        if self.clean.edit is not None or self.corrupted.edit is not None:
            raise TraceError("Patching compares two runs in which no number was set by hand.")
        n, vocab_size = self.clean.logits.shape
        object.__setattr__(self, "row", row_at(self.row, n))
        for token in (*several(self.answer), *several(self.other)):
            token_id(token, vocab_size)
        if abs(self.moved) < 1e-6:
            raise TraceError(
                "The answer is the same for both prompts: choose prompts, or two tokens, between which it moves."
            )

    @property
    def first_difference(self) -> int:
        """The position of a decoder before which the runs are the same; 0 where they differ in an encoder."""
        if "encoder" in self.clean.tokens:
            return 0
        both = zip(self.clean.tokens["decoder"], self.corrupted.tokens["decoder"], strict=True)
        return next(at for at, (a, b) in enumerate(both) if a.id != b.id)

    def difference(self, logits: Tensor) -> Tensor:
        """The logit difference LD at `row` of logits [..., n, vocab_size]."""
        return self.difference_at_row(logits[..., self.row, :])

    def difference_at_row(self, logits: Tensor) -> Tensor:
        """The logit difference LD of logits [..., vocab_size] that belong to `row`."""
        return log_odds(logits, several(self.answer), several(self.other))

    @property
    def moved(self) -> float:
        """LD(clean) - LD(corrupted)."""
        return float(self.difference(self.clean.logits) - self.difference(self.corrupted.logits))

    def recovered(self, logits: Tensor) -> Float[ndarray, " b"]:
        """(LD - LD(corrupted)) / (LD(clean) - LD(corrupted)) for the logits [b, n, vocab_size] of patched runs."""
        return self.recovered_at_row(logits[..., self.row, :])

    def recovered_at_row(self, logits: Tensor) -> Float[ndarray, " b"]:
        """The same share as `recovered`, for logits [b, vocab_size] that belong to `row`."""
        found = self.difference_at_row(logits) - self.difference(self.corrupted.logits)
        return found.cpu().numpy() / self.moved


def _require_equal_lengths(clean: Trace, corrupted: Trace) -> None:
    lengths = [{stack: len(tokens) for stack, tokens in run.tokens.items()} for run in (clean, corrupted)]
    if lengths[0] != lengths[1]:
        raise TraceError(
            "The two prompts must have equally many tokens; they have {clean} and {corrupted}.",
            clean=" + ".join(map(str, lengths[0].values())),
            corrupted=" + ".join(map(str, lengths[1].values())),
        )


def prompt_pair(
    checkpoint: AnyCheckpoint,
    clean: str | Sequence[int],
    corrupted: str | Sequence[int],
    *,
    target: str | Sequence[int] | None = None,
    row: int | None = None,
    answer: int | None = None,
    other: int | None = None,
) -> PromptPair:
    """Runs a model over two prompts.

    Args:
        clean: a text, or token ids.
        corrupted: the other one.
        target: what an encoder-decoder's decoder has read so far, the same for both.
        row: counted from the end where it is negative; the last where nothing is said, or the first [MASK] of an encoder.
        answer: the most probable token of the clean run where nothing is said.
        other: that of the corrupted one.

    Raises:
        TraceError: see `PromptPair`; an encoder-decoder without a target.
    """
    begun = target.strip() if isinstance(target, str) else list(target or ())
    if checkpoint.shape.architecture == "encoder-decoder" and not begun:
        raise TraceError("Say what the decoder has read so far: the two runs are compared after the same words.")
    first, second = (_run(checkpoint, prompt, target) for prompt in (clean, corrupted))
    _require_equal_lengths(first, second)
    if row is None:
        read = [token.id for token in next(iter(first.tokens.values()))]
        mask_id = checkpoint.shape.mask_id if not checkpoint.shape.decoder_heads else None
        row = read.index(mask_id) if mask_id in read else -1
    row = row_at(row, len(first.logits))
    best, second_best = (int(writable(checkpoint, run.logits[row]).argmax()) for run in (first, second))
    return PromptPair(first, second, row, best if answer is None else answer, second_best if other is None else other)


def _run(checkpoint: AnyCheckpoint, prompt: str | Sequence[int], target: str | Sequence[int] | None) -> Trace:
    text, ids = (prompt, None) if isinstance(prompt, str) else (None, prompt)
    words, target_ids = (target, None) if target is None or isinstance(target, str) else (None, target)
    return checkpoint.trace(text, ids=ids, target=words, target_ids=target_ids)


@dataclass(frozen=True)
class PromptExample:
    """Two prompts between which a bundled model changes its answer; `target` is what its decoder has read so far."""

    model: str
    clean: str
    corrupted: str
    target: str | None = None


EXAMPLES = (
    PromptExample("induction-by-hand", "c d f e c", "f d c e c"),
    PromptExample("induction-by-hand", "a b c d a b c", "a b c e a b c"),
    PromptExample("stories", "The boy said that", "The girl said that"),
    PromptExample("stories", "The boy was sad because", "The girl was sad because"),
    PromptExample("stories", "The mother smiled because", "The father smiled because"),
    PromptExample("cloze", "The girl lost [MASK] hat.", "The boy lost [MASK] hat."),
    PromptExample("zh-en", "我有一只猫。", "我有一只狗。", "I have a"),
    PromptExample("zh-en", "I have a cat.", "I have a dog.", "我有一只"),
    PromptExample("zh-en", "他是医生。", "他是老师。", "He is a"),
    PromptExample("zh-en", "今天很热。", "今天很冷。", "It's very"),
)
"""Pairs for which the model predicts different tokens, as a test checks (`tests/analysis/test_patching.py`)."""

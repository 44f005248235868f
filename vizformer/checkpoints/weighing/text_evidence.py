"""Evidence: which answers to what bare weights do not say a text of the model's own kind decides.

A trained model predicts such a text well, and badly where it is computed in another way than its author did.  So the
loss is measured under one combination of answers after another, on the same tokens.  An answer is proposed where the
loss under every combination with another answer is higher: by three standard errors of the paired differences per token,
and by a thousandth of a nat.  (Below that the sign says little: a model that is too sure of itself does better with any
change that makes it less sure.  zh-en, trained with 1e-5 in its norms, is better by 1.6e-6 nats with 1e-12, which is
4.6 standard errors.)  Nothing is proposed where the best of them does not predict the text better than counting its
tokens would.

A number of the author's decides where a text cannot: the loss of a text, or logits.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vizformer.checkpoints.opening import load
from vizformer.checkpoints.tensors.questions import KNOWN_CODE, SETTLED, Question, UnansweredError, Value
from vizformer.checkpoints.weighing.author import Printed, printed
from vizformer.checkpoints.weighing.material import LEAST_TOKENS, Asked, asked, by_counting, last_logits, losses
from vizformer.checkpoints.weighing.search import Answers, Apart, Measured, Search
from vizformer.errors import CheckpointError, TraceError, VizformerError
from vizformer.messages import N_, Message
from vizformer.model import Transformer

ERRORS = 3.0  # standard errors
LEAST_DIFFERENCE = 1e-3  # nats per token
MOST_COMBINATIONS = 800
MOST_BY_ROLE = 150  # where the names say a code, so that all that it fixes is tried besides
MOST_SECONDS = 600.0

__all__ = ["LEAST_TOKENS", "MOST_COMBINATIONS", "Evidence", "Finding", "evidence"]


@dataclass(frozen=True)
class Finding:
    """What was found about one question."""

    question: Question
    answer: Value  # under the best combination
    # the other answer that comes nearest; None where no other one makes another model that predicts tokens
    rival: Value | None
    # how much more the loss per token is with it, in nats; of an author's number, how much further away
    difference: float
    error: float
    settled: bool


@dataclass(frozen=True)
class Evidence:
    # what `load` is given: the best combination with the names of what is decided, or, where nothing is, the answers
    # from before
    answers: Mapping[str, Value]
    findings: tuple[Finding, ...]
    tokens: int
    combinations: int
    # before, best: the loss per token under the answers from before, and under the best combination; of an author's
    # logits, how far they are from those in the mean
    before: float
    best: float
    counting: float  # the loss of who counts the tokens of the text, or takes all for as likely
    # by how much the best combination predicts the text better than that; None with a number of the author's. Where it
    # is not clear, none of the combinations fits
    over_counting: Apart | None
    by_author: bool  # whether a number of the author's was what they were held against
    complete: bool  # whether all combinations that differ in two answers were measured
    why_not: Message | None = None  # why nothing is decided, where something other than too small differences keeps it

    @property
    def fits(self) -> str:
        """Whether a text is predicted better than by counting its tokens; empty with a number of the author's."""
        if self.over_counting is None:
            return ""
        far, error, __ = self.over_counting
        said = "one of these fits" if self.over_counting.is_worse else "none of these fits"
        return f"{said}: better than counting the tokens by {far:+.4f} ± {error:.4f}"

    @property
    def settled(self) -> dict[str, Value]:
        return {one.question.name: one.answer for one in self.findings if one.settled}

    def __str__(self) -> str:
        lines = [
            f"{self.combinations} combinations, {self.tokens} tokens; loss {self.before:.4f}, at best {self.best:.4f}",
            *(f"  {line}" for line in [self.fits] if line),
            *(
                f"  {one.question.name} = {one.answer}: "
                + (
                    "no other answer makes another model that predicts tokens"
                    if one.rival is None
                    else f"{one.rival} {one.difference:+.4f} ± {one.error:.4f}"
                )
                + (", decided" if one.settled else ", stays open")
                for one in self.findings
            ),
        ]
        return "\n".join([*lines, *([str(self.why_not)] if self.why_not else [])])


def evidence(
    source: str | Path,
    text: str | Sequence[int],
    *,
    author: str | float | Sequence[float] | None = None,
    mask_id: int | None = None,
    mapping: object = None,
    device: torch.device | str = "cpu",
    most_seconds: float = MOST_SECONDS,
    heard: Callable[[int, int], None] | None = None,
    **answers: Any,
) -> Evidence:
    """Which answers a text decides, of bare weights that open under some: `vf.load(source, **evidence(...).answers)`.

    loss = mean of -log P(token), in nats; difference = mean over tokens of (loss there - loss here), with the standard
    error s / sqrt(n) of these paired differences

    Args:
        source, mapping, answers: as of `load`; the answers are where the search begins.
        text: of the kind that the model was trained on, at least 200 tokens; token ids where the file has no tokenizer.
            For an encoder-decoder a pair in each line: text, tab, target.
        author: a number of the author's for this text, which may then be short: its loss, or three and more logits of its
            last token, from the first on. As text it is met to its printed digits.
        mask_id: the token id that hides another one from an encoder, where the files do not say it.
        most_seconds: no combination is begun later.
        heard: called with how many combinations were measured, of how many; what it raises ends the search.

    Raises:
        UnansweredError, CheckpointError: as `load`; a model that says itself what it is.
        TraceError, TokenizerError: a text, or numbers, with which nothing can be decided.
    """
    content = text if isinstance(text, str) else " ".join(map(str, text))
    present = load(source, mapping=mapping, device=device, **answers)
    by_names = present.report
    if by_names.taken.get(KNOWN_CODE.name) == "usual":  # the names tell nothing of a forward that was changed: roles do
        with suppress(CheckpointError):  # what does not open by its roles is weighed by what its names leave open
            present = load(source, mapping=mapping, device=device, **_by_role(source, by_names.answers))
    report = present.report
    open_still = [q for q in report.questions if report.taken.get(q.name) != "beside" and q.name != KNOWN_CODE.name]
    tried = [q for q in open_still if len(q.open) > 1]
    if not tried:
        raise TraceError("Nothing is open about {name}: there is nothing to decide.", name=report.name)
    if not report.has_head:
        raise TraceError(
            "The file of {name} has no head that predicts tokens, so that no text can decide.", name=report.name
        )
    config = present.model.config
    number = None if author is None else printed(author, config.vocab_size)
    sequences = asked(present, content, mask_id, whole=number is not None)
    del present  # of two models in memory one would be too many
    measure = _Measuring(source, mapping, device, sequences, number)
    search = Search(
        tried,
        measure,
        apart if number is None else number.apart,
        MOST_COMBINATIONS if report is by_names else MOST_BY_ROLE,
        time.monotonic() + most_seconds,
        heard or (lambda done, total: None),
    )
    usual = {q.name: q.choices[0] if q.usual is None else q.usual for q in tried if q.choices or q.usual is not None}
    before: Answers = {**usual, **report.answers}
    best = search.run(before, lambda now: number is not None and number.is_met(now))
    counting = by_counting(sequences, config.vocab_size)
    mean = _mean if number is None or number.is_loss else number.distance
    over_counting = apart(counting, search.of(best)) if number is None else None
    why_not = _why_not(search, search.of(best), over_counting, number)
    findings = tuple(_finding(search, q, best, number, why_not) for q in tried if q.decides(best))
    settled = [one.question.name for one in findings if one.settled]
    chosen = best if settled else before
    own = {q.name for q in by_names.questions}
    if all(chosen[name] == before.get(name) or name in own for name in chosen):  # the code is the known one
        report, settled = by_names, [name for name in settled if name in own]
        chosen |= {name: answer for name, answer in report.answers.items() if name == KNOWN_CODE.name}
    told = [
        q for q in report.questions if q.name in chosen and q.decides(chosen) and report.taken.get(q.name) != "beside"
    ]
    told = [q for q in told if q.insists or q.name in settled or chosen[q.name] != q.usual]
    return Evidence(
        {q.name: chosen[q.name] for q in told} | ({SETTLED: ".".join(settled)} if settled else {}),
        findings,
        sum(len(one.rows) for one in sequences),
        len(search.found),
        mean(search.of(before)),
        mean(search.of(best)),
        float(counting.mean()),
        over_counting,
        number is not None,
        search.complete,
        why_not,
    )


def _by_role(source: str | Path, answers: Mapping[str, Value]) -> dict[str, Any]:
    """The answers under which a file with the names of a known code, read by role, makes the same model."""
    try:
        return dict(load(source, known_code=False).report.answers)
    except UnansweredError as error:
        asked = {q.name for q in error.questions}
    known = {**KNOWN_CODE.stands_for, "tied": True, **answers, KNOWN_CODE.name: False}
    return {name: answer for name, answer in known.items() if name in asked}


def apart(one: Measured, other: Measured) -> Apart:
    """How much worse the first is, on the tokens that both were measured on, in nats per token."""
    n = min(len(one), len(other))
    d = one[:n] - other[:n]
    error = float(d.std(ddof=1) / np.sqrt(n))
    return Apart(float(d.mean()), error, max(ERRORS * error, LEAST_DIFFERENCE))


def _mean(losses: Measured) -> float:
    return float(losses.mean())


def _why_not(search: Search, best: Measured, over_counting: Apart | None, number: Printed | None) -> Message | None:
    """Why nothing is decided, whatever the differences are."""
    if number is None:
        if over_counting is not None and over_counting.is_worse:
            return None
        return N_(
            "Under no combination that was tried does the model predict this text clearly better than counting its tokens "
            "does. The text is of another kind than what the model was trained on, or too short, or the model is not "
            "trained, or something else about it is not as assumed."
        )
    if not number.is_met(best):
        return N_(
            "No combination that was tried has the author's number to its printed digits. The text is another one, or "
            "something else about the model is not as assumed."
        )
    if number.is_chance([one.measured for one in search.found.values() if one.measured is not None]):
        return N_(
            "Among {n} combinations some may have this number by chance: it has too few digits. Give logits.",
            n=len(search.found),
        )
    return None


def _finding(
    search: Search, question: Question, best: Answers, number: Printed | None, why_not: Message | None
) -> Finding:
    """One question: settled where all combinations with another answer were found to be worse."""
    now, mine, key = search.of(best), best[question.name], search.key(best)
    rivals = [
        (one.answers, search.apart(one.measured, now), number is not None and number.is_met(one.measured))
        for one in search.found.values()
        if one.measured is not None and question.decides(one.answers) and one.answers[question.name] != mine
        if not one.is_same(search.found.get(search.key({**one.answers, question.name: mine})))
    ]
    if not rivals:
        return Finding(question, mine, None, 0.0, 0.0, False)
    as_good = [one for one in rivals if one[2] or not (one[1].is_worse or number)]
    fewest = min(len(search.key(one[0]) ^ key) for one in as_good or rivals)
    nearest = [one for one in as_good or rivals if len(search.key(one[0]) ^ key) == fewest]
    rival, far, __ = min(nearest, key=lambda one: one[1].difference)
    tried = all(search.key(answers) in search.found for answers in search.others(question, best))
    settled = why_not is None and tried and not as_good
    return Finding(question, mine, rival[question.name], far.difference, far.error, settled)


@dataclass(frozen=True)
class _Measuring:
    source: str | Path
    mapping: object
    device: torch.device | str
    sequences: list[Asked]
    number: Printed | None

    def __call__(self, answers: Answers, now: Measured | None) -> tuple[Measured | None, object]:
        try:
            given: dict[str, Any] = dict(answers)
            opened = load(self.source, mapping=self.mapping, device=self.device, **given)
            if not opened.report.has_head:  # its logits mean nothing
                return None, None
            model = opened.model
            if self.number is None:
                return self._losses(model, now), model.config
            if self.number.is_loss:
                return np.array([losses(model, self.sequences).mean()]), model.config
            return last_logits(model, self.sequences[-1], len(self.number.numbers)), model.config
        except VizformerError:
            return None, None

    def _losses(self, model: Transformer, now: Measured | None) -> Measured:
        """Of the first tokens alone where these say enough."""
        first = int(np.searchsorted(np.cumsum([len(one.rows) for one in self.sequences]), LEAST_TOKENS)) + 1
        found = losses(model, self.sequences[:first])
        if now is not None and (so_far := apart(found, now)).difference > 2 * so_far.clear:
            return found
        return np.concatenate([found, losses(model, self.sequences[first:])])

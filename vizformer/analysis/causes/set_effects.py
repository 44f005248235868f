"""What every part of a model does for a set of prompts: an effect for each row, their mean with its interval, and what goes
against it.

With LD = ln(P(answer) / P(wrong)) at the row of the output where a prompt is answered, the measures are

    attribution   the share of LD that a part writes directly (`attribution.direct`)
    zero, mean    LD without the part less LD: zero in its place, or its mean over other texts (`part_outputs`)
    resample      the same with what it put out for other texts, drawn (`draw_outputs`), the mean over the draws
    patching      of the corrupted run with a part of the clean run: the share of the difference that comes back
    splits        what each writer gives to the score by which one head looks at its strongest key (`score_writers`)

The interval is that of the percentile bootstrap over distinct prompts: rows with the same clean prompt say nearly the
same, so that as many prompts as there are distinct ones are drawn with replacement, each with all its rows, many times, and
of the means over rows the middle share is kept.  Of patching a row has two sides, and both are drawn: the deviations that
clean and corrupted prompts give are added, and scaled to the variance

    V = V(clean) + V(corrupted) - V(pairs), at least the larger of the first two

since what a pair has of its own is in both.  It says how far another set of the same kind may differ, nothing of other kinds
of prompts.

Source: Efron 1979, "Bootstrap Methods: Another Look at the Jackknife"; Cameron et al. 2008, "Bootstrap-Based Improvements
for Inference with Clustered Errors" (groups drawn whole); Cameron et al. 2011, "Robust Inference with Multiway Clustering"
(V); Wang et al. 2022, "Interpretability in the Wild", section 3 (effects as means over prompts); Zhang & Nanda 2023 (which
value is put in a part's place).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from vizformer.analysis.attribution.direct import logit_attribution
from vizformer.analysis.causes.ablation import Part, edit_without, parts_of, patch_in_place
from vizformer.analysis.causes.asked_prompts import Asked, each_row
from vizformer.analysis.causes.batches import Heard, judged, patched_logits
from vizformer.analysis.causes.part_outputs import draw_outputs, mean_outputs, outputs_of
from vizformer.analysis.causes.patching import recovered_by
from vizformer.analysis.causes.prompt_pairs import log_odds
from vizformer.analysis.causes.prompt_sets import PromptRow, PromptSet
from vizformer.analysis.frames import frame
from vizformer.analysis.scores.score_writers import Side, Writer, score_split
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import TraceError
from vizformer.messages import Message
from vizformer.model import Patch, Trace

Measure = Literal["attribution", "zero", "mean", "resample", "patching", "splits"]
MEASURES: tuple[Measure, ...] = get_args(Measure)
PAIRED = ("patching",)  # those that need a corrupted prompt in each row
BOOTSTRAPS, LEVEL = 2000, 0.95


@dataclass(frozen=True)
class SetEffects:
    """The effects of some parts, row by row of a set.

    Attributes:
        measure: see the module.
        parts: heads and sublayers, or, of splits, writers.
        values: of each row that could be read, and each part.
        rows, numbers: these rows, and their numbers in the set, from 0.
        odds: LD of each clean prompt: above 0 where the model prefers the answer.
        refused: the numbers of the other rows, and why.
    """

    measure: Measure
    parts: tuple[Part | Writer, ...]
    values: Float[ndarray, "rows parts"]
    rows: tuple[PromptRow, ...]
    numbers: tuple[int, ...]
    odds: Float[ndarray, " rows"]
    refused: tuple[tuple[int, Message], ...]

    @property
    def mean(self) -> Float[ndarray, " parts"]:
        return self.values.mean(0)

    @property
    def distinct(self) -> tuple[int, ...]:
        """How many distinct clean prompts there are and, of patching, how many distinct corrupted ones."""
        return tuple(int(side.max()) + 1 for side in self._sides())

    def interval(self, level: float = LEVEL, seed: int = 0) -> Float[ndarray, "2 parts"]:
        """The lower and the upper end of the bootstrap interval of each mean; the same seed, the same ends.

        NaN where all rows have the same prompt: nothing is known of others.
        """
        if max(self.distinct) == 1:
            return np.full((2, self.values.shape[1]), np.nan)
        rng, sides = np.random.default_rng(seed), self._sides()
        moved = [self._moved(side, rng) for side in sides]
        tail, whole = (1 - level) / 2, np.sum(moved, axis=0)
        if len(sides) == 2:
            pairs = np.unique(np.stack(sides), axis=1, return_inverse=True)[1].ravel()
            of_sides, of_pairs = [one.var(0) for one in moved], self._moved(pairs, rng).var(0)
            wanted = np.maximum(sum(of_sides) - of_pairs, np.maximum(*of_sides))
            whole *= np.sqrt(wanted / np.maximum(whole.var(0), 1e-300))
        return self.mean + np.quantile(whole, [tail, 1 - tail], axis=0)

    def _moved(self, side: Int[ndarray, " rows"], rng: np.random.Generator) -> Float[ndarray, "draws parts"]:
        """The changes of the mean when the prompts of one side are resampled with replacement (bootstrap)."""
        n = int(side.max()) + 1
        weights = rng.multinomial(n, np.full(n, 1 / n), size=BOOTSTRAPS)[:, side]
        return weights @ self.values / weights.sum(1, keepdims=True) - self.mean

    def _sides(self) -> list[Int[ndarray, " rows"]]:
        """The number of each row's clean prompt and, of patching, of its corrupted one."""
        texts = [[(row.clean, row.target) for row in self.rows]]
        if self.measure in PAIRED:
            texts.append([(row.corrupted, row.target) for row in self.rows])
        numbers = [{text: at for at, text in enumerate(dict.fromkeys(side))} for side in texts]
        return [np.array([number[text] for text in side], int) for side, number in zip(texts, numbers, strict=True)]

    def against(self, part: int) -> list[int]:
        """The indices into `rows` whose effect has the opposite sign of a part's mean, the strongest first."""
        signed = self.values[:, part] * np.sign(self.mean[part])
        return [int(at) for at in np.argsort(signed, kind="stable") if signed[at] < 0]

    def strongest(self) -> list[int]:
        """The indices into `parts`, the largest |mean| first."""
        return [int(at) for at in np.argsort(-np.abs(self.mean), kind="stable")]

    def to_frame(self) -> Any:
        """A DataFrame: a row for each part, the largest |mean| first; `against` counts effects of the other sign.

        `rows` and `distinct` are how many prompts there are, and how many distinct ones (of the side with fewer).
        """
        low, high = self.interval()
        rows = [
            (place_of(part := self.parts[at]), part.head, self.mean[at], low[at], high[at], len(self.against(at)))
            for at in self.strongest()
        ]
        return frame(rows, ("place", "head", "mean", "low", "high", "against")).assign(
            rows=len(self.rows), distinct=min(self.distinct)
        )

    def rows_to_frame(self) -> Any:
        """A DataFrame: a row for each prompt with its texts, LD as `odds`, and the effect of each part."""
        import pandas as pd

        texts = pd.DataFrame([vars(row) for row in self.rows], index=pd.Index(self.numbers, name="row"))
        names = [place_of(part) + ("" if part.head is None else f".{part.head}") for part in self.parts]
        values = pd.DataFrame(self.values, index=texts.index, columns=names)
        return pd.concat([texts, pd.Series(self.odds, index=texts.index, name="odds"), values], axis=1)


def place_of(part: Part | Writer) -> str:
    """The place of a part: its site or sublayer, or a writer's place with its kind where the place does not tell it."""
    if isinstance(part, Part):
        return part.sublayer
    return part.place if part.part in ("head", "embedding") else f"{part.place}.{part.part}"


def over_prompts(
    checkpoint: AnyCheckpoint,
    prompts: PromptSet,
    measure: Measure,
    *,
    parts: Sequence[Part] | None = None,
    texts: Sequence[Trace] = (),
    draws: int = 5,
    seed: int = 0,
    head: Part | None = None,
    side: Side = "query",
    heard: Heard | None = None,
) -> SetEffects:
    """One measure of every part, for every row of a set.

    Args:
        parts: all heads and sublayers where nothing is said.
        texts: traces of other texts, of mean and resample (`read_other_texts`).
        draws: of resample.
        seed: of resample.
        head: of splits, whose score is split.
        side: of splits, whose writers.
        heard: is told how many thousandths of a row are done, of how many, after every batch of runs; what it raises
            ends it.

    Raises:
        TraceError: fewer than two rows can be read, a measure without what it needs, or a part that is not there.
    """
    if measure not in MEASURES:
        raise TraceError(
            "There is no measure called {name}. There are: {known}.", name=measure, known=", ".join(MEASURES)
        )
    refused = list[tuple[int, Message]]()
    asked = each_row(checkpoint, prompts, refused, paired=measure in PAIRED)
    first = next(asked)
    wanted: Sequence[Part] = parts_of(first.clean) if parts is None else parts
    edit_without(wanted).check(first.clean.editable())
    if measure in ("mean", "resample") and not texts:
        raise TraceError("There is no other text from which outputs could be taken.")
    means = mean_outputs(checkpoint, texts) if measure == "mean" else {}
    others = [outputs_of(checkpoint, trace) for trace in texts] if measure == "resample" else []
    split: list[dict[Writer, float]] = []
    values, numbers, odds = list[ndarray](), list[int](), list[float]()

    def told(of_row: int, runs: int) -> None:
        if heard is not None:
            heard(1000 * (len(numbers) + len(refused)) + 1000 * of_row // runs, 1000 * len(prompts.rows))

    for one in itertools.chain([first], asked):
        if measure == "attribution":
            values.append(_attributed(checkpoint, one, wanted))
        elif measure == "patching":
            clean = outputs_of(checkpoint, one.clean)
            values.append(
                recovered_by(checkpoint, one.pair(), [patch_in_place(part, clean[part]) for part in wanted], told)
            )
        elif measure == "splits":
            split.append(_split(checkpoint, one, head, side))
        elif measure == "resample":
            drawn = draw_outputs(one.clean, others, draws, seed + one.number)
            runs = [[patch_in_place(part, outputs[part])] for part in wanted for outputs in drawn]
            values.append(_without(checkpoint, one, runs, told).reshape(len(wanted), -1).mean(1))
        else:
            values.append(_without(checkpoint, one, [edit_without([part], means).patches for part in wanted], told))
        numbers.append(one.number)
        odds.append(one.odds)
        told(0, 1)
    found: tuple[Part | Writer, ...] = tuple(wanted)
    if measure == "splits":
        found = tuple(dict.fromkeys(writer for row in split for writer in row))
        values = [np.array([row.get(writer, 0.0) for writer in found]) for row in split]  # type: ignore[arg-type]
    rows = tuple(prompts.rows[number] for number in numbers)
    return SetEffects(measure, found, np.stack(values), rows, tuple(numbers), np.array(odds), tuple(refused))


def _without(
    checkpoint: AnyCheckpoint, one: Asked, runs: Sequence[Sequence[Patch]], told: Heard
) -> Float[ndarray, " runs"]:
    """The change of the logit difference in each run: LD(run) - LD(clean)."""
    batches = patched_logits(checkpoint, one.clean, runs, one.row, told)
    return judged(batches, len(runs), lambda logits: log_odds(logits, one.answer, one.wrong).cpu().numpy()) - one.odds


def _attributed(checkpoint: AnyCheckpoint, one: Asked, parts: Sequence[Part]) -> Float[ndarray, " parts"]:
    """The direct logit attribution of each part; of several answers, or wrong ones, the most probable counts."""
    logits = one.clean.logits[one.row]
    answer, wrong = (max(ids, key=lambda id: float(logits[id]), default=None) for ids in (one.answer, one.wrong))
    assert answer is not None
    found = logit_attribution(checkpoint, one.clean, one.row, answer, against="mean" if wrong is None else wrong)
    sums: dict[Part, float] = {}
    for term in found.terms:
        for part in {Part(term.place), Part(term.place, term.head)}:
            sums[part] = sums.get(part, 0.0) + term.value
    return np.array([sums.get(part, 0.0) for part in parts])


def _split(checkpoint: AnyCheckpoint, one: Asked, head: Part | None, side: Side) -> dict[Writer, float]:
    if head is None or head.head is None or head.sublayer not in one.clean.sites:
        raise TraceError("Say whose score is split: head=Part('decoder.2.self', 3).")
    record = one.clean[head.sublayer]
    if record.q.shape[1] != len(one.clean.logits):
        raise TraceError("Scores are split at the row of the answer: choose a head of the stack that predicts.")
    key = int(record.pattern(head.head)[one.row].argmax())
    split = score_split(checkpoint, one.clean, head.sublayer, head.head, one.row, key, against_mean=True)
    writers = split.queries if side == "query" else split.keys
    return dict(zip(writers, split.of(side).tolist(), strict=True))

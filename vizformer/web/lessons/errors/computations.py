"""Cached computations of the lesson Find the error."""

from collections.abc import Mapping

import numpy as np

from vizformer.analysis import Kind, site_name
from vizformer.analysis.costs.parameter_count import BASE, Counted, count
from vizformer.analysis.decoding.changed_memory import Written
from vizformer.analysis.own_steps import error_contrasts, error_operands
from vizformer.analysis.own_steps.copied_errors import EXERCISES, Exercise, Ran, run
from vizformer.analysis.own_steps.error_contrasts import (
    Contrast,
    Sums,
    after_contrast,
    cache_contrast,
    embedding_contrast,
    entering_with_waves,
    first_lengths,
    join_contrast,
    mean_largest,
    scale_contrast,
    total_contrast,
    waves_contrast,
    written_with,
)
from vizformer.analysis.own_steps.error_operands import hand_given
from vizformer.model import AttentionRecord
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


def exercise(name: str) -> Exercise:
    return EXERCISES[name]


# --- one head ---------------------------------------------------------------------------------------------------------


def head_given(subject: Subject, kind: Kind, layer: int, head: int) -> Mapping[str, object]:
    return error_operands.head_given(_record(subject, kind, layer), head)


def causal_given(subject: Subject, kind: Kind, layer: int, head: int) -> Mapping[str, object]:
    return error_operands.causal_given(_record(subject, kind, layer), head)


@cached
def scale(subject: Subject, kind: Kind, layer: int, head: int) -> Contrast:
    return scale_contrast(_record(subject, kind, layer), head)


@cached
def largest_weights(subject: Subject, kind: Kind, layer: int, head: int) -> tuple[float, float]:
    """The mean of the rows' largest weights, right and wrong."""
    found = scale(subject, kind, layer, head)
    return mean_largest(found.right), mean_largest(found.wrong)


@cached
def flat_weight(subject: Subject, kind: Kind, layer: int, head: int) -> float:
    return error_contrasts.flat_weight(_record(subject, kind, layer), head)


@cached
def row_sums(subject: Subject, kind: Kind, layer: int, head: int) -> Sums:
    return error_contrasts.row_sums(_record(subject, kind, layer), head)


@cached
def after(subject: Subject, kind: Kind, layer: int, head: int) -> Contrast:
    return after_contrast(_record(subject, kind, layer), head)


@cached
def cache(subject: Subject, kind: Kind, layer: int, head: int) -> Contrast:
    return cache_contrast(_record(subject, kind, layer), head)


def first_value(subject: Subject, kind: Kind, layer: int, head: int) -> np.ndarray:
    """v of the first token."""
    return error_contrasts.first_value(_record(subject, kind, layer), head)


def _record(subject: Subject, kind: Kind, layer: int) -> AttentionRecord:
    return subject.trace[site_name(kind, layer)]


# --- the rest of the model --------------------------------------------------------------------------------------------


def by_hand_given() -> Mapping[str, object]:
    return hand_given()


@cached
def total() -> Contrast:
    return total_contrast()


@cached
def by_hand(name: str, corrected: bool) -> Ran:
    """A program that reads no more than the numbers of the calculation by hand."""
    return run(name, by_hand_given(), corrected=corrected)


@cached
def dropout(subject: Subject, corrected: bool) -> Ran:
    return run("dropout", dropout_given(subject), corrected=corrected)


def dropout_given(subject: Subject) -> Mapping[str, object]:
    return error_operands.dropout_given(subject.trace)


@cached
def lengths(subject: Subject) -> dict[str, float]:
    """Length of the first row in two passes of training, and in use."""
    return first_lengths(dropout(subject, True), ("first", "second", "used"))


@cached
def waves(n: int, d: int) -> Contrast:
    return waves_contrast(n, d)


def scales_its_embedding(subject: Subject) -> bool:
    return error_operands.scales_its_embedding(subject.checkpoint)


def is_translator(subject: Subject) -> bool:
    return subject.config.architecture == "encoder-decoder"


@cached
def embedding_given(subject: Subject) -> Mapping[str, object]:
    return error_operands.embedding_given(subject.checkpoint, subject.trace)


@cached
def embedding(subject: Subject) -> Contrast:
    return embedding_contrast(subject.checkpoint, subject.trace)


@cached
def embedding_ratio(subject: Subject) -> float:
    """Mean length of the tokens' rows over that of the positions, without the factor."""
    return float(run("embedding", embedding_given(subject), corrected=False).names["ratio"])


@cached
def written_without_scale(subject: Subject, corrected: bool) -> Written:
    found = embedding(subject)
    return written_with(subject.checkpoint, subject.trace, found.right if corrected else found.wrong)


@cached
def written_with_waves(subject: Subject, corrected: bool) -> Written:
    entering = entering_with_waves(subject.checkpoint, subject.trace, corrected=corrected)
    return written_with(subject.checkpoint, subject.trace, entering)


@cached
def join_given(subject: Subject) -> Mapping[str, object]:
    return error_operands.join_given(subject.checkpoint, subject.trace)


@cached
def join(subject: Subject) -> Contrast:
    return join_contrast(subject.checkpoint, subject.trace)


def joined_from(n_heads: int, n: int) -> list[list[tuple[int, int]]]:
    return error_contrasts.joined_from(n_heads, n)


@cached
def paper_count() -> Counted:
    return count(BASE)

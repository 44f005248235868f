"""Cached computations of the lesson Find the error."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached

if TYPE_CHECKING:
    import numpy as np

    from vizformer.analysis import Kind
    from vizformer.analysis.copied_errors import Exercise, Ran
    from vizformer.analysis.error_contrasts import Contrast, Sums
    from vizformer.analysis.memory import Written
    from vizformer.analysis.parameter_count import Counted
    from vizformer.model import AttentionRecord
    from vizformer.web.catalogue.subject import Subject


def exercise(name: str) -> "Exercise":
    from vizformer.analysis.copied_errors import EXERCISES

    return EXERCISES[name]


# --- one head ---------------------------------------------------------------------------------------------------------


def head_given(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import head_given

    return head_given(_record(subject, kind, layer), head)


def causal_given(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import causal_given

    return causal_given(_record(subject, kind, layer), head)


@cached
def scale(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Contrast":
    from vizformer.analysis.error_contrasts import scale_contrast

    return scale_contrast(_record(subject, kind, layer), head)


@cached
def largest_weights(subject: "Subject", kind: "Kind", layer: int, head: int) -> tuple[float, float]:
    """The mean of the rows' largest weights, right and wrong."""
    from vizformer.analysis.error_contrasts import mean_largest

    found = scale(subject, kind, layer, head)
    return mean_largest(found.right), mean_largest(found.wrong)


@cached
def flat_weight(subject: "Subject", kind: "Kind", layer: int, head: int) -> float:
    from vizformer.analysis.error_contrasts import flat_weight

    return flat_weight(_record(subject, kind, layer), head)


@cached
def row_sums(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Sums":
    from vizformer.analysis.error_contrasts import row_sums

    return row_sums(_record(subject, kind, layer), head)


@cached
def after(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Contrast":
    from vizformer.analysis.error_contrasts import after_contrast

    return after_contrast(_record(subject, kind, layer), head)


@cached
def cache(subject: "Subject", kind: "Kind", layer: int, head: int) -> "Contrast":
    from vizformer.analysis.error_contrasts import cache_contrast

    return cache_contrast(_record(subject, kind, layer), head)


def first_value(subject: "Subject", kind: "Kind", layer: int, head: int) -> "np.ndarray":
    """v of the first token."""
    from vizformer.analysis.error_contrasts import first_value

    return first_value(_record(subject, kind, layer), head)


def _record(subject: "Subject", kind: "Kind", layer: int) -> "AttentionRecord":
    from vizformer.analysis import site_name

    return subject.trace[site_name(kind, layer)]


# --- the rest of the model --------------------------------------------------------------------------------------------


def by_hand_given() -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import hand_given

    return hand_given()


@cached
def total() -> "Contrast":
    from vizformer.analysis.error_contrasts import total_contrast

    return total_contrast()


@cached
def by_hand(name: str, corrected: bool) -> "Ran":
    """A program that reads no more than the numbers of the calculation by hand."""
    from vizformer.analysis.copied_errors import run

    return run(name, by_hand_given(), corrected=corrected)


@cached
def dropout(subject: "Subject", corrected: bool) -> "Ran":
    from vizformer.analysis.copied_errors import run

    return run("dropout", dropout_given(subject), corrected=corrected)


def dropout_given(subject: "Subject") -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import dropout_given

    return dropout_given(subject.trace)


@cached
def lengths(subject: "Subject") -> dict[str, float]:
    """Length of the first row in two passes of training, and in use."""
    from vizformer.analysis.error_contrasts import first_lengths

    return first_lengths(dropout(subject, True), ("first", "second", "used"))


@cached
def waves(n: int, d: int) -> "Contrast":
    from vizformer.analysis.error_contrasts import waves_contrast

    return waves_contrast(n, d)


def scales_its_embedding(subject: "Subject") -> bool:
    from vizformer.analysis.error_operands import scales_its_embedding

    return scales_its_embedding(subject.checkpoint)


def is_translator(subject: "Subject") -> bool:
    return subject.config.architecture == "encoder-decoder"


@cached
def embedding_given(subject: "Subject") -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import embedding_given

    return embedding_given(subject.checkpoint, subject.trace)


@cached
def embedding(subject: "Subject") -> "Contrast":
    from vizformer.analysis.error_contrasts import embedding_contrast

    return embedding_contrast(subject.checkpoint, subject.trace)


@cached
def embedding_ratio(subject: "Subject") -> float:
    """Mean length of the tokens' rows over that of the positions, without the factor."""
    from vizformer.analysis.copied_errors import run

    return float(run("embedding", embedding_given(subject), corrected=False).names["ratio"])


@cached
def written_without_scale(subject: "Subject", corrected: bool) -> "Written":
    from vizformer.analysis.error_contrasts import written_with

    found = embedding(subject)
    return written_with(subject.checkpoint, subject.trace, found.right if corrected else found.wrong)


@cached
def written_with_waves(subject: "Subject", corrected: bool) -> "Written":
    from vizformer.analysis.error_contrasts import entering_with_waves, written_with

    entering = entering_with_waves(subject.checkpoint, subject.trace, corrected=corrected)
    return written_with(subject.checkpoint, subject.trace, entering)


@cached
def join_given(subject: "Subject") -> "Mapping[str, object]":
    from vizformer.analysis.error_operands import join_given

    return join_given(subject.checkpoint, subject.trace)


@cached
def join(subject: "Subject") -> "Contrast":
    from vizformer.analysis.error_contrasts import join_contrast

    return join_contrast(subject.checkpoint, subject.trace)


def joined_from(n_heads: int, n: int) -> list[list[tuple[int, int]]]:
    from vizformer.analysis.error_contrasts import joined_from

    return joined_from(n_heads, n)


@cached
def paper_count() -> "Counted":
    from vizformer.analysis.parameter_count import BASE, count

    return count(BASE)

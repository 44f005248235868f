"""The questions of the lesson Training: those about a loss are asked where the model predicts something."""

from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.training import (
    adam,
    averaging,
    batches,
    computations,
    dropout,
    gradient,
    left_out,
    loss,
    place,
    rate,
    sharing,
    smoothing,
    two_trainings,
)
from vizformer.web.widgets.questions import CellChoice, Choice, Registry


def _padding(subject: Subject) -> Choice | None:
    if not place.predicts(subject):
        return None
    return loss.padding_question(f"{subject}", computations.losses(subject, place.usual(subject)))


def _has_gradient(subject: Subject) -> bool:
    return place.predicts(subject) and computations.affordable(subject)


def _largest(subject: Subject) -> CellChoice | None:
    if not _has_gradient(subject):
        return None
    return gradient.largest_question(computations.step_gradient(subject, place.usual(subject)), f"{subject}")


def _rows(subject: Subject) -> Choice | None:
    if not _has_gradient(subject):
        return None
    return gradient.rows_question(computations.step_gradient(subject, place.usual(subject)), subject)


QUESTIONS: Registry = {
    "guess": lambda subject: loss.guess_question(subject.config.vocab_size),
    "padding": _padding,
    "floor": smoothing.floor_question,
    "worse": lambda subject: two_trainings.worse_question(),
    "peak": lambda subject: rate.peak_question(),
    "wide": lambda subject: rate.wide_question(),
    "first": lambda subject: adam.first_question(),
    "scale": lambda subject: adam.scale_question(),
    "largest": _largest,
    "rows": _rows,
    "without": lambda subject: left_out.without_question(),
    "times": lambda subject: left_out.times_question(),
    "reported": lambda subject: dropout.reported_question(),
    "saved": lambda subject: sharing.saved_question(),
    "tied": lambda subject: sharing.tied_question(),
    "cells": lambda subject: batches.cells_question(),
    "order": lambda subject: batches.order_question(),
    "mean": lambda subject: averaging.mean_question(),
}

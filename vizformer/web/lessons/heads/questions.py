"""The questions of the lesson Many heads."""

from vizformer.analysis import kinds, site_name
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.heads import all_heads, computations, cost, reference, shared_keys_and_values, split
from vizformer.web.link.view import View
from vizformer.web.widgets.questions import CellChoice, Number, Registry
from vizformer.web.words import labels


def _without(subject: Subject) -> Number:
    kind = kinds(subject.trace)[0]
    query = View().query_of(subject.trace.tokens[labels.stacks(kind)[0]])
    return split.without_question(computations.contributions(subject, site_name(kind, 0), query), 0, query)


def _habit(subject: Subject) -> CellChoice | None:
    return all_heads.habit_question(subject, kinds(subject.trace)[0])


QUESTIONS: Registry = {
    "without": _without,
    "habit": _habit,
    "reader": lambda subject: reference.reader_question(),
    "cost": cost.cost_question,
    "cache": shared_keys_and_values.cache_question,
}

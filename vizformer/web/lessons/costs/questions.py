"""The questions of the lesson Costs, variants, results."""

from vizformer.analysis import kinds, site_name
from vizformer.web.catalogue.subject import Subject
from vizformer.web.lessons.costs import (
    calculator,
    complexity,
    family,
    flash,
    linear,
    own_ablations,
    results,
    sparse,
    speed_measurement,
)
from vizformer.web.widgets.questions import Number, Registry


def _factor(subject: Subject) -> Number | None:
    kind = kinds(subject.trace)[0]
    return flash.factor_question(subject, kind, site_name(kind, 0), 0)


QUESTIONS: Registry = {
    "times": complexity.times_question,
    "path": lambda subject: complexity.path_question(),
    "overtakes": calculator.overtakes_question,
    "six": lambda subject: calculator.six_question(),
    "factor": _factor,
    "bracket": linear.bracket_question,
    "product": lambda subject: linear.product_question(),
    "layers": sparse.layers_question,
    "bytes": speed_measurement.bytes_question,
    "doubled": lambda subject: speed_measurement.doubled_question(),
    "smaller": lambda subject: family.smaller_question(),
    "experts": family.experts_question,
    "own": lambda subject: own_ablations.worst_question(),
    "hours": lambda subject: results.hours_question(),
    "beaten": lambda subject: results.beaten_question(),
}

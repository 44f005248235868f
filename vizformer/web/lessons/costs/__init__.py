"""The laboratories of the lesson Costs, variants, results, in the order of its parts."""

from vizformer.web.lessons.costs import (
    calculator,
    complexity,
    family,
    flash,
    linear,
    results,
    sparse,
    speed_measurement,
)

_IN_ORDER = (complexity, calculator, flash, linear, sparse, speed_measurement, family, results)
PARTS = tuple(part.lab for part in _IN_ORDER)

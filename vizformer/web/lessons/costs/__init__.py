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

PARTS = (
    complexity.lab,
    calculator.lab,
    flash.lab,
    linear.lab,
    sparse.lab,
    speed_measurement.lab,
    family.lab,
    results.lab,
)

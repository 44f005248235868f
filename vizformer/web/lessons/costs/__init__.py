"""The laboratories of the lesson Costs, variants, results, in the order of its parts."""

from vizformer.web.lessons.costs import (
    family,
    flash,
    linear,
    results,
    sparse,
)

PARTS = (
    flash.lab,
    linear.lab,
    sparse.lab,
    family.lab,
    results.lab,
)

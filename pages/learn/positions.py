"""Positions: waves, clocks, distances, tokens in another order, f(x, m), six schemes, and past the trained length."""

from vizformer.web.frame import sitemap
from vizformer.web.lessons import positions
from vizformer.web.widgets import lesson


def page() -> None:
    terms = (
        "position-encoding",
        "sinusoidal-encoding",
        "wavelength",
        "learned-positions",
        "rope",
        "alibi",
        "relative-bias",
        "equivariance",
        "extrapolation",
    )
    lesson.show(sitemap.POSITIONS, positions.PARTS, terms=terms)


page()

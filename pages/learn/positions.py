"""Positions: waves, clocks, distances, tokens in another order, f(x, m), six schemes, and past the trained length."""

from vizformer.messages import N_
from vizformer.web.frame import sitemap
from vizformer.web.lessons.positions.clock import clock
from vizformer.web.lessons.positions.distance import distance
from vizformer.web.lessons.positions.order import shuffle
from vizformer.web.lessons.positions.past_trained_length import longer
from vizformer.web.lessons.positions.place_function import place_function
from vizformer.web.lessons.positions.schemes import options
from vizformer.web.lessons.positions.waves import waves
from vizformer.web.widgets import lesson


def page() -> None:
    parts = [
        lesson.Part("waves", N_("Waves"), waves),
        lesson.Part("clock", N_("Clock hands"), clock),
        lesson.Part("distance", N_("Distance"), distance),
        lesson.Part("shuffle", N_("Shuffle my tokens"), shuffle),
        lesson.Part("function", N_("A function of the place"), place_function),
        lesson.Part("options", N_("Six schemes"), options),
        lesson.Part("longer", N_("Past the trained length"), longer),
    ]
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
    lesson.show(sitemap.POSITIONS, parts, terms=terms)


page()

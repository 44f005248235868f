"""Positions: waves, clocks, distances, tokens in another order, six schemes, and past the trained length."""

from vizformer.messages import N_
from vizformer.web import lesson, sitemap
from vizformer.web.positions_code import clock, distance, waves
from vizformer.web.positions_longer import longer
from vizformer.web.positions_order import shuffle
from vizformer.web.positions_schemes import options


def page() -> None:
    parts = [
        lesson.Part("waves", N_("Waves"), waves),
        lesson.Part("clock", N_("Clock hands"), clock),
        lesson.Part("distance", N_("Distance"), distance),
        lesson.Part("shuffle", N_("Shuffle my tokens"), shuffle),
        lesson.Part("options", N_("Six schemes"), options),
        lesson.Part("longer", N_("Past the trained length"), longer),
    ]
    terms = (
        "position-encoding", "sinusoidal-encoding", "wavelength", "learned-positions", "rope", "alibi",
        "relative-bias", "equivariance", "extrapolation",
    )  # fmt: skip
    lesson.show(sitemap.POSITIONS, parts, terms=terms)


page()

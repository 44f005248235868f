"""The softmax temperature, a setting that two parts of the lesson share."""

from typing import Any

from vizformer.web.widgets import lesson
from vizformer.web.words.i18n import _

TEMPERATURES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0)


def temperature_slider(where: Any) -> float:
    """The softmax temperature, the same in every part of the lesson; drawn in `where`, a column or `st` itself."""
    chosen: float = where.select_slider(
        _("Temperature T"), TEMPERATURES, format_func=lambda t: f"{t:g}", **lesson.setting("qkv.t", 1.0, TEMPERATURES)
    )
    return chosen

"""The parts of a model with the largest mean effects over a set of prompts, as a table."""

import numpy as np
import streamlit as st

from vizformer.analysis import SetEffects
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.set_effects import PAIRED
from vizformer.components import table
from vizformer.components.table import Number, Row
from vizformer.web.words import part_names
from vizformer.web.words.i18n import _
from vizformer.web.words.part_names import signed


def unit(found: SetEffects) -> str:
    if found.measure in PAIRED:
        return _("share of the difference")
    return _("share of the log odds, nats") if found.measure == "attribution" else _("change of the log odds, nats")


def part_name(found: SetEffects, at: int) -> str:
    part = found.parts[at]
    assert isinstance(part, Part)  # (splits, whose parts are writers, are not drawn)
    return part_names.name(part)


def show(found: SetEffects, most: int, caption: str = "") -> None:
    """Mean, interval, and how many prompts go against it."""
    low, high = found.interval()
    rows = [
        Row(
            part_name(found, at),
            Number(float(found.mean[at]), signed(float(found.mean[at]))),
            "–" if np.isnan(low[at]) else f"{signed(float(low[at]))} … {signed(float(high[at]))}",
            Number(len(found.against(at)), str(len(found.against(at)))),
        )
        for at in found.strongest()[:most]
    ]
    columns = (
        _("part of the model"),
        _("mean: {unit}", unit=unit(found)),
        _("95% interval (bootstrap over {n} distinct prompts)", n=" × ".join(map(str, found.distinct))),
        _("prompts against it"),
    )
    st.html(table.to_html(columns, rows, caption=caption or _("The parts with the largest effect")))

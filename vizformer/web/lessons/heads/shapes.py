"""The shapes of the matrices of one attention: the paper's beside those of the chosen model."""

import streamlit as st

from vizformer.components import table
from vizformer.components.table import Row
from vizformer.config import ModelConfig
from vizformer.presets import PRESETS
from vizformer.web.words.i18n import _


def shapes(config: ModelConfig) -> None:
    """A row for every matrix; the first column of numbers is the base model of Vaswani et al. 2017, section 3.2.2."""
    paper = ModelConfig(**PRESETS["transformer-base"])
    rows = [Row((name, *ours)) for name, *ours in zip(names(), written(paper), written(config), strict=True)]
    columns = ("", _("the paper's base model"), _("this model"))
    st.html(table.to_html(columns, rows, caption=_("Shapes, in numbers: rows × columns")))


def names() -> tuple[str, ...]:
    return (
        _("query heads, key and value heads"),
        _("W_Q, W_K, W_V of one head"),
        _("W_Q of all heads, side by side"),
        _("W_K of all heads, and W_V"),
        _("z of all heads, laid end to end"),
        "W_O",
    )


def written(config: ModelConfig) -> tuple[str, ...]:
    """The numbers and shapes of `names`, in their order."""
    d, d_head, heads, groups = config.d_model, config.d_head, config.n_heads, config.kv_heads
    return (
        f"{heads}, {groups}",
        f"{d} × {d_head}",
        f"{d} × {heads * d_head}",
        f"{d} × {groups * d_head}",
        f"n × {heads * d_head}",
        f"{heads * d_head} × {d}",
    )

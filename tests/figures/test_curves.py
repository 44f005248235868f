"""Bars and curves: next tokens, and position codes."""

import subprocess
import sys

import numpy as np
import pytest

from vizformer import figures


def test_bars_are_the_probabilities_on_a_scale_of_one() -> None:
    figure = figures.next_token_bars(["cat", '<b>"', "cat"], np.array([0.5, 0.3, 0.1]))
    (bars,) = figure.data
    assert bars.orientation == "h"
    assert bars.x.dtype == np.float32
    assert bars.x.tolist() == pytest.approx([0.5, 0.3, 0.1])
    assert bars.y.tolist() == [0, 1, 2]  # equal tokens do not merge
    assert figure.layout.xaxis.range == (0, 1)
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]  # the first on top
    assert figure.layout.yaxis.ticktext == ("cat", '&lt;b&gt;"', "cat")
    assert bars.text == ("50.0%", "30.0%", "10.0%")
    assert figures.next_token_bars(["a", "b"], np.array([0.0004, 0.0])).data[0].text == ("&lt;0.1%", "0.0%")
    with pytest.raises(ValueError, match="do not fit 1 tokens"):
        figures.next_token_bars(["a"], np.array([0.5, 0.5]))


def test_position_codes_as_a_map() -> None:
    encoding = np.random.default_rng(0).normal(size=(10, 6))
    figure = figures.positional_heatmap(encoding)
    (heatmap,) = figure.data
    assert np.array_equal(heatmap.z, encoding.astype(np.float32))
    assert heatmap.zmin == -heatmap.zmax
    assert heatmap.zmax == pytest.approx(np.abs(encoding).max())
    assert figure.layout.yaxis.autorange == "reversed"
    assert "position %{y}, dimension %{x}" in heatmap.hovertemplate


def test_a_long_map_of_codes_names_the_tokens_and_counts_the_rest() -> None:
    names = ["我", "<s>", "有", "一", "只"] + [""] * 59
    figure = figures.positional_heatmap(np.zeros((64, 512)), names=names)
    assert figure.layout.yaxis2.ticktext == ("0 我", "3 一", "8", "16", "24", "32", "40", "48", "56")
    assert figure.layout.yaxis.ticktext[1] == "1 &lt;s&gt;"  # the hover names every row,
    assert len(figure.layout.xaxis.ticktext) == 512
    assert (figure.layout.xaxis.ticks, figure.layout.yaxis.ticks) == ("", "")  # and draws a mark for none


def test_importing_figures_loads_neither_torch_nor_plotly() -> None:
    code = "import sys, vizformer.figures; sys.exit(','.join({'torch', 'streamlit', 'plotly'} & set(sys.modules)) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_names_are_listed_and_others_refused() -> None:
    assert set(dir(figures)) >= {"attention_heatmap", "head_grid", "next_token_bars", "ENGLISH"}
    assert all(callable(getattr(figures, name)) or name == "ENGLISH" for name in figures.__all__)
    with pytest.raises(AttributeError, match="no attribute 'pie'"):
        _ = figures.pie

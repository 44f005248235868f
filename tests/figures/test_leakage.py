"""The figures of a change that spreads."""

import numpy as np
import pytest

from vizformer import word_tables
from vizformer.figures import change_bars, change_map

TOKENS = ["<s>", "a", "a"]


def test_a_bar_per_position_and_one_of_another_colour() -> None:
    figure = change_bars(np.array([0, 1.5, 0.001]), TOKENS, changed=1)
    bar = figure.data[0]
    assert bar.y.tolist() == pytest.approx([0, 1.5, 0.001])
    assert bar.marker.color[0] == bar.marker.color[2] != bar.marker.color[1]
    assert list(bar.text) == ["0", "1.5", "&lt;0.01"]  # what is small is not said to be nothing
    assert list(figure.layout.xaxis.ticktext) == ["&lt;s&gt;", "a", "a"]


def test_nothing_moved_is_drawn_too() -> None:
    assert change_bars(np.zeros(3), TOKENS, changed=1).layout.yaxis.range == (0, 1)
    change_map(np.zeros((2, 3)), TOKENS)


def test_what_has_not_moved_is_a_layer_of_its_own() -> None:
    stream = np.array([[0, 2, 0], [0, 3, 1e-6]])
    moved, still = change_map(stream, TOKENS).data[:2]
    assert np.isnan(moved.z).tolist() == (stream == 0).tolist()
    assert np.isnan(still.z).tolist() == (stream != 0).tolist()
    assert [list(row) for row in still.text] == [["0", "", "0"], ["0", "", ""]]
    assert [list(row) for row in moved.text] == [["", "2", ""], ["", "3", "&lt;0.01"]]
    assert moved.z.dtype == still.z.dtype == np.float32
    assert moved.zmax == 3


def test_rows_are_named_in_the_order_of_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = {"embedding": "输入", "after_layer": "第 {layer} 层之后"}
    monkeypatch.setattr(word_tables, "_translated", lambda english: spoken)
    figure = change_map(np.ones((3, 3)), TOKENS)
    assert list(figure.layout.yaxis.ticktext) == ["输入", "第 0 层之后", "第 1 层之后"]


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        change_bars(np.zeros(2), TOKENS, changed=0)
    with pytest.raises(ValueError, match="does not fit"):
        change_map(np.zeros((2, 2)), TOKENS)

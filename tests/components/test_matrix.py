"""Small matrices as HTML: how numbers are written."""

import re

import numpy as np

from vizformer.components import matrix


def cells(html: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)</td>", html)


def test_what_is_counted_has_no_point() -> None:
    assert cells(matrix.to_html(np.array([[0, 12], [-3, 4]]))) == ["0", "12", "−3", "4"]
    assert cells(matrix.to_html(np.array([0.0, 12.0, -3.5]))) == ["0.0000", "12.0000", "−3.5000"]


def test_tiny_and_infinite_numbers() -> None:
    assert cells(matrix.to_html(np.array([1e-6, -np.inf, np.nan]))) == ["1.0e−06", "−∞", "NaN"]

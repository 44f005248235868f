"""The table of words and numbers: escaped, with bars as long as their numbers."""

import re

import pytest

from vizformer.components.table import Number, Row, to_html


def test_cells_are_what_was_passed_and_escaped() -> None:
    html = to_html(["<key>", "w"], [Row("<b>猫</b>", -0.5), Row("&", Number(1024, "<1>"))], caption="<c>")
    cells = re.findall(r"<td[^>]*>(.*?)</td>", html)
    assert cells == ["&lt;b&gt;猫&lt;/b&gt;", "−0.5000", "&amp;", "&lt;1&gt;"]
    assert "<th>&lt;key&gt;</th>" in html
    assert "<caption>&lt;c&gt;</caption>" in html


def test_bars_are_as_long_as_their_numbers() -> None:
    rows = [Row("a", value) for value in (0.25, 1.0, 3.0, -1.0, float("nan"))]
    widths = re.findall(r"background-size:([\d.]+)%", to_html(["", "share"], rows, bar=1))
    assert widths == ["25.0", "100.0", "100.0", "0.0", "0.0"]
    assert "background-size" not in to_html(["", "share"], rows)


def test_kinds_of_rows() -> None:
    html = to_html(["x"], [Row("a", kind="marked"), Row("b", kind="sum"), Row("c")])
    assert re.findall(r'<tr class="vf-(\w+)">', html) == ["marked", "sum", "plain"]


def test_rows_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="1 cells do not fit 2 columns"):
        to_html(["a", "b"], [Row("x")])

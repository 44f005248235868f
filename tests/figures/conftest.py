"""Every figure that these tests make is held against Plotly's schema, drawn as an SVG, and told as table and sentence."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from tests.figures.schema import held_against_plotly
from vizformer.figures.figure import Figure
from vizformer.figures.svg import svg
from vizformer.figures.tables import sentence, table


@pytest.fixture(autouse=True)
def made_figures_are_held_against_plotly(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    if request.node.path.name in ("test_figure.py", "test_svg.py"):  # they make wrong ones on purpose
        yield
        return
    made: list[Figure] = []
    build = Figure.__init__

    def note(figure: Figure, *traces: object) -> None:
        build(figure, *traces)  # type: ignore[arg-type]
        made.append(figure)

    monkeypatch.setattr(Figure, "__init__", note)
    yield
    for figure in made:
        held_against_plotly(figure)
        ET.fromstring(svg(figure))
        told_without_the_picture(figure)
        legend = figure.parts[1].get("legend", {})
        assert not 0 < legend.get("y", 1) < 1 or "h" not in legend.get("orientation", ""), "it covers the picture"


def told_without_the_picture(figure: Figure) -> None:
    """A sentence without left-over places of Plotly, and a table whose rows fit their headings."""
    said, read = sentence(figure), table(figure, most=50)
    assert said
    assert not re.search(r"%\{|\bnan\b|None", said), said
    assert len(set(read.columns)) == len(read.columns)
    assert all(len(row) == len(read.columns) for row in read.rows)
    assert len(read.rows) == min(50, read.total)

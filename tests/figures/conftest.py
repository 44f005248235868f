"""Every figure that these tests make is held against Plotly's schema, and drawn as an SVG."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from tests.figures.schema import held_against_plotly
from vizformer.figures.figure import Figure
from vizformer.figures.svg import svg


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

"""Every figure that these tests make is held against Plotly's schema."""

from collections.abc import Iterator

import pytest

from tests.figures.schema import held_against_plotly
from vizformer.figures.figure import Figure


@pytest.fixture(autouse=True)
def made_figures_are_held_against_plotly(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    if request.node.path.name == "test_figure.py":  # it makes wrong ones on purpose
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

"""The images that stand in for a page's first figures while Plotly's script is on its way."""

import base64
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

from vizformer.figures.figure import Figure, heatmap, scatter
from vizformer.figures.style import weight_scale
from vizformer.web.widgets import chart


@pytest.fixture(autouse=True)
def two_figures_have_images(monkeypatch):
    monkeypatch.setattr(chart, "N_FIRST", 2)


def page() -> None:
    import streamlit as st

    from vizformer.web.widgets import chart

    for key, figure in st.session_state["figures"].items():
        chart.show(figure, key=key)


def images(figures: dict[str, Figure], app: AppTest | None = None) -> tuple[list[str], AppTest]:
    app = app or AppTest.from_function(page, default_timeout=60)
    app.session_state["figures"] = figures
    app.run()
    assert not app.exception
    return [one.proto.body for one in app.get("html") if "vf-stand-in" in one.proto.body], app


def blocks(block: Block) -> list[str]:
    """What is said of all containers in one."""
    inside = [one for child in block.children.values() if isinstance(child, Block) for one in blocks(child)]
    return [str(block.proto), *inside]


def line(title: str = "A line") -> Figure:
    figure = Figure(scatter(x=[0, 1, 2], y=[1, 3, 2]))
    figure.update_layout(title={"text": title}, height=240)
    return figure


def test_the_first_two_figures_of_a_page_have_an_image_as_high_as_they_are():
    found, _ = images({"one": line(), "two": line(), "three": line()})
    assert len(found) == 2
    assert all('height="240"' in body and "data:image/svg+xml;base64," in body for body in found)


def test_it_shows_the_figure_as_it_is_now_and_goes_after_a_while(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(chart.time, "monotonic", lambda: now[0])
    first, app = images({"one": line()})
    now[0] += 5
    second, app = images({"one": line("Another")}, app)
    assert len(second) == 1
    assert second != first
    now[0] += chart.STAND_IN_S
    assert images({"one": line()}, app)[0] == []


@pytest.mark.parametrize(
    "figure",
    [
        Figure(heatmap(z=np.zeros((200, 200), np.float32), colorscale=weight_scale())),  # too many values
        Figure(scatter(x=[0, 1], y=[0, 1], marker={"symbol": "hourglass"}, mode="markers")),  # unknown to a file
    ],
)
def test_what_is_large_or_unknown_has_none_and_its_script_is_fetched_at_once(figure):
    found, app = images({"one": figure})
    assert found == []
    assert not [block for block in blocks(app.main) if "first" in block]  # by which a held script knows an image
    assert [block for block in blocks(images({"one": line()})[1].main) if "first" in block]


def test_on_a_dark_page_its_letters_are_light_and_its_ground_is_the_pages():
    (body,), _ = images({"one": line()})
    packed = re.search(r'base64,([^"]*)"', body)
    assert packed
    drawn = base64.b64decode(packed[1]).decode()
    assert drawn.endswith("</style></svg>")
    rules = dict(re.findall(r"^(\S.*?) { (.*?); }$", drawn, re.MULTILINE))
    assert rules[":root"] == "color-scheme: light dark"
    for kind in ("letters", "grid"):
        (colour, name) = (chart.LETTERS, "fill") if kind == "letters" else (chart.FAINT, "stroke")
        assert rules[f'[{name}="{colour}"]'].startswith(f"{name}: light-dark({colour}, #")
        assert f'{name}="{colour}"' in drawn.partition("<style>")[0]
    assert rules[':root > rect[fill="white"]'] == "fill: none"
    assert 'fill="white"' in drawn.partition("<style>")[0]

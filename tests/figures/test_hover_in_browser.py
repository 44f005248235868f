"""What Plotly makes of the hovers: numbers, names and signs as they are."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Browser, Page

from vizformer import figures

pytestmark = pytest.mark.browser


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 800, "height": 800})
    yield page
    page.close()


def hover(page: Page, folder: Path, figure: go.Figure, row: int, column: int) -> str:
    """The text that appears over a cell."""
    path = folder / "figure.html"
    figure.write_html(path, include_plotlyjs=True)
    page.goto(path.as_uri())
    page.wait_for_selector(".heatmaplayer image")
    x, y = page.evaluate(
        """([row, column]) => {
            const plot = document.querySelector('.js-plotly-plot');
            const box = plot.getBoundingClientRect(), { xaxis, yaxis } = plot._fullLayout;
            return [box.x + xaxis._offset + xaxis.d2p(column), box.y + yaxis._offset + yaxis.d2p(row)];
        }""",
        [row, column],
    )
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    page.wait_for_selector(".hoverlayer .hovertext")
    return page.locator(".hoverlayer .hovertext").first.text_content() or ""


def test_the_sentence_names_both_tokens_also_where_not_all_are_printed(browser_page: Page, tmp_path: Path) -> None:
    n = 90
    weights = np.random.default_rng(0).dirichlet(np.ones(n), size=n)
    tokens = [f"<t{i}>" for i in range(n)]
    figure = figures.attention_heatmap(weights, tokens, tokens)
    said = hover(browser_page, tmp_path, figure, 31, 47)
    assert said == f"query 31 “<t31>” attends to key 47 “<t47>” with weight {weights[31, 47]:.4f}"


def test_a_masked_cell_says_why(browser_page: Page, tmp_path: Path) -> None:
    tokens = ["</s>", "cat", "cat"]
    reasons = np.triu(np.full((3, 3), 2, np.uint8), 1)
    figure = figures.attention_heatmap(np.tril(np.full((3, 3), 0.3)), tokens, tokens, reasons=reasons)
    assert hover(browser_page, tmp_path, figure, 0, 2) == "query 0 “</s>” → key 2 “cat” is masked: the future"


@pytest.mark.sweep
def test_the_grid_says_which_head(browser_page: Page, tmp_path: Path) -> None:
    patterns = np.zeros((2, 3, 4, 4), np.float32)
    patterns[1, 2, 3, 0] = 0.625
    figure = figures.head_grid(patterns)
    assert hover(browser_page, tmp_path, figure, 1 * 5 + 3, 2 * 5) == "L1 H2: weight up to 0.6250"

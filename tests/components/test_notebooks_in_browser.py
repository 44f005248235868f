"""What the notebooks show is drawn, and asks nobody for anything."""

from typing import Any

import pytest

from tests.examples.test_notebooks import shown


@pytest.mark.browser
def test_the_pictures_of_a_notebook_are_drawn_beside_each_other_without_a_network(browser: Any) -> None:
    """Three outputs on a page with a style of its own, which reaches none of them."""
    outputs = [one._repr_html_() for one in shown("tour")]
    context = browser.new_context(viewport={"width": 1000, "height": 800}, offline=True)
    page = context.new_page()
    asked: list[str] = []
    problems: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.set_content(f"<style>canvas, svg {{ display: none }}</style>{''.join(outputs)}")
    for index in range(len(outputs)):
        frame = page.frame_locator("iframe").nth(index)
        drawn = frame.locator("canvas, svg").first
        drawn.wait_for(state="visible")
        assert drawn.evaluate(
            "found => found.tagName !== 'CANVAS' || new Set(found.getContext('2d')"
            ".getImageData(0, 0, found.width, found.height).data).size > 8"
        )
    assert "有" in page.frame_locator("iframe").first.locator("body").inner_text()
    assert not [url for url in asked if url.startswith(("http", "ws"))]
    assert not problems
    context.close()

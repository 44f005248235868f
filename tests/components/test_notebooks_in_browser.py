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
    # Frames inherit the policy of what they stand in; this one allows nothing but scripts and styles in the page.
    policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    page.set_content(f"{head}<style>canvas, svg {{ display: none }}</style>{''.join(outputs)}")
    for index in range(len(outputs)):
        frame = page.frame_locator("iframe").nth(index)
        drawn = frame.locator("canvas, svg").first
        drawn.wait_for(state="visible")
        assert drawn.evaluate(
            "found => found.tagName !== 'CANVAS' || new Set(found.getContext('2d')"
            ".getImageData(0, 0, found.width, found.height).data).size > 8"
        )
    words = page.frame_locator("iframe").first.locator("body").inner_text()
    assert "query 0 “<s>” attends most to key 6 “。”" in words
    assert not [url for url in asked if url.startswith(("http", "ws"))]
    assert not problems
    context.close()


@pytest.mark.browser
def test_a_picture_is_as_dark_as_the_notebook_around_it_whatever_the_system_says(browser: Any) -> None:
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content(f"<style>.night {{ background: #111 }}</style><div>{shown('tour')[0]._repr_html_()}</div>")
    picture = page.frame_locator("iframe")
    picture.locator("canvas").first.wait_for(state="visible")
    picture.get_by_text("L2", exact=True).wait_for()

    def colours() -> list[str]:
        return picture.locator("section").evaluate(
            "found => [document.body, found].map((one, i) => getComputedStyle(one)[['backgroundColor', 'color'][i]])"
        )

    assert colours() == ["rgb(255, 255, 255)", "rgb(38, 39, 48)"]
    assert not page.get_by_text("trust the notebook").is_visible()
    page.evaluate("() => document.body.classList.add('night')")
    picture.locator(":root.dark").wait_for(state="attached")
    assert colours() == ["rgb(14, 17, 23)", "rgb(250, 250, 250)"]
    page.evaluate("() => document.body.classList.remove('night')")
    picture.locator(":root:not(.dark)").wait_for(state="attached")
    assert colours() == ["rgb(255, 255, 255)", "rgb(38, 39, 48)"]
    assert not problems
    # An output that may not look around itself (a sandbox without the page's origin) follows the system.
    page.emulate_media(color_scheme="dark")
    page.evaluate(
        "() => { const it = document.querySelector('iframe'); it.sandbox = 'allow-scripts'; it.srcdoc += ' '; }"
    )
    picture.locator(":root.dark canvas").first.wait_for(state="visible")
    assert not problems
    context.close()

"""The drawing of the lesson The map in a browser: all of it is seen at once."""

import pytest
from playwright.sync_api import expect

SIZE = {"width": 1280, "height": 800}


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("model", ["zh-en", "stories"])
@pytest.mark.sample(1)
def test_the_whole_drawing_is_seen_without_scrolling(open_tab, model, locale):
    tab = open_tab(f"/map?model={model}", width=SIZE["width"], height=SIZE["height"], locale=locale)
    tab.settled()
    drawing = tab.page.locator(".vf-drawing")
    expect(drawing.locator(".vf-box").last).to_be_visible()
    box = drawing.bounding_box()
    assert box is not None
    assert box["y"] <= 320
    assert box["y"] + box["height"] <= SIZE["height"]

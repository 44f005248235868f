"""A click on a head of the scatter opens it, and its address says which one it is."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.sweep]


def test_a_click_on_a_point_opens_its_head(open_tab):
    tab = open_tab("/head_report?model=stories")
    page = tab.page
    points = page.locator(".st-key-chart-head_report-scatter .scatterlayer .trace").first.locator(".point")
    expect(points).to_have_count(40)
    for at, name in ((0, "Layer 0, head 0"), (21, "Layer 2, head 5")):
        box = points.nth(at).bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(page.get_by_role("heading", name=name)).to_be_visible()
        tab.settled()
        assert f"layer={at // 8}" in page.url
        assert f"head={at % 8}" in page.url

"""What if, patches between two prompts: a click in one map chooses the cell in both, and Back goes to the one before."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lang", "way", "what", "patched"),
    [
        ("en", "Patching", "outputs of heads", "patched"),
        ("zh_CN", "修补", "头的输出", "修补后"),
    ],
)
def test_a_click_in_either_map_shows_its_run(open_tab, lang: str, way: str, what: str, patched: str) -> None:
    tab = open_tab(f"/what_if?model=induction-by-hand&text=c+d+f+e+c&lang={lang}")
    page = tab.page
    page.get_by_role("radio", name=way, exact=True).or_(page.get_by_role("button", name=way, exact=True)).click()
    tab.settled()
    page.get_by_role("radio", name=what, exact=True).or_(page.get_by_role("button", name=what, exact=True)).click()
    tab.settled()
    maps = page.locator(".vf-cells")
    expect(maps).to_have_count(2)
    for one in (0, 1):
        expect(maps.nth(one)).to_have_attribute("data-selected", "0,1")
    row = page.get_by_role("row").filter(has_text=patched)
    expect(row).to_contain_text("“d”")  # the previous-token head brings the answer back
    for clicked, cell in ((1, "0,3"), (0, "1,2"), (1, "1,0"), (0, "0,1")):
        down, across = map(int, cell.split(","))
        maps.nth(clicked).get_by_role("gridcell").nth(4 * down + across).click()
        tab.settled()
        for one in (0, 1):
            expect(maps.nth(one)).to_have_attribute("data-selected", cell)
        assert f"whatif.cell%3A{down}.{across}" in page.url or f"whatif.cell:{down}.{across}" in page.url
        expect(row).to_contain_text("“d”" if cell in ("1,2", "0,1") else "“e”")
    page.go_back()
    tab.settled()
    for one in (0, 1):
        expect(maps.nth(one)).to_have_attribute("data-selected", "1,0")


@pytest.mark.sweep
def test_what_takes_long_shows_how_far_it_is_and_can_be_stopped(open_tab) -> None:
    text = (
        "Once upon a time there was a big house near the old forest. One day a little {0} came to the house and looked "
        "at the door for a long time. " * 3 + "The {0} said that"
    )
    link = urlencode(
        dict(
            model="stories",
            text=text.format("boy"),
            second=text.format("girl"),
            dials="whatif.way:between~whatif.what:heads_by_position",
        )
    )
    tab = open_tab(f"/what_if?{link}")
    page = tab.page
    begin = page.get_by_role("button", name="Patch one cell after the other")
    begin.click()
    expect(page.get_by_text(re.compile(r"^[1-9][0-9]* of 832 runs"))).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).last.click()
    expect(begin).to_be_visible()
    tab.settled()
    expect(page.locator(".vf-cells")).to_have_count(1)  # the estimate alone

"""What if, patches between two prompts: a click in one map chooses the cell in both, and Back goes to the one before."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("lang", "way", "what", "patched"),
    [
        ("en", "Patches between two prompts", "outputs of heads", "patched"),
        ("zh_CN", "两个提示之间的修补", "头的输出", "修补后"),
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

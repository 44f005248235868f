"""Where does the answer come from?: a cell chooses its position, an edge of the evidence is taken out."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


@pytest.mark.sweep
def test_a_cell_chooses_its_position(open_tab) -> None:
    tab = open_tab("/lens?model=induction-by-hand&text=abcdabc&lang=en")
    page = tab.page
    cells = page.get_by_role("gridcell")
    expect(cells).to_have_count(3 * 8)
    cells.nth(2 * 8 + 6).click()  # the last row, position 6
    tab.settled()
    assert "position=6" in page.url
    expect(page.locator(".vf-cells")).to_have_attribute("data-selected", "2,6")


@pytest.mark.sweep
@pytest.mark.parametrize(("lang", "gone"), [("en", "goes from 100.0% to"), ("zh_CN", "从 100.0% 变为")])
def test_an_edge_of_the_evidence_is_taken_out(open_tab, lang: str, gone: str) -> None:
    tab = open_tab(f"/lens?model=induction-by-hand&text=abcdabc&lang={lang}")
    page = tab.page
    rows = page.locator("button.vf-evidence-row")
    expect(rows.first).to_contain_text("L1 H2")
    look = rows.filter(has_text="L0 H1").first
    look.click()
    expect(page.locator(".vf-evidence .vf-readout")).to_contain_text(gone)
    expect(look).to_have_attribute("aria-pressed", "true")
    page.locator(".vf-evidence-box", has_text="L1 H2").click()
    expect(rows.first).to_have_attribute("aria-pressed", "true")

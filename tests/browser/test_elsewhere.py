"""Attention of another program: a file is handed in, its map and its lines are there, in both languages."""

import pytest
from playwright.sync_api import expect

from tests.analysis.test_attention_arrays import npz, weights

pytestmark = pytest.mark.browser


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lang", "show", "layers", "lines", "off", "refused"),
    [
        ("en", "Show", "3 layers of one text", "Lines", "1 of 54 rows do not sum to 1", "weights are from 0 to 1"),
        ("zh_CN", "显示", "一个文本的 3 层", "连线", "54 行中有 1 行的和不是 1", "权重应在 0 到 1 之间"),
    ],
)
def test_a_file_is_handed_in_and_looked_at(
    open_tab, lang: str, show: str, layers: str, lines: str, off: str, refused: str
) -> None:
    tab = open_tab(f"/elsewhere?lang={lang}")
    page = tab.page
    maps = weights(3, 2, 9, 9)
    maps[2, 1, 4] *= 0.5

    def hand_in(content: bytes) -> None:
        tab.choose({"name": "maps.npz", "mimeType": "application/octet-stream", "buffer": content})
        page.get_by_role("button", name=show, exact=True).click()

    hand_in(npz(maps=maps, tokens=["the", "big", "red", "cat", "sat", "on", "a", "mat", "."]))
    page.get_by_role("button", name=layers, exact=True).click()
    readout = page.locator(".vf-readout").first
    expect(readout).to_contain_text("mat")
    expect(page.get_by_text(off)).to_be_visible()
    page.get_by_text(lines, exact=True).click()
    tab.settled()
    expect(page.locator(".vf-lines").first).to_be_visible()
    hand_in(npz(maps=maps * 5))
    expect(page.get_by_text(refused)).to_be_visible()
    expect(page.locator(".vf-readout")).to_have_count(0)

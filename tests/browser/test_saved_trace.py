"""A trace that was saved, drawn from its file as a notebook shows it: cell by cell what the page shows."""

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import FrameLocator, Page, expect

import vizformer as vf
from vizformer.analysis.other_programs.attention_files import read_attention
from vizformer.web.pages.elsewhere import telling_place

pytestmark = pytest.mark.browser

SENTENCES = {
    "zh-en": ("我有一只猫。", "cross"),
    "stories": ("The cat sat on the mat.", "decoder"),
    "cloze": ("the [MASK] sat on the mat .", "encoder"),
}


def cells(view: Page | FrameLocator, page: Page) -> list[str]:
    """What is said of some cells of layer 1, head 2, gone to with the keyboard: first the weights, then the scores."""
    said = []
    view.locator('.vf-tile[data-layer="1"][data-head="2"]').click()
    expect(view.locator(".vf-attention")).to_have_attribute("data-head", "2")
    for numbers in ("weights", "scores"):
        view.locator(f"[data-view={numbers}]").last.click()
        view.locator(".vf-over").focus()
        for key in ("ArrowRight", "Home", *["ArrowUp"] * 9):  # to the first cell, from wherever it begins
            page.keyboard.press(key)
        for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown", "End"):
            page.keyboard.press(key)
            told = view.locator(".vf-readout").inner_text()
            said.append(
                re.sub(r"(query \d+ “[^”]*?) → [^”]*”", r"\1”", told)
            )  # the page says which token a row chooses
    return said


@pytest.mark.sweep
@pytest.mark.parametrize("name", SENTENCES)
def test_a_saved_trace_in_a_notebook_has_the_cells_of_the_page(open_tab, name: str, tmp_path: Path) -> None:
    text, kind = SENTENCES[name]
    vf.load(name).trace(text).save(path := tmp_path / "trace.safetensors", model=name)
    tab = open_tab(f"/attention?model={name}&text={quote(text)}&site={kind}&layer=1&head=2")
    on_the_page = cells(tab.page, tab.page)
    notebook = tab.page.context.new_page()
    notebook.set_content(vf.view(path, kind=kind)._repr_html_())
    expect(notebook.get_by_text(f"{name} · decoder.0" if kind != "encoder" else f"{name} · encoder.0")).to_be_visible()
    assert cells(notebook.frame_locator("iframe"), notebook) == on_the_page
    assert len({*on_the_page}) > 7
    notebook.close()


@pytest.mark.sweep
def test_a_saved_trace_is_handed_in_on_the_page_for_other_programs(open_tab, tmp_path: Path) -> None:
    trace = vf.load("zh-en").trace("我有一只猫。")
    trace.save(path := tmp_path / "trace.safetensors")
    tab = open_tab("/elsewhere")
    tab.choose(path)
    tab.page.get_by_role("button", name="Show", exact=True).click()
    layer, head, query = telling_place(read_attention(path.name, path.read_bytes())["encoder"])
    said = f"query {query} “{trace.tokens['encoder'][query].text}”"
    expect(tab.page.locator(".vf-readout").first).to_contain_text(said)
    weight = trace[f"encoder.{layer}.self"].pattern(head)[query].max()
    expect(tab.page.locator(".vf-readout").first).to_contain_text(f"{weight:.4f}")

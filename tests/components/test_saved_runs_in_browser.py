"""The page that `vizformer page` writes, opened as a file: small, asking nobody, every head, every bar and the proofs."""

import pytest
from click.testing import CliRunner
from playwright.sync_api import Page, expect

from tests.bundled import load
from tests.components.conftest import OpenFile
from vizformer.cli import main
from vizformer.web.catalogue.subject import Subject
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.start import EXAMPLES
from vizformer.web.widgets.whole_model import saved_page

pytestmark = pytest.mark.browser

MOST_BYTES = 3_000_000
CAT, CHINESE, STORY = (text for __, ___, text in EXAMPLES)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("saved") / "page.html"
    result = CliRunner().invoke(main, ["page", str(path)])
    assert result.exit_code == 0, result.output
    assert path.stat().st_size <= MOST_BYTES
    return path.read_text(encoding="utf-8")


def open_run(page: Page, text: str) -> None:
    button = page.get_by_role("button", name=text)
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")


def test_every_head_of_three_runs_is_drawn_and_its_number_is_the_models(open_file: OpenFile, saved: str) -> None:
    page = open_file(saved)
    maps, glass = page.locator(".vf-whole-map"), page.locator(".vf-whole-glass")
    for text, model, count in ((CAT, "zh-en", 36), (CHINESE, "zh-en", 36), (STORY, "stories", 40)):
        open_run(page, text)
        expect(maps).to_have_count(count)
        site = "encoder.1.self" if model == "zh-en" else "decoder.1.self"
        title = "Encoder layer 1, self" if model == "zh-en" else "Decoder layer 1, masked self"
        page.get_by_role("button", name=f"{title}-attention, head 2").click()
        page.locator(".vf-whole-token").nth(3).click()
        weights = load(model).trace(text)[site].pattern(2)[3]
        expect(glass).to_contain_text(f"with weight {float(weights.max()):.3f}")


def test_a_proof_and_a_box_are_opened_without_a_server(open_file: OpenFile, saved: str) -> None:
    page = open_file(saved)
    glass = page.locator(".vf-whole-glass")
    for text, products in ((CAT, 64), (CHINESE, 64), (STORY, 32)):
        open_run(page, text)
        glass.get_by_role("button", name="Prove this number").click()
        expect(glass).to_contain_text(f"{products} products")
        expect(glass).to_contain_text("the same.")
        for box in page.locator(".vf-whole-box").all():
            box.click()
            expect(glass.locator(".vf-whole-inside")).to_contain_text("The model computed the same row")
    expect(page.locator(".vf-whole-link:visible")).to_have_count(0)  # nothing leads to a page that is not there


def test_every_bar_writes_its_token_and_two_ways_lead_back(open_file: OpenFile, saved: str) -> None:
    page = open_file(saved)
    tokens, bars = page.locator(".vf-whole-decoder .vf-whole-token"), page.locator(".vf-whole-candidate")
    said, back = page.get_by_role("status"), page.get_by_role("button", name="Back to the model's own run")
    expect(tokens).to_have_count(len(load("zh-en").trace(CAT).tokens["decoder"]))
    for bar in range(5):
        tokens.nth(1).click()
        token = bars.nth(bar).locator("b").inner_text()
        bars.nth(bar).click()
        expect(tokens).to_have_count(3)
        expect(tokens.last).to_contain_text(token)
        expect(said).to_contain_text("You wrote this token")
        back.click()
    bars.nth(1).click()
    bars.first.click()  # of a row that was written nothing was saved
    expect(said).to_contain_text("Only runs that were saved")
    tokens.nth(1).click()
    bars.nth(2).click()  # of the rows before it all that was
    expect(said).to_contain_text("You wrote this token")
    open_run(page, STORY)
    expect(said).to_have_text("")
    count = len(load("stories").encode(STORY))
    expect(tokens).to_have_count(count)
    bars.nth(2).click()
    expect(tokens).to_have_count(count + 1)
    open_run(page, STORY)
    expect(tokens).to_have_count(count)


def test_it_is_read_in_both_languages_also_on_a_phone(open_file: OpenFile, saved: str) -> None:
    page = open_file(saved, width=400)
    expect(page.get_by_role("heading", level=1)).to_contain_text("in a Transformer")
    open_run(page, CHINESE)
    expect(page.locator(".vf-whole-token").filter(has_text="爱").first).to_have_text("爱 love")
    page.get_by_role("button", name="简体中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(
        f"Transformer 里的“{CHINESE}”。每个图都是真实的计算结果，点哪里都可以展开。"
    )
    expect(page.locator(".vf-whole-token").filter(has_text="爱").first).to_have_text("爱")
    expect(page.locator("footer")).to_contain_text("不向任何服务器请求数据")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_what_a_reader_looks_at_is_saved_with_its_proofs(open_file: OpenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_page, "MOST_BOXES", 0)
    own = Subject(ModelRef("bundled", "stories"), "The </script> went to. " * 8, "")
    page = open_file(saved_page.html([own], first="zh_CN"))
    glass = page.locator(".vf-whole-glass")
    glass.get_by_role("button", name="Prove this number").click()
    expect(glass).to_contain_text("the same.")  # of a text of which the first tokens are drawn
    page.locator(".vf-whole-box").first.click()
    expect(glass).to_contain_text("This page does not hold these numbers")
    page.keyboard.press("Escape")
    page.locator(".vf-whole-candidate").first.click()
    expect(page.get_by_role("status")).to_contain_text("Only runs that were saved")

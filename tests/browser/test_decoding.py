"""The lesson Decoding: generating text in a browser: five of its laboratories are used and a question answered."""

import pytest
from playwright.sync_api import expect

from vizformer import load
from vizformer.analysis import answer_cell
from vizformer.analysis.decoding.teacher_forcing import one_error, right_rows
from vizformer.analysis.decoding.ways import beams
from vizformer.web.frame.progress import QUESTIONS

TEXT = "我有一只猫。"
EXAMPLE = "今天天气"
MOST_NEW = 12  # tokens that the lesson writes


def move(tab, name: str, key: str) -> None:
    """Moves a slider by one step, from the keyboard."""
    slider = tab.page.get_by_role("slider", name=name)
    slider.focus()
    with tab.runs():
        tab.page.keyboard.press(key)
    tab.settled()


def open_part(tab, number: int) -> None:
    with tab.runs():
        tab.page.get_by_test_id("stButtonGroup").filter(has_text="1 · ").first.get_by_role("radio").nth(number).click()
    tab.settled()


@pytest.mark.sweep
def test_every_part_of_the_lesson_answers(open_tab):
    checkpoint = load("zh-en")
    tab = open_tab(f"/decoding?model=zh-en&text={TEXT}", locale="zh-CN")
    main = tab.page.get_by_test_id("stMain")

    trace = checkpoint.trace(TEXT)
    asked = answer_cell(trace, 24)  # part 1: the cell of an answer, with a click
    cells = main.locator(".vf-cells").get_by_role("gridcell")
    columns = asked.weights.shape[1]
    expect(cells).to_have_count(columns**2)
    with tab.runs():
        cells.nth(asked.query * columns + asked.key).click()
    tab.settled()
    with tab.runs():
        main.locator(".st-key-ask-decoding-answer").get_by_role("button", name="看答案").click()
    tab.settled()
    expect(cells.nth(asked.query * columns + asked.key)).to_have_text("0.00")
    expect(main.get_by_test_id("stAlert").filter(has_text="答对了。").first).to_be_visible()
    answered = f"已答 1 题，共 {len(QUESTIONS['decoding'])} 题"
    expect(main.get_by_text(answered).first).to_be_visible()

    open_part(tab, 1)  # one wrong token: another one goes wrong
    rows = right_rows(checkpoint, TEXT, trace)
    expect(main.get_by_text(one_error(checkpoint, TEXT, rows, 1, 0).whole, exact=False).first).to_be_visible()
    move(tab, "出错的词元", "ArrowRight")
    expect(main.get_by_text(one_error(checkpoint, TEXT, rows, 2, 0).whole, exact=False).first).to_be_visible()

    open_part(tab, 2)  # ways of choosing: a wider beam
    move(tab, "束宽", "ArrowRight")
    found = beams(checkpoint, TEXT, MOST_NEW, 4, 0.6)
    row = main.locator(".vf-table tr").filter(has_text="束宽 4，第 4 名")
    expect(row).to_contain_text(found[3].text)
    ways = main.locator(".vf-table").filter(has_text="束宽 4，第 4 名")
    expect(ways.locator("tbody tr")).to_have_count(1 + 4 + 1)  # greedy, four beams, one that is drawn

    open_part(tab, 4)  # the KV cache: a text twice as long
    move(tab, "新词元数 n", "ArrowRight")
    expect(main.locator(".vf-table th").filter(has_text="无缓存，n = 128")).to_be_visible()
    assert "decoding.n" in tab.address

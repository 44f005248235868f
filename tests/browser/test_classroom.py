"""A class in three browsers: the teacher moves, the students see it, and cannot move anybody."""

import re

from playwright.sync_api import expect

PATIENCE = 90_000  # milliseconds: three browsers and a server on one machine
CLASS = re.compile("^(Class|班级)$")


def start(tab) -> str:
    with tab.runs():
        tab.page.get_by_role("button", name=CLASS).click()
    with tab.runs():
        tab.page.get_by_role("button", name="Start a class").click()
    code = tab.page.get_by_test_id("stPopoverBody").get_by_role("heading").inner_text()
    tab.settled()
    tab.page.keyboard.press("Escape")
    tab.settled()
    return code.strip()


def title(tab, name: str) -> None:
    expect(tab.page.get_by_role("heading", level=1, name=name, exact=True)).to_be_visible(timeout=PATIENCE)


def go(tab, name: str) -> None:
    with tab.runs():
        tab.page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True).click()
    tab.settled()


def test_students_follow_let_go_come_back_and_cannot_move_the_class(server, browser, open_tab):
    teacher = open_tab("/attention?text=hello&layer=1", at=server)
    code = start(teacher)
    assert re.fullmatch("[A-Z2-9]{6}", code)
    first = open_tab(f"/?room={code}", at=server)
    second = open_tab("/masks", at=server, locale="zh-CN")
    with second.runs():
        second.page.get_by_role("button", name=CLASS).click()
    second.page.get_by_test_id("stPopoverBody").get_by_role("textbox").fill(code.lower())
    second.page.keyboard.press("Enter")
    title(first, "Attention")
    title(second, "注意力")  # the language stays the student's own
    for tab in (first, second):
        expect(tab.page.locator(".vf-attention .vf-title")).to_have_text(re.compile("1.*0"), timeout=PATIENCE)

    with teacher.runs():
        teacher.page.locator(".vf-attention .vf-switch button[data-view=scores]").click()
    for tab in (first, second):
        expect(tab.page.locator(".vf-attention .vf-switch button[data-view=scores]")).to_have_attribute(
            "aria-checked", "true", timeout=PATIENCE
        )
    go(teacher, "Masks")
    title(first, "Masks")
    title(second, "掩码")

    first.settled()
    with first.runs():
        first.page.get_by_role("button", name="Look around by myself").click()
    go(first, "Positions")
    go(teacher, "Query, key, value")
    title(second, "查询、键、值")
    first.settled()
    title(first, "Positions")
    title(teacher, "Query, key, value")  # a student moves nobody
    with first.runs():
        first.page.get_by_role("button", name="Follow again").click()
    title(first, "Query, key, value")

    with teacher.runs():
        teacher.page.get_by_role("button", name=CLASS).click()
    with teacher.runs():
        teacher.page.get_by_role("button", name="End the class").click()
    expect(first.page.get_by_text("The class is over")).to_be_visible(timeout=PATIENCE)
    expect(second.page.get_by_text("班级已结束")).to_be_visible(timeout=PATIENCE)
    for tab in (first, second):
        tab.problems[:] = [one for one in tab.problems if "404" not in one]  # how a browser hears that it is over


def test_a_code_of_no_class_is_said(open_tab):
    tab = open_tab("/map")
    with tab.runs():
        tab.page.get_by_role("button", name=CLASS).click()
    tab.page.get_by_test_id("stPopoverBody").get_by_role("textbox").fill("zzzzzz")
    with tab.runs():
        tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_text("There is no class with this code.")).to_be_visible()

"""A teacher and two students behind nginx, under the headers of deploy/nginx.conf: nothing that they do is forbidden."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests import nginx, programs
from tests.browser.classes import CLASS, PATIENCE, start, title
from tests.browser.driver import Server, Tab, new_tab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(programs.find(programs.NGINX) is None, reason=programs.way_out(programs.NGINX)),
]
REPORTED = """addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) => {
    console.error("forbidden", violatedDirective, blockedURI, sample);
});"""


@pytest.fixture
def tabs(server: Server, browser: Browser, tmp_path) -> Iterator[list[Tab]]:
    """A teacher, and students of whom one reads Chinese on a small screen."""
    with nginx.before(tmp_path, [server, server]) as (url, _):
        made = [new_tab(browser, url), new_tab(browser, url), new_tab(browser, url, locale="zh-CN", width=700)]
        for tab in made:
            tab.page.context.add_init_script(REPORTED)
        yield made
        for tab in made:
            tab.close()


@pytest.mark.sweep
def test_a_class_does_nothing_that_the_policy_forbids(tabs: list[Tab]) -> None:
    teacher, first, second = tabs
    teacher.goto("/masks?text=hello there")
    policy = teacher.page.evaluate(
        "() => fetch(location.href).then(found => found.headers.get('content-security-policy'))"
    )
    assert "script-src" in policy
    assert "'unsafe-eval'" not in policy
    code = start(teacher)
    first.goto(f"/?room={code}")
    second.goto(f"/?room={code}")
    title(first, "Masks")
    title(second, "掩码")

    # A question: two answers, which the teacher sees counted.
    with teacher.runs():
        teacher.page.get_by_role("button", name="Ask the class").click()
    for student, answer, send in ((first, 0, "Send my answer to the class"), (second, -1, "把我的回答发给班级")):
        box = student.page.locator(".st-key-ask-masks-count")
        expect(box.get_by_role("button", name=send)).to_be_visible(timeout=PATIENCE)
        student.settled()
        with student.runs():
            box.get_by_role("radio").nth(answer).check(force=True)
        with student.runs():
            box.get_by_role("button", name=send).click()
    expect(teacher.page.locator(".vf-answers")).to_contain_text("2 answers of the class", timeout=PATIENCE)

    # Another page, another head.
    teacher.visit("Attention")
    title(first, "Attention")
    title(second, "注意力")
    with teacher.runs():
        teacher.page.locator(".vf-attention .vf-tile[data-layer='1'][data-head='2']").click()
    for student in (first, second):
        expect(student.page.locator(".vf-attention .vf-title")).to_have_text(re.compile("1.*2"), timeout=PATIENCE)

    # The pointer.
    teacher.settled()
    with teacher.runs():
        teacher.page.get_by_role("button", name=CLASS).click()
    with teacher.runs():
        teacher.page.get_by_text("Show the class my pointer").click()
    teacher.page.keyboard.press("Escape")
    teacher.settled()
    teacher.page.locator(".vf-attention .vf-over").hover()
    for student in (first, second):
        expect(student.page.locator(".vf-class-pointer")).to_be_visible(timeout=PATIENCE)

    # At the projector; students read on as they do.
    teacher.settled()
    with teacher.runs():
        teacher.page.locator(".st-key-present-begin button").first.click()
    expect(teacher.page.get_by_text(f"Class {code}")).to_be_visible(timeout=PATIENCE)
    expect(first.page.locator(".st-key-bar-doors")).to_be_visible()
    with teacher.runs():
        teacher.page.keyboard.press("Escape")

    # What a student takes away.
    first.settled()
    with first.runs():
        first.page.get_by_role("button", name="Share", exact=True).click()
    drawn = first.page.get_by_test_id("stPopoverBody").locator("img")
    expect(drawn).to_be_visible()
    assert drawn.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    first.page.keyboard.press("Escape")
    first.settled()
    with first.runs():
        first.page.get_by_role("button", name="Download").first.click()
    offered = first.page.get_by_test_id("stPopoverBody")
    for kind, begins in (("SVG", b"<svg"), ("HTML", b"<!doctype html>")):
        with first.page.expect_download() as download:
            offered.get_by_role("button", name=kind, exact=True).first.click()
        assert download.value.path().read_bytes().startswith(begins)

"""A class in three browsers: the teacher moves, the students see it, and cannot move anybody."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.browser.classes import CLASS, PATIENCE, start, title
from tests.browser.driver import Server, Tab
from tests.bundled import load
from tests.redis_server import start_or_skip


@pytest.mark.sweep
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
    teacher.visit("Masks")
    title(first, "Masks")
    title(second, "掩码")

    first.settled()
    with first.runs():
        first.page.get_by_role("button", name="Explore by myself").click()
    first.visit("Positional encoding")
    teacher.visit("Query, key, value")
    title(second, "查询、键、值")
    first.settled()
    title(first, "Positional encoding")
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


@pytest.mark.sweep
def test_a_class_answers_a_question_and_the_teacher_sees_bars(server, browser, open_tab):
    n = len(load("zh-en").trace("hello there").tokens["decoder"])
    right = str(n * (n - 1) // 2)  # cells that the causal mask blocks
    teacher = open_tab("/masks?text=hello there", at=server)
    code = start(teacher)
    student = open_tab(f"/?room={code}", at=server, locale="zh-CN")
    title(student, "掩码")
    with teacher.runs():
        teacher.page.get_by_role("button", name="Ask the class").click()
    box = student.page.locator(".st-key-ask-masks-count")
    expect(box.get_by_role("button", name="把我的回答发给班级")).to_be_visible(timeout=PATIENCE)
    expect(student.page.get_by_text("老师在向全班提问")).to_be_visible(timeout=PATIENCE)
    expect(box).to_be_in_viewport(timeout=PATIENCE)
    student.settled()
    with student.runs():
        box.get_by_role("radio", name=right, exact=True).check(force=True)
    with student.runs():
        box.get_by_role("button", name="把我的回答发给班级").click()
    expect(box.get_by_role("button", name="已发给班级")).to_be_disabled(timeout=PATIENCE)
    expect(box.get_by_text("答对了")).to_have_count(0)
    answers = teacher.page.locator(".vf-answers")
    expect(answers).to_contain_text("1 answer of the class", timeout=PATIENCE)
    expect(answers.get_by_role("row", name=f"{right} 1")).to_be_visible()
    teacher.page.get_by_role("button", name="Show the class the answer").click()
    expect(box.get_by_text("答对了")).to_be_visible(timeout=PATIENCE)
    expect(answers.locator(".vf-right")).to_have_text(re.compile(right), timeout=PATIENCE)


@pytest.mark.sweep
def test_a_teacher_sees_where_two_students_are_and_what_they_got_wrong_while_they_stay_there(server, browser, open_tab):
    teacher = open_tab("/masks?text=hello there", at=server)
    code = start(teacher)
    students = [open_tab(f"/?room={code}", at=server, locale=locale) for locale in ("en-US", "zh-CN")]
    for student, name in zip(students, ("Masks", "掩码"), strict=True):
        title(student, name)
        student.settled()
    teacher.page.get_by_role("link", name="Where the class is").click()
    title(teacher, "Teach")
    table = teacher.page.locator(".vf-answers")
    expect(table.get_by_role("row", name="5.1 · Six masks")).to_contain_text("2 here", timeout=PATIENCE)
    n = len(load("zh-en").trace("hello there").tokens["decoder"])
    for student, given in zip(students, (n * n, n * (n - 1) // 2), strict=True):  # the whole map, and the right one
        box = student.page.locator(".st-key-ask-masks-count")
        box.get_by_role("radio", name=str(given), exact=True).check(force=True)
        student.settled()
        with student.runs():
            box.get_by_role("button", name=re.compile("Show the answer|看答案")).click()
    row = table.get_by_role("row", name="does the causal mask block")
    expect(row).to_contain_text("1 of 2 wrong", timeout=PATIENCE)
    expect(row).to_contain_text(f"Most often (1): {n * n} is the whole map.")

    student = students[0]
    with student.runs():
        student.page.get_by_role("button", name="Explore by myself").click()
    student.visit("The path")
    expect(table.get_by_role("row", name="The path · The whole model")).to_contain_text("1 here", timeout=PATIENCE)
    path = student.page.locator(".vf-stations")
    path.locator(".vf-stations-next").click()
    wrong = path.locator(".vf-stations-option").last
    wrong.click()
    is_right = "vf-right" in (wrong.get_attribute("class") or "")
    path.locator(".vf-stations-line button").nth(1).click()
    expect(table.get_by_role("row", name="The path · From characters to tokens")).to_contain_text(
        "1 here", timeout=PATIENCE
    )
    expect(table).to_contain_text("0 of 1 wrong" if is_right else "1 of 1 wrong")
    with teacher.runs():
        teacher.page.get_by_role("button", name="On the projector").click()
    expect(table.get_by_role("row", name="5.1 · Six masks")).to_be_in_viewport()
    expect(teacher.page.locator(".st-key-tiles")).to_have_count(0)
    title(students[1], "掩码")  # nobody was taken along

    with students[1].runs():
        students[1].page.locator(".st-key-class-free button").click()
    students[1].visit("The path")
    path = students[1].page.locator(".vf-stations")
    path.locator(".vf-stations-line button").last.click()
    path.locator(".vf-stations-next").click()
    path.locator(".vf-stations-option").first.click()  # at the last station, after which no move tells of it
    expect(table.get_by_role("row", name="of 1 wrong")).to_have_count(2, timeout=PATIENCE)
    teacher.page.get_by_role("link", name="← Masks").click()
    teacher.page.locator(".st-key-slide-next button").click(trial=True)  # nothing lies over it


def point_at(tab: Tab) -> None:
    """Has the class see the teacher's pointer."""
    with tab.runs():
        tab.page.get_by_role("button", name=CLASS).click()
    with tab.runs():
        tab.page.get_by_text("Show the class my pointer").click()
    tab.page.keyboard.press("Escape")
    tab.settled()


RING_IS_OVER = """text => {
    const ring = document.querySelector(".vf-class-pointer");
    const { left, top, width, height } = ring?.getBoundingClientRect() ?? new DOMRect();
    const below = width ? document.elementFromPoint(left + width / 2, top + height / 2) : null;
    return below && below.closest("p, td, a")?.textContent === text;
}"""


@pytest.mark.sweep
def test_students_see_the_teachers_pointer_at_the_same_part_of_a_smaller_screen(server, browser, open_tab):
    teacher = open_tab("/masks?text=hello there", at=server)
    code = start(teacher)
    student = open_tab(f"/?room={code}", at=server, width=700)
    title(student, "Masks")
    point_at(teacher)
    student.settled()
    question = teacher.page.locator(".st-key-ask-masks-count")
    question.scroll_into_view_if_needed()
    area = question.bounding_box()
    ring = student.page.locator(".vf-class-pointer")
    teacher.page.mouse.move(area["x"] + 30, area["y"] + 12)
    teacher.page.mouse.move(area["x"] + 4, area["y"] + 4)  # the corner of the box: in no smaller part of it
    expect(ring).to_be_visible(timeout=PATIENCE)
    student.page.wait_for_function(
        """() => {
            const ring = document.querySelector(".vf-class-pointer").getBoundingClientRect();
            const corner = document.querySelector(".st-key-ask-masks-count").getBoundingClientRect();
            const [x, y] = [ring.left + ring.width / 2 - corner.left, ring.top + ring.height / 2 - corner.top];
            return Math.hypot(x - 4, y - 4) < 12;
        }"""
    )
    with student.runs():
        student.page.get_by_role("button", name="Explore by myself").click()
    expect(ring).to_have_count(0, timeout=PATIENCE)


@pytest.mark.sweep
def test_a_pointer_where_nothing_has_a_name_is_at_the_same_words_and_students_pages_scroll_there(server, open_tab):
    teacher = open_tab("/glossary?dials=glossary.list:reading", at=server)
    code = start(teacher)
    student = open_tab(f"/?room={code}", at=server, width=700)
    title(student, "Glossary")
    expect(student.page.get_by_text("Tutorials and courses")).to_be_visible()
    point_at(teacher)
    student.settled()
    cells = teacher.page.locator(".st-key-page-body td:first-child")
    at = [cells.count() - 1, cells.count() // 2]
    words = [cells.nth(number).text_content() for number in at]

    def point(number: int) -> None:
        cells.nth(at[number]).hover(position={"x": 6, "y": 6})

    point(0)
    ring = student.page.locator(".vf-class-pointer")
    student.page.wait_for_function(RING_IS_OVER, arg=words[0], timeout=PATIENCE)  # (elements out of sight are none)
    point(1)
    student.page.wait_for_function(RING_IS_OVER, arg=words[1], timeout=PATIENCE)

    # A student who scrolls is left alone, and the ring stays with its words.
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    student.page.mouse.move(350, 450)
    student.page.mouse.wheel(0, -100_000)
    student.page.wait_for_function(f"() => {scrolled} === 0", timeout=PATIENCE)
    before = ring.evaluate("ring => ring.style.transform")
    point(0)
    student.page.wait_for_function(
        "before => document.querySelector('.vf-class-pointer').style.transform !== before", arg=before, timeout=PATIENCE
    )
    student.painted()
    assert student.page.evaluate(scrolled) == 0
    expect(ring).not_to_be_in_viewport()

    # The teacher's page goes by below a pointer that stands still: what is below it now is what is pointed at.
    with teacher.page.expect_request(re.compile("/pointer$")):
        teacher.page.evaluate(
            "document.querySelector('[data-testid=stMain]').scrollTo({ top: 0, behavior: 'instant' })"
        )


@pytest.mark.sweep
def test_a_teacher_sees_that_a_class_runs_and_how_many_follow(server, open_tab):
    teacher = open_tab("/masks", at=server)
    code = start(teacher)
    said = teacher.page.get_by_text(f"Class {code}:")
    expect(said).to_have_text(f"Class {code}: 0 following", timeout=PATIENCE)
    students = [open_tab(f"/?room={code}", at=server) for __ in range(2)]
    expect(said).to_have_text(f"Class {code}: 2 following", timeout=PATIENCE)
    title(students[0], "Masks")
    students[0].settled()
    with students[0].runs():
        students[0].page.get_by_role("button", name="Leave the class").click()
    expect(said).to_have_text(f"Class {code}: 1 following", timeout=PATIENCE)
    with teacher.runs():
        teacher.page.locator(".st-key-present-begin button").first.click()
    expect(said).to_have_text(f"Class {code}: 1 following", timeout=PATIENCE)
    expect(said).to_be_in_viewport()


@pytest.mark.sweep
def test_a_part_that_moves_away_below_the_pointer_is_not_told_as_the_pointers_place(server, open_tab):
    teacher = open_tab("/masks", at=server)
    start(teacher)
    point_at(teacher)
    with teacher.page.expect_response(re.compile("/pointer$")) as told:
        teacher.page.evaluate(
            """() => {
                const button = document.querySelector(".st-key-present-begin");
                const { left, top } = button.getBoundingClientRect();
                const there = { clientX: left + 4, clientY: top + 4, bubbles: true };
                button.dispatchEvent(new PointerEvent("pointermove", there));
                const away = new CSSStyleSheet();  // (what is drawn again keeps it, unlike a style of the button)
                // Without a transition: where no frame was drawn since, one would still be at its beginning.
                away.replaceSync(
                    ".st-key-present-begin { transform: translateY(600px); transition: none !important }"
                );
                document.adoptedStyleSheets = [...document.adoptedStyleSheets, away];
            }"""
        )
    assert told.value.status == 204
    assert "present-begin" not in told.value.request.post_data


@pytest.mark.sweep
def test_pages_loaded_again_lead_and_follow_on(server, browser, open_tab):
    teacher = open_tab("/masks", at=server)
    code = start(teacher)
    student = open_tab(f"/?room={code}", at=server)
    title(student, "Masks")
    for tab in (teacher, student):
        tab.page.reload()
        tab.settled()
    expect(student.page.get_by_text(f"Class {code}: you follow the teacher.")).to_be_visible(timeout=PATIENCE)
    teacher.visit("Positional encoding")
    title(student, "Positional encoding")
    with student.runs():
        student.page.get_by_role("button", name="Leave the class").click()
    expect(student.page.get_by_text(f"Class {code}")).to_have_count(0, timeout=PATIENCE)
    student.page.reload()
    student.settled()
    expect(student.page.get_by_text(f"Class {code}")).to_have_count(0)


@pytest.mark.sweep
def test_a_teacher_and_students_in_tabs_of_one_browser_keep_their_roles_when_loaded_again(server, browser, open_tab):
    teacher = open_tab("/masks", at=server)
    code = start(teacher)
    students = [Tab(teacher.page.context.new_page(), teacher.home) for __ in range(2)]
    for student in students:
        student.goto(f"/?room={code}")
        title(student, "Masks")
    for tab in (students[0], teacher):
        tab.page.reload()
        tab.settled()
    teacher.visit("Positional encoding")
    for student in students:
        title(student, "Positional encoding")
        assert f"room={code}" in student.address
    assert "room=" not in teacher.address
    with students[0].runs():
        students[0].page.get_by_role("button", name="Share", exact=True).click()
    link = students[0].page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
    expect(link).to_contain_text("/positions")
    expect(link).not_to_contain_text("room=")
    students[0].page.keyboard.press("Escape")
    with students[0].runs():
        students[0].page.get_by_role("button", name="Leave the class").click()
    students[0].settled()
    assert "room=" not in students[0].address
    students[0].page.get_by_role("button", name=CLASS).click()
    students[0].page.get_by_test_id("stPopoverBody").get_by_role("textbox").fill(code)
    students[0].page.keyboard.press("Enter")
    expect(students[0].page.get_by_text(f"Class {code}: you follow the teacher.")).to_be_visible(timeout=PATIENCE)
    students[0].page.keyboard.press("Escape")
    students[0].settled()
    assert f"room={code}" in students[0].address  # of a code that was typed, too
    with students[0].runs():
        students[0].page.get_by_role("button", name="Leave the class").click()
    students[0].settled()
    assert "room=" not in students[0].address
    teacher.page.reload()  # what one student does is nothing to the teacher's cookie
    teacher.settled()
    teacher.visit("Masks")
    title(students[1], "Masks")
    title(students[0], "Positional encoding")
    for tab in students:
        tab.check()


@pytest.mark.sweep
def test_a_class_goes_on_over_two_servers_that_share_a_redis(browser, open_tab, tmp_path):
    redis = start_or_skip(tmp_path)
    env = {**os.environ, "VIZFORMER_REDIS_URL": redis.url}
    try:
        with Server(env=env, log=tmp_path / "one.txt") as one, Server(env=env, log=tmp_path / "two.txt") as two:
            teacher = open_tab("/masks?text=hello there", at=one)
            code = start(teacher)
            student = open_tab(f"/?room={code}", at=two)
            title(student, "Masks")
            teacher.visit("Positional encoding")
            title(student, "Positional encoding")
            redis.kill()
            redis.start()
            teacher.visit("Masks")
            title(student, "Masks")
            expect(student.page.get_by_text(f"Class {code}: you follow the teacher.")).to_be_visible(timeout=PATIENCE)
            for tab in (teacher, student):
                tab.problems[:] = [said for said in tab.problems if "status of" not in said]  # while there was no Redis
                tab.page.close()
    finally:
        redis.kill()


def test_a_code_of_no_class_is_said(open_tab):
    tab = open_tab("/map")
    with tab.runs():
        tab.page.get_by_role("button", name=CLASS).click()
    tab.page.get_by_test_id("stPopoverBody").get_by_role("textbox").fill("zzzzzz")
    with tab.runs():
        tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_text("There is no class with this code.")).to_be_visible()

"""The frame in a browser: language, the link through every way of moving around, small screens, the keyboard."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect


def heading(tab) -> str:
    return tab.page.get_by_role("heading", level=1).inner_text()


def link(tab) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(tab.page.url).query, True).items()}


def switch(tab, name: str) -> None:
    with tab.runs():
        tab.page.get_by_role("button", name=name, exact=True).click()


@pytest.mark.sweep
def test_the_browsers_language(open_tab):
    assert heading(open_tab("/qkv", locale="de-DE")) == "Query, key, value"
    chinese = open_tab("/qkv", locale="zh-CN")
    assert heading(chinese) == "查询、键、值"
    assert link(chinese) == {}
    expect(chinese.page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(chinese.page.get_by_role("button", name="English", exact=True)).to_be_visible()


@pytest.mark.sweep
def test_the_links_language_comes_first(open_tab):
    assert heading(open_tab("/qkv?lang=zh_CN")) == "查询、键、值"
    assert heading(open_tab("/qkv?lang=en", locale="zh-CN")) == "Query, key, value"


@pytest.mark.sweep
def test_the_switch_by_pointer_and_by_keyboard_keeps_the_rest_of_the_link(open_tab):
    tab = open_tab("/qkv?text=hello&head=2&layer=1")
    switch(tab, "简体中文")
    assert heading(tab) == "查询、键、值"
    assert link(tab) == {"text": "hello", "head": "2", "layer": "1", "lang": "zh_CN"}
    assert "教学" in tab.page.locator(".st-key-bar-doors").inner_text()
    assert tab.page.title() == "查询、键、值 · VizFormer"
    tab.page.get_by_role("button", name="English", exact=True).focus()
    with tab.runs():
        tab.page.keyboard.press("Space")
    tab.settled()
    assert heading(tab) == "Query, key, value"
    expect(tab.page.locator("html")).to_have_attribute("lang", "en")


@pytest.mark.sweep
def test_the_view_survives_pages_back_and_reload(open_tab):
    tab = open_tab("/qkv?text=hello&head=2")
    tab.visit("Explore")
    assert heading(tab) == "Explore"
    assert link(tab) == {"text": "hello", "head": "2"}
    with tab.runs():
        tab.page.go_back()  # one press: the navigation and the link are one entry of the history
    tab.settled()
    assert tab.address == "/qkv?text=hello&head=2"
    assert heading(tab) == "Query, key, value"
    tab.visit("Attention")
    tab.visit("Query, key, value")
    assert link(tab) == {"text": "hello", "head": "2"}
    switch(tab, "简体中文")
    with tab.runs():
        tab.page.go_back()
    tab.settled()
    assert heading(tab) == "Query, key, value"
    assert link(tab) == {"text": "hello", "head": "2"}
    with tab.runs():
        tab.page.reload()
    tab.settled()
    assert heading(tab) == "Query, key, value"
    assert link(tab) == {"text": "hello", "head": "2"}


@pytest.mark.sweep
def test_nonsense_in_the_link(open_tab):
    tab = open_tab("/qkv?text=hello&head=banana&site=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&lang=xx")
    notices = tab.page.get_by_test_id("stAlert").filter(has_text="The link sets")
    expect(notices).to_have_count(3)
    said = "\n".join(notices.all_inner_texts()).replace("\u2060", "")
    assert (
        "The link sets “head” to “banana”, but it must be a whole number, 0 or above. The page shows “0” instead."
        in said
    )
    assert "“attention” to “<img src=x onerror=alert(1)>”" in said
    assert tab.page.locator("img[src='x']").count() == 0
    assert link(tab) == {"text": "hello"}


BACKGROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(16, 22, 29)"}


def change_theme(tab, theme: str) -> None:
    tab.page.emulate_media(color_scheme=theme)
    expect(tab.page.locator(".stApp")).to_have_css("background-color", BACKGROUND[theme])


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(("locale", "themes"), [("en-US", ("light", "dark")), ("zh-CN", ("dark", "light"))])
def test_nothing_is_cut_off_on_a_phone(open_tab, locale, themes):
    tab = open_tab("/qkv", locale=locale, theme=themes[0], width=400, height=800)
    for theme in themes:  # the second one comes while the page is open
        change_theme(tab, theme)
        tab.painted()
        assert tab.page.evaluate("document.scrollingElement.scrollWidth") <= 400
    tab.settled()
    expect(tab.page.locator(".st-key-bar-doors")).to_be_hidden()
    tab.page.locator(".st-key-bar-fold label").click()
    other = "简体中文" if locale == "en-US" else "English"
    expect(tab.page.get_by_role("button", name=other, exact=True)).to_be_in_viewport()
    assert tab.page.evaluate("document.scrollingElement.scrollWidth") <= 400
    tab.page.locator(".st-key-bar-doors").get_by_role("link").first.click()
    expect(tab.page.locator(".st-key-tiles")).to_be_visible()
    expect(tab.page.locator(".st-key-bar-doors")).to_be_hidden()  # another page begins with it folded


@pytest.mark.parametrize(("locale", "text"), [("en-US", "The cat sat."), ("zh-CN", "我爱北京的春天。")])
@pytest.mark.sweep
def test_the_menu_of_a_phone_folds_when_a_sentence_was_typed(open_tab, locale, text):
    tab = open_tab("/attention?model=zh-en", locale=locale, width=400)
    tab.page.locator(".st-key-bar-fold label").click()
    box = tab.page.locator(".st-key-bar-boxes").get_by_role("textbox").first
    box.fill(text)
    with tab.runs():
        box.press("Enter")
    expect(box).to_be_hidden()
    expect(tab.page.locator(".st-key-bar-fold")).to_contain_text(text)


@pytest.mark.parametrize(
    ("address", "locale", "words"),
    [
        ("/nowhere", "en-US", "There is no page"),
        ("/nowhere/at/all", "zh-CN", "没有页面"),
        ("/没有?model=zh-en", "en-US", "There is no page"),
        ("/*no*[page](/masks)", "zh-CN", "没有页面"),
    ],
)
@pytest.mark.sample(2)
def test_an_address_that_is_no_page_shows_the_first_one_and_says_so(open_tab, address, locale, words):
    tab = open_tab(address, locale=locale)
    notice = tab.page.locator("[data-testid=stAlert]")
    expect(notice).to_contain_text(f"{words} {address[1:].removesuffix('?model=zh-en')}")
    expect(notice.get_by_role("link")).to_have_count(0)
    expect(tab.page.locator(".st-key-bar-doors").get_by_role("link")).to_have_count(4)
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    assert "missing" not in tab.page.url


# The contrast of every text with what is behind it, after WCAG 2; normal text needs 4.5.
READABLE = """() => {
    const channel = v => v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
    const rgba = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const under = element => {
        for (let e = element; e; e = e.parentElement) {
            const colour = rgba(getComputedStyle(e).backgroundColor);
            if (colour.length < 4 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    let seen = 0;
    for (const element of document.querySelectorAll("h1, h2, p, label, a, button")) {
        if (!element.checkVisibility() || !element.innerText?.trim() || element.closest(":disabled")) continue;
        const below = under(element), ink = rgba(getComputedStyle(element).color), alpha = ink[3] ?? 1;
        const mixed = [0, 1, 2].map(i => ink[i] * alpha + below[i] * (1 - alpha));
        const [low, high] = [light(mixed), light(below)].sort((a, b) => a - b);
        seen += 1;
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) found.push(element.innerText.trim().slice(0, 40) + ": " + ratio.toFixed(2));
    }
    return [seen, found];
}"""


@pytest.mark.sweep
def test_texts_can_be_read(open_tab):
    # A part without sliders: their values stand above the thumb, but within it in the document.
    tab = open_tab("/qkv?head=banana&part=arithmetic")
    for theme in BACKGROUND:
        change_theme(tab, theme)
        tab.settled(2)
        seen, found = tab.page.evaluate(READABLE)
        assert found == [], theme
        assert seen > 20


def test_the_bar_and_the_title_take_little_room_and_stay(open_tab):
    tab = open_tab("/attention")
    tab.settled()
    bar, title, body = (tab.page.locator(f".st-key-{name}") for name in ("bar", "page-head", "page-body"))
    assert bar.bounding_box()["height"] == 48
    assert title.bounding_box()["height"] <= 44
    assert body.bounding_box()["y"] <= 120
    tab.page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 500)")
    tab.painted()
    assert bar.bounding_box()["y"] == 0


def test_the_keyboard_searches_and_goes_past_the_bar(open_tab):
    tab = open_tab("/attention?text=hello")
    tab.settled()
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("加性掩码")
    tab.page.get_by_role("option", name="additive mask · 加性掩码 (Glossary)").wait_for()
    tab.page.keyboard.press("ArrowDown")
    with tab.runs():
        tab.page.keyboard.press("Enter")
    tab.settled()
    assert heading(tab) == "Glossary"
    assert link(tab) == {"text": "hello"}
    tab.page.keyboard.press("Tab")  # from here on the keyboard leads, and what it is on is seen
    door = tab.page.locator(".st-key-bar-doors").get_by_role("link").first
    door.focus()
    expect(door).to_have_css("outline-width", "3px")
    expect(door).to_have_css("outline-style", "solid")


@pytest.mark.parametrize(("locale", "words"), [("en-US", "Skip to the page"), ("zh-CN", "跳到页面内容")])
@pytest.mark.sample(1)
def test_the_first_stop_of_the_keyboard_leads_past_the_bar(open_tab, locale, words):
    tab = open_tab("/attention?text=hello", locale=locale)
    tab.settled()
    tab.page.keyboard.press("Tab")
    skip = tab.page.locator("a[href^='#'] >> visible=true").filter(has_text=re.compile("Skip|跳到"))
    expect(skip).to_have_count(1)
    expect(skip).to_be_focused()
    expect(skip).to_have_text(words)
    expect(skip).to_be_in_viewport()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".st-key-page-body")).to_be_focused()
    assert link(tab) == {"text": "hello"}


@pytest.mark.sweep
def test_a_tap_right_after_typing_goes_to_the_page_with_what_was_typed(open_tab):
    tab = open_tab("/explore?model=zh-en&text=hello")
    tab.visit("Attention")
    tab.page.get_by_label("Sentence", exact=True).fill("我有一只狗。")
    tab.page.locator(".st-key-bar-doors").get_by_role("link", name="Teach").click()
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Teach")
    tab.settled()
    assert heading(tab) == "Teach"
    assert link(tab)["text"] == "我有一只狗。"


@pytest.mark.sweep
def test_a_click_with_shift_opens_another_window_right_after_typing_too(open_tab):
    tab = open_tab("/attention?model=zh-en&text=hello")
    tab.settled()
    door = tab.page.locator(".st-key-bar-doors").get_by_role("link", name="Teach")
    tab.page.get_by_label("Sentence", exact=True).fill("我有一只狗。")
    with tab.page.context.expect_page() as opened:
        door.click(modifiers=["Shift"])
    opened.value.wait_for_url("**/teach?*")
    assert "text=hello" in opened.value.url
    opened.value.close()
    expect(door).to_have_attribute("href", "teach")
    tab.settled()
    assert heading(tab) == "Attention"


@pytest.mark.sweep
def test_choices_in_two_rows_have_a_border_on_every_side(open_tab):
    tab = open_tab("/map?part=rnn&model=zh-en", width=400)
    tab.settled()
    choices = tab.page.get_by_role("radiogroup").nth(1).get_by_role("radio")
    tops = [choice.bounding_box()["y"] for choice in choices.all()]
    first = next(at for at, top in enumerate(tops) if top > tops[0])
    assert first >= 2
    choices.nth(first - 1).click()  # of the next one, which begins a row, Streamlit takes the left border away
    tab.settled()
    expect(choices.nth(first - 1)).to_be_checked()
    expect(choices.nth(first)).to_have_css("border-left", "1px solid rgb(197, 206, 216)")


@pytest.mark.parametrize(
    ("address", "width", "above"),
    [
        ("/attention?model=zh-en", 400, ".st-key-page-views"),
        ("/attention?model=nowhere&text=我有一只猫。", 1280, "[data-testid=stAlert]"),
    ],
)
@pytest.mark.sample(1)
def test_what_the_sentence_means_covers_nothing(open_tab, address, width, above):
    tab = open_tab(address, width=width)
    tab.settled()
    other = tab.page.locator(above).bounding_box()
    assert tab.page.locator(".st-key-gloss").bounding_box()["y"] >= other["y"] + other["height"] + 8


@pytest.mark.sweep
def test_the_notice_of_another_language_is_one_box_on_a_phone(open_tab):
    tab = open_tab("/attention?model=zh-en&text=фонарь+погас", width=400, height=800)
    tab.settled()
    box = tab.page.locator(".st-key-other-language")
    expect(box.get_by_test_id("stAlert")).to_contain_text(
        "This model reads Chinese and English. Your text is in another script"
    )
    expect(box.get_by_role("button", name="Use the sentence “I have a cat.”")).to_be_visible()
    assert box.bounding_box()["height"] <= 160
    assert tab.page.locator(".vf-attention").bounding_box()["y"] < 720


def test_the_notice_of_another_language_leaves_the_picture_in_sight(open_tab):
    tab = open_tab("/attention?model=zh-en&text=фонарь+погас", height=800)
    tab.settled()
    way = tab.page.get_by_role("button", name="Use the sentence “I have a cat.”")
    assert way.bounding_box()["y"] < tab.page.get_by_test_id("stAlert").bounding_box()["y"] + 60
    assert tab.page.locator(".vf-attention").bounding_box()["y"] < 400

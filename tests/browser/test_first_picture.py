"""The picture that the first page holds before the app is there: where it lies, how it looks, and that it goes."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from vizformer.web.frame import first_picture

PAINTED = """() => {
  const picture = document.getElementById("first-picture");
  const whole = picture?.shadowRoot.querySelector(".vf-whole");
  if (!whole) return null;
  const { x, y, width, height } = whole.getBoundingClientRect();
  return { x, y, width, height, ground: getComputedStyle(picture).backgroundColor };
}"""
LIVE = """() => {
  const live = [...document.querySelectorAll(".st-key-picture *")].find((one) => one.shadowRoot).shadowRoot;
  const { x, y, width, height } = live.querySelector(".vf-whole").getBoundingClientRect();
  return { x, y, width, height };
}"""


def held(tab, path="/"):
    """Opens the first page, whose app does not begin yet; returns what lets it go on."""
    waiting, free = [], []
    tab.page.route("**/static/js/index.*.js", lambda route: route.continue_() if free else waiting.append(route))
    tab.page.goto(tab.home + path, wait_until="commit")
    tab.page.locator("#first-picture h1").wait_for(state="attached")

    def let_go() -> None:
        free.append(True)
        for route in waiting:
            route.continue_()

    return let_go


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("width", "locale", "theme"), [(1280, "en-US", "light"), (400, "zh-CN", "dark"), (800, "en-US", "dark")]
)
def test_it_lies_where_the_live_one_comes_and_goes_when_that_is_there(open_tab, width, locale, theme):
    tab = open_tab(None, width=width, locale=locale, theme=theme)
    let_go = held(tab)
    painted = tab.page.evaluate(PAINTED)
    assert painted is not None
    assert painted.pop("ground") == ("rgb(16, 22, 29)" if theme == "dark" else "rgb(255, 255, 255)")
    expect(tab.page.locator("#root")).to_have_css("opacity", "0")
    expect(tab.page.get_by_role("heading")).to_have_count(0)
    tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("() => document.activeElement.closest('#first-picture')") is None
    with tab.runs():
        let_go()
    expect(tab.page.locator("#first-picture")).to_have_count(0)
    expect(tab.page.locator("#root")).to_have_css("opacity", "1")
    assert tab.page.evaluate(LIVE) == pytest.approx(painted, abs=1)


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_on_a_phone_the_next_token_is_above_the_fold(open_tab, locale):
    tab = open_tab("/", width=400, height=800, locale=locale)
    bars = tab.page.locator(".vf-whole-candidate:visible")
    expect(bars).to_have_count(4)
    last = bars.last.bounding_box()
    assert last["y"] + last["height"] <= 800


@pytest.mark.sweep
def test_a_link_that_says_anything_has_no_picture_and_its_page_comes_whole(open_tab):
    for path in ("/?text=%3Cscript%3Ealert(1)%3C/script%3E", "/masks?part=leak"):
        tab = open_tab(None)
        let_go = held(tab, path)
        assert tab.page.evaluate(PAINTED) is None
        assert tab.page.evaluate(
            "() => document.getElementById('first-picture').shadowRoot.querySelector('h1').textContent"
        )
        with tab.runs():
            let_go()
        expect(tab.page.get_by_role("heading", level=1)).to_be_visible()


def test_it_follows_the_theme_that_was_chosen_in_the_app(open_tab):
    tab = open_tab(None, theme="light")
    tab.page.add_init_script("localStorage.setItem('stActiveTheme-/-v2', JSON.stringify('Dark'))")
    let_go = held(tab)
    assert tab.page.evaluate(PAINTED)["ground"] == "rgb(16, 22, 29)"
    let_go()


def test_it_goes_after_a_while_where_the_app_never_comes(open_tab):
    tab = open_tab(None)
    tab.page.clock.install()
    let_go = held(tab)
    assert tab.page.evaluate(PAINTED) is not None
    tab.page.clock.run_for(int(re.search(r"LONGEST = data \? (\d+)", first_picture.script())[1]) + 100)
    expect(tab.page.locator("#first-picture")).to_have_count(0)
    expect(tab.page.locator("#root")).to_have_css("opacity", "1")
    let_go()


def test_without_scripts_it_covers_nothing(browser, server):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url)
    expect(page.locator("#first-picture")).to_be_hidden()
    context.close()


@pytest.mark.parametrize("path", ["/", "/masks?part=leak", "/masks?slide=words"])
@pytest.mark.sample(1)
def test_a_page_connects_without_asking_where_the_server_is(open_tab, path):
    tab = open_tab(None)
    asked = []
    tab.page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    tab.page.route("**/_stcore/health", lambda route: asked.append("held"))  # which is never answered
    tab.goto(path)
    expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
    assert "held" in asked
    assert [path for path in asked if "/_stcore/" in path and not path.startswith("/_stcore/")] == []


@pytest.mark.sweep
@pytest.mark.parametrize("path", ["/heads?part=split", "/blanks"])
def test_a_figure_waits_for_its_script_as_an_image_and_holds_up_nothing(open_tab, path):
    tab, waiting, whole = open_tab(None), [], "**/static/js/PlotlyChart.*.js?whole"
    tab.page.route(whole, lambda route: waiting.append(route))
    with tab.page.expect_request(whole):
        tab.page.goto(tab.home + path, wait_until="commit")
    chart, image = tab.page.locator(".js-plotly-plot").first, tab.page.locator(".vf-stand-in").first
    expect(tab.page.locator("#first-picture")).to_have_count(0)
    assert not chart.count()
    assert image.evaluate("(one) => one.decode().then(() => one.naturalWidth)") > 300
    place = image.bounding_box()
    for route in waiting:
        route.continue_()
    expect(chart.locator(".main-svg").first).to_be_attached()
    assert chart.bounding_box() == pytest.approx(place, abs=1)
    image.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    corner = image.bounding_box()
    seen = tab.page.evaluate("({ x, y }) => document.elementFromPoint(x + 5, y + 5).className", corner)
    assert "vf-stand-in" not in str(seen)
    expect(chart).to_have_css("background-color", "rgb(255, 255, 255)")

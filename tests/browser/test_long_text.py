"""A longer text: taken from a file into the box, read, carried by the link, in both languages."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

STORY = "Lily saw a cat in the park. The cat was small and red, and it sat under a big tree. " * 14


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lang", "title", "read", "refused"),
    [
        ("en", "A longer text", "Read this text", "is no text in UTF-8"),
        ("zh_CN", "较长的文本", "读入这段文本", "不是 UTF-8"),
    ],
)
def test_a_text_file_is_read_and_the_link_holds_all_of_it(
    open_tab, lang: str, title: str, read: str, refused: str
) -> None:
    tab = open_tab(f"/attention?model=stories&text=A+cat.&lang={lang}")
    page = tab.page
    page.get_by_role("button", name="⤢").first.click()
    box = page.get_by_role("dialog", name=title)
    files = box.locator("input[type=file]")
    files.set_input_files({"name": "picture.txt", "mimeType": "text/plain", "buffer": b"\x89PNG\x00\xff\xff" * 9})
    expect(box.get_by_text(refused)).to_be_visible()
    files.set_input_files({"name": "story.txt", "mimeType": "text/plain", "buffer": STORY.encode("utf-8-sig")})
    expect(box.locator("textarea")).to_have_value(STORY)
    expect(box.get_by_text(refused)).to_have_count(0)
    box.get_by_role("button", name=read).click()
    expect(box).to_have_count(0)
    tab.settled()
    readout = page.locator(".vf-readout").first
    expect(readout).to_contain_text("tree")
    assert STORY[:20] not in page.url  # compressed
    sentence = readout.inner_text()
    tab.goto(tab.address)
    tab.settled()
    expect(page.locator(".st-key-bar").get_by_test_id("stTextInput").locator("input").first).to_have_value(STORY)
    expect(readout).to_have_text(sentence)


@pytest.mark.sweep
@pytest.mark.sample(1)
@pytest.mark.parametrize("picture", ["map", "text"])
def test_another_head_of_a_long_text_comes_without_the_page_and_again_after_the_server_forgot_it(
    open_tab, picture: str
) -> None:
    tab = open_tab(f"/attention?model=stories&picture={picture}&text={STORY[:1100].replace(' ', '+')}")
    page = tab.page
    tab.settled()
    view = page.locator(".vf-attention" if picture == "map" else ".vf-reading").first
    readout = view.locator(".vf-readout")
    expect(readout).to_contain_text("attends" if picture == "map" else "most")
    before, asked = readout.inner_text(), list[str]()

    def forgotten(route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=410)
        else:
            route.continue_()

    page.route("**/vizformer-heads/*/1/3", forgotten)
    if picture == "map":
        expect(view.locator(".vf-tile canvas")).to_have_count(view.locator(".vf-tile").count())
        # Without a pointer: one that passes over the small map asks for its head too (see the next test).
        view.locator('.vf-tile[data-layer="1"][data-head="3"]').dispatch_event("click")
    else:
        view.locator("select").nth(0).select_option("1")
        view.locator("select").nth(1).select_option("3")
    expect(readout).not_to_have_text(before)
    expect(readout).to_contain_text("attends" if picture == "map" else "most")
    assert len(asked) == 2
    assert all("410" in problem for problem in tab.problems)  # which the browser reports, as it should
    tab.problems.clear()


def test_a_head_is_fetched_while_the_pointer_rests_on_its_small_map(open_tab) -> None:
    tab = open_tab(f"/attention?model=stories&text={STORY[:1100].replace(' ', '+')}")
    tab.settled()
    title = tab.page.locator(".vf-attention .vf-title").inner_text()
    with tab.page.expect_response("**/vizformer-heads/*/2/5") as answer:
        tab.page.locator('.vf-attention .vf-tile[data-layer="2"][data-head="5"]').hover()
    assert answer.value.status == 200
    expect(tab.page.locator(".vf-attention .vf-title")).to_have_text(title)  # it is not chosen yet


@pytest.mark.sweep
def test_the_small_maps_are_asked_for_once_the_chosen_head_is_painted(open_tab) -> None:
    tab = open_tab(None)
    tab.goto("/attention?model=stories&text=A+cat.")
    page = tab.page
    page.add_init_script("""
      const now = performance.now.bind(performance);
      let later = 0;
      performance.now = () => now() + (later += 15);  // a turn ends after one row: the map takes many of them
      const ask = window.fetch;
      window.asked = [];
      const all = (name, room) => [...room.querySelectorAll("*")]
        .flatMap((one) => [...(one.matches(name) ? [one] : []), ...(one.shadowRoot ? all(name, one.shadowRoot) : [])]);
      window.fetch = (address, ...how) => {
        const [, layer] = String(address).match(/vizformer-heads\\/[^/]+\\/(\\d+)$/) ?? [];
        if (layer) window.asked.push([layer, all(".vf-attention .vf-readout", document)[0].dataset.value !== ""]);
        return ask(address, ...how);
      };
    """)
    tab.goto(f"/attention?model=stories&text={STORY[:1100].replace(' ', '+')}")
    tiles = page.locator(".vf-attention .vf-tile")
    expect(page.locator(".vf-attention .vf-readout")).to_contain_text("attends")
    expect(tiles.locator("canvas")).to_have_count(tiles.count())
    asked = page.evaluate("window.asked")
    assert len(asked) > 1
    assert all(painted for _layer, painted in asked), asked

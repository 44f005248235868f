"""The walk in Chromium: it plays, stops, steps and is dragged; what is written on it is what came."""

import pytest
from playwright.sync_api import Page, expect

from tests.components.conftest import OpenFile
from tests.components.test_walkthrough import KINDS, walk
from vizformer.components import walkthrough
from vizformer.components.walkthrough import Scene

pytestmark = pytest.mark.browser

WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def root(page: Page):
    return page.locator(".vf-walkthrough")


def written(page: Page) -> list[str]:
    """What has been written on the canvas since this was asked last."""
    texts: list[str] = page.evaluate("() => window.written.splice(0)")
    return texts


def step_to(page: Page, scene: str) -> list[str]:
    written(page)
    page.locator(".vf-chapter").nth(KINDS.index(scene)).click()
    expect(root(page)).to_have_attribute("data-scene", scene)
    return written(page)


def test_a_file_stands_still_and_shows_the_first_scene_whole(open_file: OpenFile) -> None:
    page = open_file(walkthrough.to_html(walk()))
    expect(root(page)).to_have_attribute("data-playing", "false")
    expect(root(page)).to_have_attribute("data-scene", "characters")
    expect(root(page)).to_have_attribute("data-share", "1.00")
    assert written(page)[-11:] == ["我", "有", *"</script>"]
    expect(page.locator(".vf-walk-link")).to_be_hidden()  # it would lead nowhere


def test_scenes_show_what_came(open_file: OpenFile) -> None:
    given = walk()
    page = open_file(walkthrough.to_html(given))
    for kind in KINDS:
        step_to(page, kind)
        expect(page.locator(".vf-walk-caption span")).to_have_text(f"The caption of {kind}.")
        expect(page.locator(".vf-title")).to_have_text(f"{KINDS.index(kind) + 1} · {kind.title()}")
    assert {"number 7", "number 2"} <= set(step_to(page, "tokens"))
    weights = {f"{weight:.3f}" for weight in given.attention.weights[1] if weight}
    assert weights | {"×"} <= set(step_to(page, "attention"))
    assert {f"{weight:.3f}" for weight in given.cross.weights[2] if weight} <= set(step_to(page, "cross"))
    assert {"cat", "70.0%", "20.0%", "<0.1%"} <= set(step_to(page, "next"))
    assert {"a → cat", "90.0%", "80.0%"} <= set(step_to(page, "written"))
    assert {"length 1.00 · cos 1.00", "length 2.00 · cos 0.50"} <= set(step_to(page, "layers"))


def test_a_pointer_reads_the_numbers_of_the_picture(open_file: OpenFile) -> None:
    given = walk()
    page = open_file(walkthrough.to_html(given))
    step_to(page, "residual")
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 40)  # the first number of the first strip
    value = f"{given.sublayers.cells[0, 0]:.2f}".replace("-", "−")
    expect(page.locator(".vf-walk-hover")).to_have_text(f"before: number 0 of the row is {value}")
    step_to(page, "vectors")
    expect(page.locator(".vf-walk-hover")).to_have_text("")


def test_it_is_played_to_its_end(open_file: OpenFile) -> None:
    quick = [Scene(kind, kind, f"The caption of {kind}.", "", 0.2) for kind in KINDS]
    page = open_file(walkthrough.to_html(walk(scenes=quick)))
    page.get_by_role("button", name="Play", exact=True).click()
    expect(root(page)).to_have_attribute("data-playing", "true")
    again = page.get_by_role("button", name="Play again")
    expect(again).to_be_visible()
    expect(root(page)).to_have_attribute("data-scene", KINDS[-1])
    expect(page.get_by_role("button", name="Next scene")).to_be_disabled()
    again.click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()


def test_the_keyboard_plays_stops_and_steps(open_file: OpenFile) -> None:
    page = open_file(walkthrough.to_html(walk()))
    page.locator("canvas").focus()
    page.keyboard.press("Space")
    expect(root(page)).to_have_attribute("data-playing", "true")
    page.keyboard.press("Space")
    expect(root(page)).to_have_attribute("data-playing", "false")
    for key, scene in (
        ("ArrowRight", "tokens"),
        ("ArrowRight", "vectors"),
        ("ArrowLeft", "tokens"),
        ("End", "written"),
    ):
        page.keyboard.press(key)
        expect(root(page)).to_have_attribute("data-scene", scene)
        expect(root(page)).to_have_attribute("data-share", "1.00")
    page.keyboard.press("Home")
    expect(root(page)).to_have_attribute("data-scene", "characters")
    slider = page.get_by_role("slider")
    slider.focus()
    page.keyboard.press("ArrowRight")  # a scene, not a twentieth of a second
    expect(slider).to_have_attribute("aria-valuetext", "2 of 10: Tokens")


def test_the_timeline_is_dragged_to_the_middle_of_a_scene(open_file: OpenFile) -> None:
    page = open_file(walkthrough.to_html(walk()))
    page.get_by_role("slider").fill("11.5")  # the third scene is from 10 to 15 seconds
    expect(root(page)).to_have_attribute("data-scene", "vectors")
    share = float(root(page).get_attribute("data-share"))
    assert share == pytest.approx(1.5 / (0.72 * 5), abs=0.02)
    assert page.locator(".vf-place").inner_text() == "0:11 / 0:50"


def test_without_motion_scenes_are_whole_wherever_the_timeline_stands(open_file: OpenFile) -> None:
    page = open_file(walkthrough.to_html(walk()))
    page.emulate_media(reduced_motion="reduce")
    page.get_by_role("slider").fill("11.5")
    expect(root(page)).to_have_attribute("data-scene", "vectors")
    expect(root(page)).to_have_attribute("data-share", "1.00")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(root(page)).to_have_attribute("data-scene", "added")  # it goes on from scene to scene
    expect(root(page)).to_have_attribute("data-share", "1.00")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(open_file: OpenFile, scheme: str) -> None:
    page = open_file(walkthrough.to_html(walk()), width=400, scheme=scheme)
    for kind in KINDS:
        step_to(page, kind)
        assert page.evaluate(WIDTH) <= 0


def test_other_ways_to_tell_positions(open_file: OpenFile) -> None:
    import numpy as np

    scenes = [Scene(kind, kind, kind, "", 5) for kind in ("turned", "biased", "unplaced")]
    angles, bias = np.outer(np.arange(4), [1.0, 0.01]), np.array([-1.5, -0.5, 0.0, -0.5])
    page = open_file(walkthrough.to_html(walk(scenes=scenes, added=None, angles=angles, bias=bias)))
    assert {"0.00°", "57.3°", "172°", "0.57°"} <= set(written(page))
    page.locator(".vf-chapter").nth(1).click()
    assert {"−1.50", "−0.50", "0.00"} <= set(written(page))
    page.locator(".vf-chapter").nth(2).click()
    assert "7 →" in written(page)

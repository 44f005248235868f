"""A page at a projector: the slides of a lesson, the steps between them, and the way out."""

import pytest

from vizformer.figures.figure import Figure
from vizformer.web.widgets import chart
from vizformer.web.widgets.chart import LARGER, TALLER


def link(app, name):
    value = app.query_params.get(name, "")
    return value[0] if isinstance(value, list) else value


def press(app, key):
    return next(button for button in app.button if button.key == key).click().run()


def test_every_part_of_a_lesson_is_two_slides_and_the_view_stays(open_app):
    app = open_app("pages/learn/masks.py", text="hello there", head=1)
    app = press(app, "present-begin")
    assert [one.value for one in app.subheader][:1] == ["Six masks"]
    assert not app.selectbox(key="view.model").disabled
    assert "Layer" not in [box.label for box in app.selectbox]  # the laboratory is the next slide
    app = press(app, "slide-next")
    assert link(app, "slide") == "laboratory"
    assert "Layer" in [box.label for box in app.selectbox]
    app = press(app, "slide-next")
    assert (link(app, "part"), link(app, "slide")) == ("paint", "words")
    assert link(app, "text") == "hello there"
    app = press(app, "slide-back")
    assert (link(app, "part"), link(app, "slide")) == ("kinds", "laboratory")
    app = press(app, "present-end")
    assert link(app, "slide") == ""
    assert not app.exception


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_link_opens_a_slide_and_the_last_one_leads_to_the_next_lesson(open_app, locale):
    app = open_app("pages/learn/qkv.py", part="scale", slide="laboratory", locale=locale)
    said = [caption.value for caption in app.caption]
    assert ("Lesson 4 · slide 8 of 8" in said) or ("第 4 课 · 第 8 页，共 8 页" in said)
    assert not [button for button in app.button if button.key == "slide-next"]
    links = [element.proto.label for element in app.get("page_link")]
    assert [one for one in links if one.endswith(" →")] in (["Many heads →"], ["多头 →"])


def test_the_next_lesson_begins_with_its_first_slide(open_app):
    app = open_app("pages/learn/qkv.py", part="scale", slide="laboratory")
    app = app.switch_page("pages/learn/heads.py").run()
    assert "Lesson 5 · slide 1 of 10" in [caption.value for caption in app.caption]


def test_a_page_that_is_no_lesson_is_presented_as_it_is(open_app):
    app = open_app("pages/explore/attention.py", slide="words")
    assert not app.exception
    assert [button.key for button in app.button if button.key.startswith(("present", "slide"))] == ["present-end"]


def test_a_wrong_slide_is_said(open_app):
    app = open_app("pages/learn/masks.py", slide="big")
    assert any("slide" in box.value for box in app.info)


def test_figures_have_larger_letters_and_stay_as_they_are_elsewhere():
    figure = Figure({"type": "bar", "x": [1], "y": [2], "textfont": {"size": 14}}).update_layout(
        height=200, xaxis={"tickfont": {"size": 10}, "title": {"text": "t", "font": {"size": 20}}}
    )
    for __ in range(2):  # what is enlarged is what is drawn this time, not the figure
        drawn = chart.spec(figure)
        chart.enlarge(drawn)
        assert drawn["data"][0]["textfont"]["size"] == 14 * LARGER
        assert drawn["layout"]["xaxis"]["tickfont"]["size"] == 10 * LARGER
        assert drawn["layout"]["xaxis"]["title"]["font"]["size"] == 20 * LARGER
        assert drawn["layout"]["font"]["size"] == 12 * LARGER
        assert drawn["layout"]["height"] == 200 * TALLER
    assert chart.spec(figure)["layout"]["height"] == 200

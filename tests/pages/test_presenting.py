"""A page at a projector: the slides of a lesson, the steps between them, and the way out."""

import pytest

from vizformer.figures.figure import Figure
from vizformer.web.frame import numbering
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.widgets import chart, lesson_text, slides
from vizformer.web.widgets.chart import LARGER, TALLER


def link(app, name):
    value = app.query_params.get(name, "")
    return value[0] if isinstance(value, list) else value


def press(app, key):
    return next(button for button in app.button if button.key == key).click().run()


def slides_of(lesson):
    return [(part, name) for part, words in lesson_text.lesson_prose(lesson, "en").items() for name in slides.of(words)]


@pytest.mark.sweep
def test_a_part_is_its_ideas_one_by_one_then_its_laboratory_and_the_view_stays(open_app):
    app = open_app("pages/learn/masks.py", text="hello there", head=1)
    app = press(app, "present-begin")
    assert [one.value for one in app.subheader][:1] == ["Six masks"]
    assert not app.selectbox(key="view.model").disabled
    order = slides_of("masks")
    assert [name for part, name in order if part == "kinds"][-4:] == ["laboratory", "try", "wrong", "wrong2"]
    for number, (part, name) in enumerate(order[:8]):
        assert f"slide {number + 1} of {len(order)}" in " ".join(caption.value for caption in app.caption)
        assert (link(app, "part") or "kinds", link(app, "slide")) == (part, name)
        assert ("Layer" in [box.label for box in app.selectbox]) == (name == "laboratory")
        assert link(app, "text") == "hello there"
        app = press(app, "slide-next")
    app = press(app, "slide-back")
    assert (link(app, "part") or "kinds", link(app, "slide")) == order[7]
    app = press(app, "present-end")
    assert link(app, "slide") == ""
    assert not app.exception


def test_a_list_stays_with_what_is_said_before_it():
    assert slides.paragraphs("One.\n\nTwo:\n\n- a\n- b\n\n$$x$$\n\nThree.") == [
        "One.",
        "Two:\n\n- a\n- b\n\n$$x$$",
        "Three.",
    ]


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_last_slide_leads_to_the_next_lesson(open_app, locale):
    count = len(slides_of("qkv"))
    app = open_app("pages/learn/qkv.py", part="scale", slide=slides_of("qkv")[-1][1], locale=locale)
    said = " ".join(caption.value for caption in app.caption)
    assert (f"Lesson {numbering.number('qkv')} · slide {count} of {count}" in said) or (
        f"第 {numbering.number('qkv')} 课 · 第 {count} 页，共 {count} 页" in said
    )
    assert not [button for button in app.button if button.key == "slide-next"]
    links = [element.proto.label for element in app.get("page_link")]
    assert [one for one in links if one.endswith(" →")] in (["Multi-head attention →"], ["多头注意力 →"])


def test_the_next_lesson_begins_with_its_first_slide(open_app):
    app = open_app("pages/learn/qkv.py", part="scale", slide="laboratory")
    app = app.switch_page("pages/learn/heads.py").run()
    said = " ".join(caption.value for caption in app.caption)
    assert f"Lesson {numbering.number('heads')} · slide 1 of {len(slides_of('heads'))}" in said


def test_a_slide_that_is_not_there_is_the_first_of_its_part(open_app):
    app = open_app("pages/learn/qkv.py", part="scale", slide="words9")
    first = slides_of("qkv").index(("scale", "words"))
    assert f"slide {first + 1} of" in " ".join(caption.value for caption in app.caption)
    assert not app.exception


def test_the_notes_show_the_words_of_the_part_and_the_slide_that_comes_next(open_app):
    words = lesson_text.lesson_prose("heads", "en")["split"]
    before = [name for name in slides.of(words) if name.startswith("words")][-1]
    app = open_app("pages/learn/heads.py", part="split", slide=f"notes-{before}")
    said = "\n".join(element.value for element in app.markdown)
    assert words.text in said
    assert all(text in said for text in (*words.tries, *words.wrongs))
    assert "Layer" in [box.label for box in app.selectbox]  # the laboratory comes next
    app = press(app, "slide-next")
    assert link(app, "slide") == "notes-laboratory"
    assert not [button for button in app.button if button.key == "present-end"]
    assert not app.exception


@pytest.mark.sample(1)
@pytest.mark.parametrize("lesson", [entry.url for entry in COURSE])
def test_a_lesson_prints_with_all_its_parts(open_app, lesson):
    app = press(open_app(f"pages/learn/{lesson}.py"), "lesson.print")
    assert not app.exception
    assert not app.error
    assert link(app, "slide") == "paper"
    said = "\n".join(element.value for element in app.markdown)
    parts = lesson_text.lesson_prose(lesson, "en")
    assert all(words.text in said and all(text in said for text in words.tries) for words in parts.values())
    heads = [one.value for one in app.subheader]
    assert all(any(head.startswith(f"{number} · ") for head in heads) for number in range(1, len(parts) + 1))
    app = press(app, "paper-end")
    assert link(app, "slide") == ""


def test_a_page_that_is_no_lesson_is_presented_as_it_is(open_app):
    app = open_app("pages/explore/attention.py", slide="words")
    assert not app.exception
    assert [button.key for button in app.button if button.key.startswith(("present", "slide"))] == [
        "present-notes",
        "present-end",
    ]


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

"""A page at a projector: the slides of a lesson, the steps between them, and the way out."""

import pytest

from vizformer.figures.figure import Figure
from vizformer.web.frame import sitemap
from vizformer.web.frame.sitemap import COURSE
from vizformer.web.link.languages import LANGUAGES
from vizformer.web.widgets import chart, slides
from vizformer.web.widgets.chart import LARGER, TALLER
from vizformer.web.words import lesson_words
from vizformer.web.words.terms import unmarked

WORDS_IN_A_CHARACTER = lesson_words.WORDS / lesson_words.CHARACTERS  # of Chinese, by the time that reading takes


def link(app, name):
    value = app.query_params.get(name, "")
    return value[0] if isinstance(value, list) else value


def press(app, key):
    return next(button for button in app.button if button.key == key).click().run()


def parts_of(lesson):
    return list(slides.lesson_prose(lesson, "en"))


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("lesson", [entry.url for entry in COURSE])
def test_a_slide_has_at_most_forty_words_and_a_lesson_fifteen_slides(lesson, code):
    words = slides.lesson_prose(lesson, code)
    assert len(words) <= 15
    for part, prose in words.items():
        title = lesson_words.tables(lesson, code)[part]["title"]
        count, characters = lesson_words.counted([title, unmarked(prose.lead)])
        assert count + characters * WORDS_IN_A_CHARACTER <= 40, part
        assert prose.rest, part
        assert prose.lead.count("$") % 2 == prose.lead.count("**") % 2 == 0, part


def test_each_part_is_a_slide_and_the_view_stays(open_app):
    app = open_app("pages/learn/masks.py", text="hello there", head=1)
    app = press(app, "present-begin")
    assert not app.selectbox(key="view.model").disabled
    order = parts_of("masks")
    for number, part in enumerate(order):
        assert f"slide {number + 1} of {len(order)}" in " ".join(caption.value for caption in app.caption)
        assert (link(app, "part") or "kinds", link(app, "slide")) == (part, "words")
        words = slides.lesson_prose("masks", "en")[part]
        said = "\n".join(element.value for element in app.markdown)
        assert words.lead in said
        assert words.rest not in said
        assert link(app, "text") == "hello there"
        if part != order[-1]:
            app = press(app, "slide-next")
    app = press(app, "slide-back")
    assert link(app, "part") == order[-2]
    app = press(app, "present-end")
    assert link(app, "slide") == ""
    assert not app.exception


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_last_slide_leads_to_the_next_lesson(open_app, locale):
    count = len(parts_of("qkv"))
    app = open_app("pages/learn/qkv.py", part="scale", slide="words", locale=locale)
    said = " ".join(caption.value for caption in app.caption)
    assert (f"Lesson {sitemap.number('qkv')} · slide {count} of {count}" in said) or (
        f"第 {sitemap.number('qkv')} 课 · 第 {count} 页，共 {count} 页" in said
    )
    assert not [button for button in app.button if button.key == "slide-next"]
    links = [element.proto.label for element in app.get("page_link")]
    assert [one for one in links if one.endswith(" →")] in (["Multi-head attention →"], ["多头注意力 →"])


def test_the_next_lesson_begins_with_its_first_slide(open_app):
    app = open_app("pages/learn/qkv.py", part="scale", slide="laboratory")
    app = app.switch_page("pages/learn/heads.py").run()
    said = " ".join(caption.value for caption in app.caption)
    assert f"Lesson {sitemap.number('heads')} · slide 1 of {len(parts_of('heads'))}" in said


@pytest.mark.parametrize("slide", ["words9", "laboratory", "try2"])
def test_a_link_to_one_of_the_many_slides_of_before_leads_to_the_one_of_its_part(open_app, slide):
    app = open_app("pages/learn/qkv.py", part="scale", slide=slide)
    assert "slide 4 of 4" in " ".join(caption.value for caption in app.caption)
    assert not app.exception


def test_the_notes_show_the_words_of_the_part_and_the_slide_that_comes_next(open_app):
    words = slides.lesson_prose("heads", "en")
    app = open_app("pages/learn/heads.py", part="split", slide="notes-words")
    said = "\n".join(element.value for element in app.markdown)
    assert words["split"].text in said
    assert all(text in said for text in (*words["split"].tries, *words["split"].wrongs))
    assert words["all"].lead in said  # comes next
    app = press(app, "slide-next")
    assert (link(app, "part"), link(app, "slide")) == ("all", "notes-words")
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
    parts = slides.lesson_prose(lesson, "en")
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

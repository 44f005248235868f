"""The page Worksheet: calculations with the sentence's tokens, the questions of the lessons; the answers on request."""

import html
import re
from dataclasses import dataclass

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.conftest import Open
from tests.pages.reading import said
from vizformer.explain.paper_calculations import SEEDS, worksheet
from vizformer.web.frame import progress
from vizformer.web.pages.worksheet import IN_LINKS, LETTERS
from vizformer.web.widgets.slides import lesson_prose

PAGE = "pages/learn/worksheet.py"
SENTENCE = "我有一只猫。"
LESSONS = {url: number for number, url in enumerate(IN_LINKS, 1) if url in progress.QUESTIONS}
SUBJECTS = {
    "zh-en": SENTENCE,
    "stories": "The cat sat on the mat.",
    "cloze": "She opened the door and went in.",
}
OF_TWO_STACKS = {f"cross/{name}" for name in ("shape", "memory", "keys", "cell", "empty")}
OF_A_WRITER = {f"decoding/{name}" for name in ("shift", "answer", "forcing", "ratio", "temperature")}
LEFT_OUT = {"zh-en": set[str](), "stories": OF_TWO_STACKS, "cloze": OF_TWO_STACKS | OF_A_WRITER}


@dataclass
class Printed:
    """A question on the sheet: what is asked, its choices by their letters, and the answer in the key."""

    text: str
    choices: list[str]
    answer: str


def sheet(open_app: Open, lessons: str, **link: object) -> AppTest:
    app = open_app(PAGE, dials=f"worksheet.lessons:{lessons}~worksheet.key:1~worksheet.calculations:0", **link)
    assert not app.exception
    assert not app.error
    return app


def unescaped(text: str) -> str:
    return text.replace("\\", "").replace("\u2060", "")


def printed(app: AppTest) -> dict[int, Printed]:
    """The questions of the sheet by number."""
    found: dict[int, Printed] = {}
    last = 0
    for element in app.main:
        if element.type == "markdown":
            text = unescaped(element.value)
            if answer := re.fullmatch(r"\*\*(\d+)\.\*\* \*\*(.*?)\*\*　.+", text, re.S):
                found[int(answer[1])].answer = answer[2]
            elif asked := re.fullmatch(r"\*\*(\d+)\.\*\* (.*) \*\(.*\)\*", text, re.S):
                last = int(asked[1])
                found[last] = Printed(asked[2], [], "")
        elif element.type == "html" and last and "<li>" in element.proto.body:
            found[last].choices = [html.unescape(c) for c in re.findall("<li>(.*?)</li>", element.proto.body)]
    return found


def test_the_key_is_shown_where_it_is_asked_for(open_app: Open) -> None:
    app = open_app(PAGE, text=SENTENCE, dials="worksheet.seed:7")
    assert not app.exception
    problems = worksheet(["我", "有", "一"], 7)
    shown = [latex.value for latex in app.latex]
    assert all(any(problem.formula in one for one in shown) for problem in problems)
    assert not any(problem.working in one for one in shown for problem in problems)
    asked = printed(app)
    assert len(asked) == len(problems) + len(progress.QUESTIONS["qkv"])
    assert not any(one.answer for one in asked.values())
    app = app.toggle[0].set_value(True).run()
    shown = [latex.value for latex in app.latex]
    assert all(any(problem.working in one for one in shown) for problem in problems)
    assert app.query_params["dials"]
    app = app.number_input[0].set_value(8).run()
    assert "version 8" in said(app)


def test_the_key_has_the_digits_that_are_asked_for(open_app: Open) -> None:
    seed = next(
        seed
        for seed in SEEDS
        for one in worksheet(["我", "有", "一"], seed)
        if one.key == "masked" and (one.answer[0].value[one.answer[0].value > 0] < 0.005).any()
    )
    app = open_app(PAGE, text=SENTENCE, dials=f"worksheet.seed:{seed}~worksheet.key:1~worksheet.lessons:0")
    assert not app.exception
    key = " ".join(html.proto.body for html in app.get("html"))
    assert "e−" not in key
    assert "0.00" in key


def test_no_tolerance_on_the_sheet_tells_the_answer(open_app: Open) -> None:
    app = open_app(PAGE, text=SENTENCE, dials="worksheet.calculations:0~worksheet.lessons:4,5,9,11")
    shown = re.findall(r"± ([\d.]+)", " ".join(html.proto.body for html in app.get("html")))
    assert len(shown) > 5
    assert all(one.strip("0.") in ("1", "2", "3", "5") for one in shown), shown


@pytest.mark.sample(1)
@pytest.mark.parametrize("url", LESSONS)
def test_the_lesson_accepts_what_the_key_says(open_app: Open, url: str) -> None:
    on_paper = printed(sheet(open_app, str(LESSONS[url]), text=SENTENCE))
    assert len(on_paper) == len(progress.QUESTIONS[url])
    left = {one.text: one for one in on_paper.values()}
    for part in lesson_prose(url, "en"):
        app = open_app(f"pages/learn/{url}.py", text=SENTENCE, part=part)
        for name in dict.fromkeys(re.findall(rf"ask\.{url}\.(\w+)\.", " ".join(keys_of(app)))):
            asks = [unescaped(one.value) for one in app.markdown if one.value.startswith("**Predict first.**")]
            texts = [text for text in left if f"**Predict first.** {text}" in asks]
            assert texts, (part, name, asks)
            accepted = [text for text in texts if takes(app, url, name, left[text])]
            assert len(accepted) == 1, (part, name, texts)
            del left[accepted[0]]
    assert not left


def keys_of(app: AppTest) -> list[str]:
    return [one.key or "" for found in (app.radio, app.number_input, app.selectbox) for one in found]


def takes(app: AppTest, url: str, name: str, one: Printed) -> bool:
    """Whether the question of the lesson has this answer among its own, and says that it is right."""
    start = f"ask.{url}.{name}."
    radio, number, row = (
        next((w for w in found if (w.key or "").startswith(start + kind)), None)
        for found, kind in ((app.radio, "choice"), (app.number_input, "number"), (app.selectbox, "row"))
    )
    if radio is not None:
        line = re.fullmatch(r"line (\d+)", one.answer)
        lettered = re.match(r"([A-Z]) · (.*)", one.answer, re.S)
        wanted = line[1] if line else lettered[2] if lettered else None
        if lettered and one.choices[LETTERS.index(lettered[1])] != wanted:
            return False
        options = [str(n) for n in range(1, len(radio.options) + 1)] if line else [*map(unescaped, radio.options)]
        if wanted not in options or len(radio.options) != len(one.choices):
            return False
        radio.set_value(options.index(wanted)).run()
    elif number is not None:
        given = re.fullmatch(r"([−\d.,+-]+)( \(± .*\))?", one.answer)
        if given is None:
            return False
        number.set_value(float(given[1].replace("−", "-").replace(",", "")))
    else:
        assert row is not None
        cell = re.fullmatch(r"row (\d+) · .*, column (\d+) · .*", one.answer)
        if cell is None:
            return False
        row.set_value(int(cell[1]))
        app.selectbox(key=row.key.replace(".row.", ".column.")).set_value(int(cell[2])).run()
    before = rights(app)
    next(button for button in app.button if (button.key or "").startswith(start + "button")).click().run()
    assert not app.exception
    return rights(app) == before + 1


def rights(app: AppTest) -> int:
    return sum(box.value.startswith("**Right.**") for box in app.success)


@pytest.mark.sweep
@pytest.mark.parametrize("model", SUBJECTS)
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_the_questions_of_all_lessons_are_printed_for_every_architecture(
    open_app: Open, model: str, locale: str
) -> None:
    app = sheet(open_app, ",".join(map(str, LESSONS.values())), locale=locale, model=model, text=SUBJECTS[model])
    asked = printed(app)
    everything = {f"{url}/{name}" for url, names in progress.QUESTIONS.items() for name in names}
    assert list(asked) == list(range(1, len(everything - LEFT_OUT[model]) + 1))
    assert all(one.answer for one in asked.values())
    notes = [text.value for text in app.caption if re.search("Questions omitted|已略去", text.value)]
    assert [re.findall(r"\d+", text) for text in notes] == [[str(len(LEFT_OUT[model]))]] * bool(LEFT_OUT[model])


def test_versions_have_their_choices_in_other_orders(open_app: Open) -> None:
    app = sheet(open_app, "4,6", text=SENTENCE)
    one = printed(app)
    other = printed(app.number_input[0].set_value(2).run())
    again = printed(app.number_input[0].set_value(1).run())
    assert one == again
    assert [a.text for a in one.values()] == [b.text for b in other.values()]
    assert any(a.choices != b.choices for a, b in zip(one.values(), other.values(), strict=True))
    for a, b in zip(one.values(), other.values(), strict=True):
        assert sorted(a.choices) == sorted(b.choices)
        if a.choices and a.answer[0] in LETTERS:  # the letters differ, what they stand for does not
            assert a.choices[LETTERS.index(a.answer[0])] == b.choices[LETTERS.index(b.answer[0])]


def test_lessons_are_ticked_and_the_link_says_which(open_app: Open) -> None:
    app = open_app(PAGE, text=SENTENCE, dials="worksheet.calculations:0")
    assert len(printed(app)) == len(progress.QUESTIONS["qkv"])
    app = app.button_group[0].set_value(["11"]).run()
    assert len(printed(app)) == len(progress.QUESTIONS["costs"])
    assert "worksheet.lessons:11" in "".join(app.query_params["dials"])
    app = app.button_group[0].set_value([]).run()
    assert not printed(app)
    assert "worksheet.lessons:0" in "".join(app.query_params["dials"])


def test_the_sheet_is_chinese_too(open_app: Open) -> None:
    app = open_app(PAGE, locale="zh-CN", text=SENTENCE)
    assert not app.exception
    assert "练习" in said(app)

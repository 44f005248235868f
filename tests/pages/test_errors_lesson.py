"""The lesson Find the error: a line is chosen first, then the proof is shown, and its numbers are the library's."""

import pytest
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import number, run, said, tables
from vizformer.analysis.heads.telling_head import find_telling_head
from vizformer.analysis.own_steps import copied_errors, error_contrasts
from vizformer.web.lessons.errors.exercise import READS, WRITES
from vizformer.web.link.view import usual_query

PAGE = "pages/learn/errors.py"
TEXTS = {"zh-en": "他喜欢喝水。", "stories": "The cat sat on the chair.", "cloze": "She opened the door."}


def chosen(app: AppTest, part: str, line: int) -> AppTest:
    """The page after a line was chosen and the answer asked for."""
    radio = next(box for box in app.radio if box.key.startswith(f"ask.errors.{part}.choice"))
    app = radio.set_value(line).run()
    return next(button for button in app.button if button.key.startswith(f"ask.errors.{part}.button")).click().run()


@pytest.mark.sample(3)
@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("part", copied_errors.EXERCISES)
def test_the_proof_follows_the_choice(open_app: Open, part: str, model: str) -> None:
    exercise = copied_errors.EXERCISES[part]
    app = open_app(PAGE, part=part, model=model, text=TEXTS[model])
    assert not app.exception
    radio = next(box for box in app.radio if box.key.startswith(f"ask.errors.{part}.choice"))
    listed = [option.strip("`").replace("\u00a0", " ") for option in radio.options]
    assert [line[4:] for line in listed] == list(exercise.lines)
    assert not any("Compared with" in box.value for box in app.success)
    assert exercise.right.strip() not in [block.value for block in app.code]  # nothing is given away
    app = chosen(app, part, exercise.wrong)
    assert not app.exception
    assert not app.error, [box.value for box in app.error]
    assert any("Right" in box.value for box in app.success)
    assert exercise.right.strip() in [block.value for block in app.code]
    if part not in ("dropout", "count"):
        assert any("Compared with" in box.value for box in app.success)
    run(app.code[-1].value)  # the corrected program, pasted


def test_another_line_is_not_right(open_app: Open) -> None:
    app = chosen(open_app(PAGE, part="scale", text=TEXTS["zh-en"]), "scale", 3)
    assert any("line 2" in box.value for box in app.error)


@pytest.mark.sweep
def test_the_proofs_numbers_are_the_librarys(open_app: Open) -> None:
    checkpoint = load("zh-en")
    trace = checkpoint.trace(TEXTS["zh-en"])
    found = error_contrasts.scale_contrast(trace["encoder.1.self"], 2)
    app = chosen(open_app(PAGE, part="scale", text=TEXTS["zh-en"], layer=1, head=2), "scale", 1)
    assert f"{error_contrasts.mean_largest(found.right):.3f}" in said(app)
    assert f"{error_contrasts.mean_largest(found.wrong):.3f}" in said(app)
    assert any(f"by up to {found.off:.3g}" in box.value for box in app.success)
    app = chosen(open_app(PAGE, part="embedding", text=TEXTS["zh-en"]), "embedding", 1)
    wrong = error_contrasts.embedding_contrast(checkpoint, trace).wrong
    assert error_contrasts.written_with(checkpoint, trace, wrong).text[:40] in said(app).replace("\\", "")
    assert "He likes to drink water" in said(app)


@pytest.mark.parametrize("model", TEXTS)
@pytest.mark.parametrize("part", ["scale", "after", "cache"])
@pytest.mark.sample(3)
def test_the_telling_head_is_shown_and_proved_where_nobody_chose(open_app: Open, part: str, model: str) -> None:
    trace = load(model).trace(TEXTS[model])
    order = READS if part == "scale" else WRITES
    kind = next(kind for kind in order if kind in trace.tokens)
    found = find_telling_head(trace, kind, usual_query(trace.tokens[kind]))
    assert found is not None
    app = chosen(open_app(PAGE, part=part, model=model, text=TEXTS[model]), part, copied_errors.EXERCISES[part].wrong)
    assert (app.selectbox(key="view.layer").value, app.selectbox(key="view.head").value) == (found.layer, found.head)
    assert f"Shown is layer {found.layer}, head {found.head}" in said(app)
    contrast = getattr(error_contrasts, f"{part}_contrast")(trace[f"{kind}.{found.layer}.self"], found.head)
    assert any(f"by up to {contrast.off:.3g}" in box.value for box in app.success)
    app = open_app(PAGE, part=part, model=model, text=TEXTS[model], layer=0, head=0)
    assert (app.selectbox(key="view.layer").value, app.selectbox(key="view.head").value) == (0, 0)
    assert "Shown is" not in said(app)


def test_the_parts_of_the_base_model(open_app: Open) -> None:
    app = open_app(PAGE, part="count")
    assert [number(row[1]) for row in tables(app)[0]] == [18_914_304, 24_500_000, 18_944_000, 62_358_304, 63_082_496]
    app = chosen(app, "count", 5)
    rows = tables(app)[1]
    assert [number(row[2]) for row in rows] == [18_914_304, 25_224_192, 18_944_000, 63_082_496]
    assert number(rows[-1][1]) == 62_358_304


def test_a_model_without_the_factor_is_shown_another_one(open_app: Open) -> None:
    app = open_app(PAGE, part="embedding", model="stories", text=TEXTS["stories"])
    assert any("zh-en" in caption.value.replace("\\", "") for caption in app.caption)


@pytest.mark.sweep
def test_one_token_is_enough(open_app: Open) -> None:
    for part in copied_errors.EXERCISES:
        app = open_app(PAGE, part=part, model="stories", text="a")
        app = chosen(app, part, copied_errors.EXERCISES[part].wrong)
        assert not app.exception, part


def test_the_lesson_speaks_chinese(open_app: Open) -> None:
    app = chosen(open_app(PAGE, locale="zh-CN", part="join"), "join", 1)
    assert any("第 2 行应当是" in block.value for block in app.markdown)
    assert any("对的那一行" in box.value for box in app.success)


@pytest.mark.parametrize("part", copied_errors.EXERCISES)
def test_what_the_program_gives_stands_above_it(open_app: Open, part: str) -> None:
    app = open_app(PAGE, part=part, text=TEXTS["zh-en"])
    drawn = [box.proto.body for box in app.get("html") if "<table" in box.proto.body]
    if part == "waves":
        assert len(app.get("plotly_chart")) == 2
    else:
        assert drawn
    right = error_contrasts.total_contrast().right[0]
    assert f"{float(right):.4f}" not in "".join(drawn)  # the first question of "total" asks for it

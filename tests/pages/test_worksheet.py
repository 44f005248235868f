"""The page Worksheet: questions with the sentence's tokens; the answers where they are asked for."""

from tests.pages.conftest import Open
from tests.pages.reading import said
from vizformer.explain.worksheet import worksheet

PAGE = "pages/learn/worksheet.py"


def test_the_key_is_shown_where_it_is_asked_for(open_app: Open) -> None:
    app = open_app(PAGE, text="我有一只猫。", dials="worksheet.seed:7")
    assert not app.exception
    problems = worksheet(["我", "有", "一"], 7)
    shown = [latex.value for latex in app.latex]
    assert all(any(problem.formula in one for one in shown) for problem in problems)
    assert not any(problem.working in one for one in shown for problem in problems)
    app = app.toggle[0].set_value(True).run()
    shown = [latex.value for latex in app.latex]
    assert all(any(problem.working in one for one in shown) for problem in problems)
    assert app.query_params["dials"]
    app = app.number_input[0].set_value(8).run()
    assert "version 8" in said(app)


def test_the_sheet_is_chinese_too(open_app: Open) -> None:
    app = open_app(PAGE, locale="zh-CN", text="我有一只猫。")
    assert not app.exception
    assert "练习" in said(app)

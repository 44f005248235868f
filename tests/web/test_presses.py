"""A press counts also where another run comes before the one that would handle it."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import vizformer
from vizformer.web.frame import presses


def _page() -> None:
    import streamlit as st

    from vizformer.web.frame import presses

    if st.session_state.pop("another run comes first", False):
        st.rerun()  # ends the run that knows of the press, before it reaches the button
    if presses.button("Go", key="go"):
        st.text("went")
    with st.form("form"):
        sent = presses.submit("Send", key="send")
    if sent:
        st.text("sent")


@pytest.mark.parametrize(("number", "text"), [(0, "went"), (1, "sent")])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_press_is_handled_once_also_after_a_run_that_was_cut_off(number: int, text: str, interrupted: bool) -> None:
    app = AppTest.from_function(_page).run()
    app.session_state["another run comes first"] = interrupted
    app.button[number].click().run()
    assert [one.value for one in app.text] == [text]
    assert not app.run().text


def test_a_press_that_no_run_has_taken_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presses, "SECONDS", 0.0)
    app = AppTest.from_function(_page).run()
    assert not app.button[0].click().run().text


@pytest.mark.sweep
def test_every_button_is_handled_by_a_callback_or_as_a_noted_press() -> None:
    root = Path(vizformer.__file__).parents[1]
    lost = []
    for path in [*root.glob("pages/*/*.py"), *root.glob("vizformer/web/**/*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        alone = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node not in alone:
                of = node.func.value
                noted = isinstance(of, ast.Name) and of.id == "presses"
                by_callback = any(keyword.arg == "on_click" for keyword in node.keywords)
                if node.func.attr in ("button", "form_submit_button") and not noted and not by_callback:
                    lost.append(f"{path.name}:{node.lineno}")
    assert lost == []

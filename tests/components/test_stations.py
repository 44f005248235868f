"""The stations of a path: what travels to the browser, what is refused, and a move that is heard once."""

import json
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.components.test_mount import sent
from vizformer.components import stations
from vizformer.components.stations import (
    Ask,
    Bars,
    Chips,
    Curve,
    Deeper,
    Exercise,
    Frame,
    Grid,
    Option,
    Show,
    Station,
    Turn,
)

TOKENS = Chips(["我", "</script>"], ["7", "9"], [1])
CELLS = np.array([[0.25, np.nan], [-0.123456, 1.0]])
GRID = Grid("map", ["a", "b"], ["a", "b"], CELLS, signed=True, written=True, lit=1, notes=["", "behind"])


def bars(value: float, **changes: Any) -> Bars:
    return Bars("bars", ["cat", "dog"], [value, 0.1], [f"{value:.2f}", "0.10"], 1.0, 0, **changes)


WRITTEN = Exercise("3 · One <head>", "Compare.", "z = weights v", "def head(q): ...")


def path() -> list[Station]:
    """Two stations, in which every kind of step and of picture comes once."""
    curve: Frame = [Curve("", "p", "loss", [0.1, 1.0], [2.3, 0.0], [(0.5, 0.69, "half")], 0)]
    options = [Option("cat", "It is not."), Option("dog", "It is."), Option("<b>", "Nor this.")]
    turn = Turn("Turn it.", "Factor", ["× 1", "× 2"], [[bars(0.5)], [bars(0.75, upright=True)]], 0)
    ask = Ask("Which?", options, 1, [TOKENS], "Once more: which?")
    return [
        Station("one", "One", [Show("See.", [TOKENS]), ask, Show("So.", [GRID])], Deeper("More", 2.6), 1.5, [WRITTEN]),
        Station("two", "Two", [turn, Show("The end.", curve)], None, 1.2),
    ]


def test_what_travels() -> None:
    packed = stations.pack(path(), text="text", words={"next": "下一步"})
    assert packed.names == ("one", "two")
    data = json.loads(packed.content)
    assert data["words"]["next"] == "下一步"
    assert data["words"]["back"] == "Back"
    one, two = data["stations"]
    assert [step["kind"] for step in one["steps"] + two["steps"]] == ["show", "ask", "show", "turn", "show"]
    (grid,) = one["steps"][2]["frames"][0]
    assert grid["cells"] == [[0.25, None], [-0.123456, 1.0]]  # −0.1235 could be read as −0.124; blocked is null
    assert two["steps"][0]["ticks"] == ["× 1", "× 2"]
    assert [frame[0]["upright"] for frame in two["steps"][0]["frames"]] == [False, True]
    assert one["steps"][1]["again"] == "Once more: which?"


def test_questions_and_dials_that_do_not_fit_are_refused() -> None:
    two = [Option("a", ""), Option("b", "")]
    for options, right in ((two, 2), (two[:1], 0), ([two[0], two[0]], 0)):
        with pytest.raises(ValueError, match="to be right"):
            Ask("?", options, right, [])
    with pytest.raises(ValueError, match="do not fit"):
        Turn("", "", ["a"], [[], []])
    with pytest.raises(ValueError, match="do not fit"):
        Turn("", "", ["a"], [[]], 1)


def test_files_are_whole() -> None:
    page = stations.to_html(stations.pack(path()))
    assert page.count("</script>") == 1


SCRIPT = """
import streamlit as st
from tests.components.test_stations import path
from vizformer.components import stations

st.session_state.gone = stations.mount(stations.pack(path()), at="one", key="path")
"""


def test_answers_are_heard_with_the_next_move_and_only_to_questions_that_there_are() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    sent_answers = (
        {"one": 2, "two": 0, "x" * 10**6: 1},
        {"one": 3},
        {"one": -1},
        {"one": True},
        {"one": "1"},
        [1],
        None,
    )
    for seq, answers in enumerate(sent_answers):
        app.session_state["path"] = {"selected": {"station": "two", "answers": answers, "seq": seq}}
        app.run()
        assert app.session_state["gone"] == ("two", False, {} if seq else {"one": 2})


def test_a_move_is_heard_once_and_the_page_goes_along() -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    assert not app.exception
    assert app.session_state["gone"] is None
    assert sent(app)["at"] == "one"
    for seq, deeper in ((1.0, False), (2.0, True)):
        app.session_state["path"] = {"selected": {"station": "two", "deeper": deeper, "seq": seq}}
        app.run()
        assert app.session_state["gone"] == ("two", deeper, {})
        assert sent(app)["at"] == "two"  # the page still says "one": the reader is ahead
        app.run()
        assert app.session_state["gone"] is None


@pytest.mark.parametrize(
    "nonsense", [None, 3, [], {}, {"station": "nowhere", "seq": 1}, {"station": ["one"], "seq": 2}]
)
def test_nonsense_from_a_browser(nonsense: object) -> None:
    app = AppTest.from_string(SCRIPT, default_timeout=20).run()
    app.session_state["path"] = {"selected": nonsense}
    app.run()
    assert not app.exception
    assert app.session_state["gone"] is None

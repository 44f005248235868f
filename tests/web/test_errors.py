"""Errors on a page: one sentence in their place, the rest of the page stays, the traceback goes to the log."""

import logging

import pytest
from streamlit.testing.v1 import AppTest


def script(kind):
    import streamlit as st

    from vizformer.errors import CheckpointError, OwnArithmeticError
    from vizformer.messages import N_
    from vizformer.web.words.errors import guarded

    @guarded()
    def part():
        if kind == "ours":
            raise CheckpointError(N_("There is no model {name}.", name="<b>*x*</b>"))
        if kind == "ours, by its text":
            raise CheckpointError("There is no model {name}.", name="<b>*x*</b>")
        if kind == "ours alone":
            raise OwnArithmeticError("my_model", "decoder-only")
        if kind == "stop":
            st.stop()
        if kind == "unexpected":
            raise ZeroDivisionError("a secret of the server")

    part()
    if kind == "ours alone":
        part()
    st.text("the rest")


def run(kind: str) -> AppTest:
    return AppTest.from_function(script, default_timeout=20, kwargs={"kind": kind}).run()


@pytest.mark.parametrize("kind", ["ours", "ours, by its text"])
def test_an_error_of_ours_is_its_sentence(kind):
    test = run(kind)
    assert [error.value for error in test.error] == [r"There is no model \<b\>\*x\*\<\/b\>."]
    assert test.text[0].value == "the rest"


def test_what_needs_our_arithmetic_offers_a_model_that_has_it_once_a_page():
    test = run("ours alone")
    assert not test.error
    assert not test.exception
    assert len(test.info) == 2
    assert "my_model runs by its own code" in test.info[0].value.replace("\\", "")
    (button,) = test.button
    assert button.label == "Use the model stories"
    assert test.text[0].value == "the rest"


def test_an_unexpected_error_is_a_sentence_and_a_log_entry(caplog):
    with caplog.at_level(logging.ERROR, "vizformer"):
        test = run("unexpected")
    assert not test.exception
    assert "our mistake" in test.error[0].value
    assert "secret" not in test.error[0].value
    record = caplog.records[0]
    assert record.args[0] in test.error[0].value
    assert record.exc_info[0] is ZeroDivisionError
    assert test.text[0].value == "the rest"


def test_streamlits_own_control_flow_passes():
    test = run("stop")
    assert not test.error
    assert not test.exception
    assert not test.text

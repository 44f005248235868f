"""Widgets are told their values again after a page was gone to, until a run has come to its end."""

from dataclasses import replace

from vizformer.web.link import state


def test_a_widget_is_told_its_value_until_a_run_of_the_visit_has_ended(monkeypatch):
    memory = state._Memory()
    monkeypatch.setattr(state, "_memory", lambda: memory)
    assert state.arrives("text")
    assert state.arrives("text")  # a run that was cut short told the browser nothing for sure
    state.drawn()
    assert not state.arrives("text")
    state.drawn()
    memory.visit += 1  # another page
    assert state.arrives("text")
    state.drawn()
    assert not state.arrives("text")
    memory.view = replace(memory.view, lang="zh_CN")  # a list would go on showing its choice in the other language
    assert state.arrives("text")
    state.drawn()
    assert not state.arrives("text")

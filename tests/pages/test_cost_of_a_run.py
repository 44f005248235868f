"""What a run of a page does not do again and again: counted, so that no busy machine makes it fail."""

import asyncio
import json
import runpy
import threading
from types import SimpleNamespace

import pytest
from streamlit import config
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.context import ContextProxy
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest

from tests.bundled import load
from tests.pages.conftest import ROOT, Open
from vizformer.analysis.decoding.ways import first_distribution, scored
from vizformer.checkpoints import Checkpoint
from vizformer.generation import leading_candidates, streaming
from vizformer.web import inside_streamlit
from vizformer.web.catalogue.subject import Subject, generated, written
from vizformer.web.lessons.decoding import ways
from vizformer.web.link.generation_settings import Settings
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.pages.generation import computations
from vizformer.web.widgets import laboratories, lesson
from vizformer.web.widgets.whole_model import picture

PAGE = "pages/learn/qkv.py"
MOST_FILES = 80  # of ours that a new sentence on Attention enters: so many are to be read by who follows it


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each distribution that is made of the logits of a step."""
    made, next_token = list[int](), streaming.next_token
    monkeypatch.setattr(streaming, "next_token", lambda *args, **rest: made.append(1) or next_token(*args, **rest))
    return made


def test_a_new_sentence_on_attention_enters_few_files(open_app: Open) -> None:
    entered, ours = set[str](), f"{ROOT / 'vizformer'}/"
    app = open_app("pages/explore/attention.py", model="zh-en", text="我们今天去看你的书。")
    for text in ("你的书今天我们去看。", "书今天去学校看我。"):  # the first of them leaves nothing to be made once
        app.query_params["text"] = text
        entered.clear()
        threading.setprofile(lambda frame, event, _: entered.add(frame.f_code.co_filename))
        try:
            app.run()
        finally:
            threading.setprofile(None)
        assert not app.exception
    files = sorted(name.removeprefix(ours) for name in entered if name.startswith(ours))
    assert {"model/attention.py", "web/pages/attention/heads.py"} <= set(files)
    assert len(files) <= MOST_FILES, files


def test_a_translation_at_whose_candidates_nobody_looks_makes_no_distribution(open_app: Open, looked_at) -> None:
    app = open_app(PAGE, model="zh-en", text="他今天买了一本书和一只猫。")
    assert not app.exception
    assert not looked_at
    steps = list(load("zh-en").stream("他今天买了一本书和一只猫。", max_new=3))
    assert not looked_at
    assert float(steps[0].probabilities.sum()) == pytest.approx(1)
    assert steps[0].cut.shape == steps[0].filtered.shape
    assert len(looked_at) == 1


def test_the_candidates_out_of_the_trace_are_those_of_the_steps() -> None:
    subject = Subject(ModelRef("bundled", "zh-en"), "我昨天在公园看见他的猫。", "")
    steps = list(subject.checkpoint.stream(subject.text))
    wanted, found = leading_candidates(steps), written(subject)
    assert found.ids == wanted.ids == list(generated(subject).ids)
    assert found.end == wanted.end == generated(subject).end == "eos"
    assert found.candidates.tolist() == wanted.candidates.tolist()
    assert found.before == pytest.approx(wanted.before, abs=1e-5)
    assert (found.cut == wanted.cut).all()
    assert found.kept == wanted.kept


def test_the_model_beside_a_part_is_the_same_for_each_sentence_and_its_picture_comes_when_it_is_pressed(
    open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, drawn = list[object](), picture.drawn
    monkeypatch.setattr(picture, "drawn", lambda *args, **rest: made.append(args) or drawn(*args, **rest))
    app = open_app(PAGE, model="zh-en", text="他喜欢猫。", part="arithmetic")
    first = _drawing(app)
    app.query_params["text"] = "她喜欢狗。"
    assert first == _drawing(app.run())
    assert len(json.dumps(first)) < 3_000
    assert not made
    app.session_state["whole-model"] = {"selected": {"station": "", "seq": 1.0}}
    assert _drawing(app.run()) == {**first, "open": True}
    assert len(made) == 1
    app.session_state["whole-model"] = {"selected": {"station": "", "seq": 2.0}}
    assert _drawing(app.run()) == first
    assert len(made) == 1


def test_a_closed_tab_below_a_part_makes_nothing(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    made, pasteable = list[str](), lesson.pasteable
    monkeypatch.setattr(lesson, "is_open", laboratories.is_open)
    monkeypatch.setattr(lesson, "pasteable", lambda code, given: made.append(code) or pasteable(code, given))
    app = open_app(PAGE, model="zh-en", text="他喜欢猫。", part="scale")
    assert [tab.label for tab in app.tabs] == ["Try this", "Formula", "Code", "Often got wrong"]
    assert not app.latex
    assert not app.code
    assert not made
    app.session_state["lesson.tabs.qkv.scale"] = "Code"
    app = app.run()
    assert not app.exception
    assert len(made) == len(app.code) == 1
    assert not app.latex


def _drawing(app) -> dict[str, object]:
    assert not app.exception
    [found] = [one.proto for one in app.get("bidi_component") if one.proto.component_name == "vizformer_whole_model"]
    return json.loads(found.json)


@pytest.mark.parametrize(("locale", "title"), [("en-US", "Query, key, value"), ("zh-CN", "查询、键、值")])
def test_the_browser_is_asked_for_its_language_once_in_a_run(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, locale: str, title: str
) -> None:
    asked, told = list[str](), ContextProxy.locale.fget
    monkeypatch.setattr(ContextProxy, "locale", property(lambda self: asked.append(told(self)) or told(self)))
    app = open_app(PAGE, locale=locale, model="zh-en", text="他喜欢猫。")
    assert app.title[0].value == title
    assert 1 <= len(asked) <= 2  # (and one that asks with which model this reader begins)
    asked.clear()
    app.run()
    assert len(asked) <= 1


def test_a_widget_reads_its_own_value_and_not_all_of_the_session(open_app: Open, monkeypatch) -> None:
    every, read = SessionState.filtered_state, list[object]()
    monkeypatch.setattr(SessionState, "filtered_state", property(lambda self: read.append(1) or every.fget(self)))
    app = open_app(PAGE, model="zh-en", text="他喜欢猫。", part="arithmetic")
    assert not app.exception
    assert app.selectbox
    assert app.number_input
    assert not read
    session = SafeSessionState(SessionState(), lambda: None)
    session["head"], session["empty"] = 3, None
    values = session.filtered_state
    assert dict(values) == {"head": 3, "empty": None}
    assert ("head" in values, "layer" in values, values["head"], len(values)) == (True, False, 3, 2)


def test_a_streamlit_that_keeps_its_values_elsewhere_is_left_as_it_is(monkeypatch) -> None:
    monkeypatch.delattr(SafeSessionState, "filtered_state")
    runpy.run_path(str(inside_streamlit.__file__))
    assert not hasattr(SafeSessionState, "filtered_state")


def test_the_greedy_text_of_the_generation_page_is_the_target_that_was_written_for_the_trace(monkeypatch) -> None:
    asked, stream = list[object](), Checkpoint.stream
    monkeypatch.setattr(Checkpoint, "stream", lambda *args, **rest: asked.append(rest) or stream(*args, **rest))
    subject = Subject(ModelRef("bundled", "zh-en"), "她今天在家里看书，我们去公园。", "")
    whole, short = (computations.text(subject, Settings(new=new), "") for new in (60, 2))
    assert len(asked) == 1
    assert whole.trace is subject.trace
    assert (whole.steps.end, short.steps.end) == ("eos", "limit")
    assert short.steps.ids == whole.steps.ids[:2]
    assert len(short.trace.tokens["decoder"]) == short.start + 1
    drawn = computations.text(subject, Settings(strategy="sampling", new=60), "")
    assert len(asked) == 2
    assert drawn.trace is not subject.trace


def test_a_text_that_several_ways_find_is_scored_once_and_the_page_s_own_out_of_its_trace(monkeypatch) -> None:
    traced, trace = list[object](), Checkpoint.trace
    monkeypatch.setattr(Checkpoint, "trace", lambda *args, **rest: traced.append(rest) or trace(*args, **rest))
    subject = Subject(ModelRef("bundled", "zh-en"), "他们昨天去公园。", "")
    greedy, [beam] = ways.written_greedily(subject), ways.beams(subject, 1, 0.6)
    first = ways.first_distribution(subject)
    assert beam is greedy
    assert greedy.ended
    assert len(traced) == 1
    again = scored(subject.checkpoint, subject.text, generated(subject).ids, ended=True)
    assert (greedy.text, greedy.length) == (again.text, again.length)
    assert greedy.log_probability == pytest.approx(again.log_probability, abs=1e-4)
    assert first.tolist() == pytest.approx(first_distribution(subject.checkpoint, subject.text).tolist(), abs=1e-5)


def test_calls_of_a_session_that_wait_are_one_call_of_the_event_loop_in_their_order() -> None:
    heard, woken, failed = list[int](), list[object](), list[object]()

    async def hear() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failed.append(context["exception"]))
        call, session = loop.call_soon_threadsafe, SimpleNamespace(_event_loop=loop)
        loop.call_soon_threadsafe = lambda *args, **rest: woken.append(args) or call(*args, **rest)
        for number in (1, 2, 0, 4):
            AppSession._call_soon_on_event_loop(session, lambda number=number: heard.append(4 // number))
        await asyncio.sleep(0)
        assert (heard, len(woken)) == ([4, 2], 2)  # once more: one has failed
        await asyncio.sleep(0)
        assert (heard, len(woken)) == ([4, 2, 1], 2)
        assert [type(error) for error in failed] == [ZeroDivisionError]
        AppSession._call_soon_on_event_loop(session, lambda: heard.append(8))
        await asyncio.sleep(0)
        assert (heard, len(woken)) == ([4, 2, 1, 8], 3)

    asyncio.run(hear())


def test_a_theme_is_read_once_and_sent_at_each_run(monkeypatch) -> None:
    read, options = list[str](), config.get_options_for_section
    monkeypatch.setattr(config, "get_options_for_section", lambda name: read.append(name) or options(name))
    for section in ("theme", "theme.light", "theme.dark", "theme.sidebar"):
        first, again = CustomThemeConfig(), CustomThemeConfig()
        app_session._populate_theme_msg(first, section)
        read.clear()
        app_session._populate_theme_msg(again, section)
        assert not read
        assert again == first
        assert bool(first.ListFields()) == any(value is not None for value in options(section).values())
    light = CustomThemeConfig()
    app_session._populate_theme_msg(light, "theme.light")
    assert light.text_color == options("theme.light")["textColor"]


def test_a_place_that_is_copied_with_those_around_it_holds_their_copies() -> None:
    def page() -> None:
        from copy import deepcopy

        import streamlit as st
        from streamlit.delta_generator_singletons import context_dg_stack

        with st.container(), st.form("form"), st.container():
            st.text("before")
            places = context_dg_stack.get()
            copies = deepcopy(places)
            assert len(copies) == len(places) >= 4
            assert [one._parent for one in copies] == [None, *copies[:-1]]
            for place, copied in zip(places, copies, strict=True):
                assert copied is not place
                assert copied._cursor is not place._cursor
                assert copied._cursor.delta_path == place._cursor.delta_path
                assert copied._form_data == place._form_data
            copies[-1].text("one")
            places[-1].text("other")  # in the same place: the copy has a cursor of its own
            assert copies[-1]._cursor.delta_path == places[-1]._cursor.delta_path

    app = AppTest.from_function(page, default_timeout=60).run()
    assert not app.exception
    assert [text.value for text in app.text] == ["before", "other"]

"""The widget of a notebook: what is chosen in it is read and set, and what a browser sends is not trusted."""

import json
from collections.abc import Callable
from typing import Any

import comm
import numpy as np
import pytest
from comm.base_comm import BaseComm
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Page, expect
from traitlets import TraitError

import vizformer as vf
from tests.components.conftest import OpenFile
from vizformer import attention_view
from vizformer.components import attention, notebook
from vizformer.errors import TraceError

SENT: list[dict[str, Any]] = []


class Wire(BaseComm):
    """A connection to a browser that is not there."""

    def publish_msg(
        self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
    ) -> None:
        SENT.append({"type": msg_type, **(data or {})})


@pytest.fixture(autouse=True)
def wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm, "create_comm", lambda **options: Wire(**options))
    SENT.clear()


def arrays(*shape: int) -> np.ndarray:
    found = np.random.default_rng(3).random(shape).astype(np.float32)
    return found / found.sum(-1, keepdims=True)


def shown(picture: Any = "map", **options: Any) -> attention_view.AttentionView:
    found = vf.view(arrays(3, 4, 5, 5), list("abcde"), first_axis="layers", picture=picture, **options)
    assert isinstance(found, attention_view.AttentionView)
    return found


def report(view: attention_view.AttentionView, /, **chosen: Any) -> None:
    """What the browser sends after a press."""
    told = view.widget._chosen
    view.widget.set_state({"_report": {**told["selected"], "version": told["version"], "seq": 1, **chosen}})


def test_what_is_pressed_is_read_and_heard() -> None:
    view, heard = shown(), []
    view.observe(lambda change: heard.append((change.name, change.old, change.new)), ["layer", "head", "query", "key"])
    report(view, layer=2, head=3, query=1, key=4)
    assert (view.layer, view.head, view.query, view.key) == (2, 3, 1, 4)
    assert heard == [("layer", 0, 2), ("head", 0, 3), ("query", 0, 1), ("key", None, 4)]
    assert view.widget._chosen["version"] == 1  # the browser is not told what it said


def test_what_is_set_goes_to_the_browser_in_one_message_without_the_numbers() -> None:
    view = shown()
    assert view.head == 0
    SENT.clear()
    view.head = np.int64(3)
    (message,) = SENT
    assert list(message["state"]) == ["_chosen"]
    assert message["state"]["_chosen"]["selected"]["head"] == 3
    assert message["state"]["_chosen"]["version"] == 2
    report(view, head=1, version=1)  # pressed before the browser heard of it
    assert view.head == 3
    report(view, head=1)
    assert view.head == 1


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("head", 4, "no head 4: choose 0 to 3"),
        ("head", 10**9, "no head 1000000000: choose 0 to 3"),
        ("layer", -1, "no layer -1: choose 0 to 2"),
        ("query", "x" * 999, "no query 'x"),
        ("query", None, "no query None: choose 0 to 4"),
        ("key", float("nan"), "no key nan: choose 0 to 4"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_does(name: str, value: object, said: str) -> None:
    view = shown()
    with pytest.raises(TraitError, match=said) as error:
        setattr(view, name, value)
    assert len(str(error.value)) < 150
    assert (view.layer, view.head, view.query, view.key) == (0, 0, 0, None)


def test_layers_have_the_numbers_of_the_picture() -> None:
    trace = vf.load("zh-en").trace("我有一只猫。")
    view = vf.view(trace, site="decoder.2.cross")
    assert view.layer == 2
    with pytest.raises(TraitError, match=r"no layer 0: choose 2\."):
        view.layer = 0


def test_lines_name_one_head_or_none_and_the_text_a_token_of_either_side() -> None:
    lines = shown("lines")
    assert (lines.head, lines.query, lines.key) == (None, None, None)
    report(lines, heads=[2], pinned={"side": "query", "index": 3})
    assert (lines.head, lines.query, lines.key) == (2, 3, None)
    report(lines, heads=[1, 2])
    assert lines.head is None
    assert lines.widget.selected.heads == (1, 2)
    lines.head = 1
    assert lines.widget._chosen["selected"]["heads"] == (1,)
    lines.head, lines.key = None, 4
    assert lines.widget.selected.heads == (0, 1, 2, 3)
    assert (lines.query, lines.key) == (None, 4)
    text = shown("text")
    assert (text.query, text.key) == (4, None)
    text.key = 1
    assert (text.query, text.key) == (None, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**400), 10**400) | st.floats() | st.text(max_size=9) | st.just(1),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["side", "index", "x"]), inner, max_size=3)
    ),
    max_leaves=9,
)
FIELDS = ("layer", "head", "heads", "query", "key", "pinned", "view", "order", "colours", "threshold", "version")


@pytest.mark.parametrize("picture", ["map", "lines", "text"])
@given(said=st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_no_message_of_a_browser_is_an_error_or_chooses_what_does_not_exist(picture: str, said: Any) -> None:
    view = VIEWS.setdefault(picture, shown(picture))
    widget = view.widget
    report(view, **said) if isinstance(said, dict) else widget.set_state({"_report": said})
    widget.set_state({"_chosen": said, "_numbers": said, "layer": said, "_esm": said})
    assert widget.selected == widget.selected.within(widget.payload)
    assert widget._chosen["version"] == 1
    for name, places in widget._places.items():
        assert getattr(view, name) is None or getattr(view, name) in places


VIEWS: dict[str, attention_view.AttentionView] = {}


@pytest.mark.parametrize("value", [10**9, "1", 1.0, float("nan"), None, True, [1], {"a": 1}])
def test_a_head_that_a_browser_makes_up_leaves_the_choice_as_it_is(value: object) -> None:
    view = shown()
    report(view, head=2)
    report(view, head=value, layer=1)
    assert (view.layer, view.head) == (0, 2)


def test_several_pictures_are_a_widget_each(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setattr("IPython.display.display", lambda *all_of_them: displayed.extend(all_of_them))
    both = vf.view([arrays(1, 2, 3, 4), arrays(1, 3, 5, 5)])
    both._ipython_display_()
    assert tuple(displayed) == both.views
    both.views[1].head = 2
    assert (both.views[0].head, both.views[1].head) == (0, 2)


def test_widgets_do_not_disturb_each_other() -> None:
    one, other = shown(), shown()
    one.head = 3
    report(other, layer=1)
    assert (one.layer, one.head, other.layer, other.head) == (0, 3, 1, 0)


def test_of_many_numbers_one_head_is_sent_and_another_when_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_view, "LIMIT_BYTES", 100)
    view = shown()
    assert view.head == 0
    (opened,) = (one["state"]["_numbers"] for one in SENT if "_numbers" in one.get("state", {}))
    assert opened["held"] == "head"
    SENT.clear()
    report(view, head=3)
    numbers = [one["state"]["_numbers"] for one in SENT if "_numbers" in one.get("state", {})]
    assert [one["chosen"] for one in numbers] == [[0, 3]]
    assert view.widget.payload.map_of(0, 3)[0] == pytest.approx(arrays(3, 4, 5, 5)[0, 3], abs=1e-7)
    SENT.clear()
    view.query = 2  # of the same head
    assert not [one for one in SENT if "_numbers" in one.get("state", {})]


def test_a_notebook_keeps_a_picture_that_is_not_large_beside_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    view = shown()
    view.head = 2
    bundle, _ = view._repr_mimebundle_(include=None, exclude=None)
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == view.widget.model_id
    assert "&quot;head&quot;: 2" in bundle["text/html"]
    assert "&quot;held&quot;: &quot;all&quot;" in bundle["text/html"]
    monkeypatch.setattr(attention_view, "STILL_BYTES", 400)
    assert "&quot;held&quot;: &quot;head&quot;" in view._repr_mimebundle_()[0]["text/html"]
    monkeypatch.setattr(attention_view, "STILL_BYTES", 10)
    assert view._repr_mimebundle_()[0]["text/html"] == ""
    assert '"head": 2' in view.html  # a file begins with what was chosen
    assert view._display_() is view.widget


def test_without_anywidget_there_is_the_picture_and_the_way_to_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_view, "find_spec", lambda name: None)
    view = shown()
    assert view._repr_mimebundle_() == ({}, {})
    assert view._display_() == view.html
    with pytest.raises(TraceError, match=r'pip install "vizformer\[notebook\]"'):
        _ = view.head


# --- in a browser ----------------------------------------------------------------------------------------------------

# What anywidget does: a model with traits, and a module that is loaded and drawn.
HOST = """async ([script, state]) => {
  const heard = new Map();
  window.model = {
    state,
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; },
    save_changes: () => window.tell(JSON.stringify({ _report: state._report })),
    on: (name, call) => heard.set(name, [...(heard.get(name) ?? []), call]),
    off: (name, call) => heard.set(name, heard.get(name).filter((one) => one !== call)),
  };
  window.hear = (news) => {
    Object.assign(state, news);
    for (const name of Object.keys(news)) for (const call of heard.get(`change:${name}`) ?? []) call();
  };
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
  window.close = module.default.render({ model, el: document.querySelector("p") });
}"""

Open = Callable[[notebook.HeadsWidget], Page]


@pytest.fixture
def opened(open_file: OpenFile) -> Open:
    """A widget as a notebook opens it, connected both ways."""

    def opened(widget: notebook.HeadsWidget, style: str = "") -> Page:
        page = open_file(f"<!doctype html><style>{style}</style><p></p>")
        page.expose_function("tell", lambda said: widget.set_state(json.loads(said)))
        start = {name: getattr(widget, name) for name in ("_numbers", "_chosen", "_report")}
        page.evaluate(HOST, [widget._esm, start])
        SENT.clear()
        return page

    return opened


def pass_on(page: Page) -> None:
    """What Python has sent since."""
    for one in SENT:
        if state := {name: value for name, value in one.get("state", {}).items() if name != "_report"}:
            page.evaluate("news => window.hear(news)", state)
    SENT.clear()


def wait(page: Page, until: Callable[[], bool]) -> None:
    for _ in range(300):
        if until():
            return
        page.evaluate("() => new Promise(requestAnimationFrame)")
    raise AssertionError("the widget did not hear of it")


@pytest.mark.browser
def test_both_ways_in_a_browser(opened: Open) -> None:
    view = shown()
    page = opened(view.widget)
    page.locator('.vf-tile[data-layer="1"][data-head="2"]').click()
    wait(page, lambda: (view.layer, view.head) == (1, 2))
    view.head, view.query, view.key = 3, 4, 1
    pass_on(page)
    expect(page.locator(".vf-attention")).to_have_attribute("data-head", "3")
    weight = arrays(3, 4, 5, 5)[1, 3, 4, 1]
    expect(page.locator(".vf-readout")).to_have_text(f"query 4 “e” attends to key 1 “b” with weight {weight:.4f}")
    page.evaluate("close()")
    assert page.locator(".vf-attention").count() == 0
    view.head = 1
    pass_on(page)  # nobody listens any more


@pytest.mark.browser
def test_a_head_that_is_not_there_comes_when_it_is_pressed(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_view, "LIMIT_BYTES", 100)
    view = shown()
    page = opened(view.widget)
    page.locator('.vf-tile[data-layer="2"][data-head="1"]').click()
    wait(page, lambda: view.head == 1)
    pass_on(page)
    largest = arrays(3, 4, 5, 5)[2, 1, 0].max()
    expect(page.locator(".vf-readout")).to_contain_text(f"{largest:.4f}")


@pytest.mark.browser
@pytest.mark.parametrize("picture", ["lines", "text"])
def test_lines_and_the_text_are_pressed_too(opened: Open, picture: str) -> None:
    view = shown(picture)
    page = opened(view.widget)
    token = page.get_by_text("c", exact=True).first
    token.click()
    wait(page, lambda: view.query == 2)
    view.layer = 2
    pass_on(page)
    expect(page.locator(".vf-lines, .vf-reading")).to_have_attribute("data-layer", "2")


@pytest.mark.browser
def test_the_notebook_and_the_picture_do_not_reach_each_other(opened: Open) -> None:
    """Neither styles, nor keys, which delete cells in JupyterLab; it is as dark as the notebook is."""
    view = shown()
    page = opened(
        view.widget, "canvas { display: none } body { background: #111 } .light { background: #fff !important }"
    )
    picture = page.locator("p > div")
    expect(page.locator(".vf-over")).to_be_visible()
    assert "dark" in (picture.get_attribute("class") or "")
    assert page.locator("body").evaluate("one => getComputedStyle(one).boxSizing") == "content-box"
    page.evaluate("window.keys = []; addEventListener('keydown', (event) => keys.push(event.key))")
    page.locator(".vf-over").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    wait(page, lambda: view.query == 1)
    assert page.evaluate("keys") == []
    page.evaluate("document.body.classList.add('light')")
    expect(picture).not_to_have_class("dark")


def test_the_caption_stands_above_the_picture_and_texts_are_texts() -> None:
    view = vf.view(arrays(1, 2, 3, 3) * 0.9, ["<b>", "</script>", '"'], first_axis="layers")
    assert "do not sum to 1" in view.widget._numbers["notes"][0]
    assert attention.VIEW.component.notebook_script.count("export default") == 1

"""When Python hears of a choice, in Chromium with a clock that stands still until it is told."""

from pathlib import Path

import pytest

from tests.components.conftest import OpenFile
from vizformer.components import attention
from vizformer.components._bundle import read_module

pytestmark = pytest.mark.browser

JS = Path(attention.__file__).parent / "js"
TALK = """([addressed, chosen]) => {
  %s
  %s
  window.told = [];
  window.conversation = new Conversation();
  conversation.listen({ data: { version: 1, selected: null }, setStateValue: (name, value) => told.push(value.head) });
  const model = { held: "head", queries: 2, keys: 2, chosen, addressed, computed: null };
  conversation.tell({ head: 5 }, patience(model, 0, 5));
}"""


@pytest.fixture
def talk(open_file: OpenFile):
    def begin(*, addressed: bool, here: bool):
        page = open_file("<p></p>")
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        bodies = [read_module(JS / name).body for name in ("heads.js", "conversation.js")]
        page.evaluate(TALK % tuple(bodies), [addressed, [0, 5] if here else [0, 0]])

        def told_after(milliseconds: int) -> list[int]:
            page.clock.run_for(milliseconds)
            return page.evaluate("told")

        return page, told_after

    return begin


def test_a_head_that_python_has_to_send_is_asked_for_at_once(talk) -> None:
    _, told_after = talk(addressed=False, here=False)
    assert told_after(1) == [5]


def test_a_head_that_is_here_is_told_after_the_choices_that_follow_quickly(talk) -> None:
    _, told_after = talk(addressed=True, here=True)
    assert told_after(100) == []
    assert told_after(60) == [5]


def test_the_page_does_not_run_while_the_browser_fetches_and_computes_a_head(talk) -> None:
    page, told_after = talk(addressed=True, here=False)
    assert told_after(600) == []
    page.evaluate("conversation.hasten()")  # the head is there
    assert told_after(160) == [5]
    page.evaluate("conversation.hasten()")  # nothing is left to be told
    assert told_after(2000) == [5]


def test_the_page_hears_of_a_head_that_takes_long_all_the_same(talk) -> None:
    _, told_after = talk(addressed=True, here=False)
    assert told_after(990) == []
    assert told_after(20) == [5]

"""From Open your own to the heads: what is large says what it is while it is read, and what was checked of it."""

from collections.abc import Callable

import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from tests.bundled import load
from tests.checkpoints import folders as made
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.refs import stamped
from vizformer.checkpoints import agreement_check, save
from vizformer.checkpoints.agreement_check import Agreement
from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.web.catalogue import followed_work, model_cache, server_folder
from vizformer.web.pages.attention import choices

pytest.importorskip("transformers")
OPEN, ATTENTION, REPORT = "pages/checkpoint/open.py", "pages/explore/attention.py", "pages/checkpoint/report.py"
TEXT = "I have two dogs"


@pytest.fixture(autouse=True)
def shelf(tmp_path, monkeypatch):
    made.gpt2(tmp_path / "mine")
    monkeypatch.setenv(server_folder.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("whole", [True, False])
def test_what_opens_leads_to_its_heads_and_what_does_not_to_the_reason(open_app: Open, shelf, whole: bool) -> None:
    if not whole:
        file = shelf / "mine" / "model.safetensors"
        file.write_bytes(file.read_bytes()[:-8])
    app = open_app(OPEN, text=TEXT)
    app.selectbox(key="view.model").set_value(stamped("models/mine").base).run()
    assert not app.exception
    assert ("What comes next?" in said(app)) == whole
    assert ("This model does not open" in said(app)) != whole


@pytest.mark.parametrize(
    ("locale", "words"), [("en-US", ("decoder only", "are free")), ("zh-CN", ("仅解码器", "空闲"))]
)
def test_while_it_is_read_it_says_what_it_is_and_can_be_stopped(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, locale: str, words: tuple[str, ...]
) -> None:
    def half_way(model: object, hear: Callable[[int, int], None]) -> None:
        hear(1, 4)
        hear(2, 4)
        st.stop()

    monkeypatch.setattr(followed_work, "LARGE", 1)
    with monkeypatch.context() as held:
        held.setattr(followed_work, "follow", half_way)
        held.setattr(DeltaGenerator, "empty", lambda self: self)  # what is left when the reading ends stays
        app = open_app(ATTENTION, locale=locale, model="models/mine", text=TEXT)
        assert not app.exception
        assert all(
            word in said(app).replace("\\", "")
            for word in ("GPT-2", "parameters" if locale == "en-US" else "参数", *words)
        )
        assert "50%" in app.get("progress")[0].proto.text
    app.button(key="opening.stop").click().run()
    assert str(app.selectbox(key="view.model").value) != "models/mine"
    app = open_app(ATTENTION, locale=locale, model="models/mine", text=TEXT)  # read to its end
    assert not app.error
    assert not [box for box in app.button if box.key == "opening.stop"]


def test_the_checks_of_a_model_stand_above_its_heads(open_app: Open, shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(ATTENTION, model="models/mine", text=TEXT)
    n = len(model_cache.glance(stamped("models/mine")).tensors)
    assert f"{n} of {n} tensors used" in said(app)
    assert "Comparing with transformers" in said(app)
    assert "tensors used" not in said(open_app(ATTENTION, model="stories", text=TEXT))
    save(load("induction-by-hand"), shelf / "ours")
    assert "compared with no other program" in said(open_app(ATTENTION, model="models/ours", text="a b c a b"))
    monkeypatch.setattr(choices, "is_possible", lambda: False)
    assert "not installed here" in said(open_app(ATTENTION, model="models/mine", text=TEXT))


@pytest.mark.parametrize("apart", [1e-7, 1e-2, None])
def test_a_comparison_begins_once_the_picture_is_there(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, apart: float | None
) -> None:
    began: list[str] = []

    def compared(ours: object, folder: object, text: str) -> Agreement:
        began.append(text)
        if apart is None:
            raise CheckpointError(N_("There is no memory for a second copy."))
        return Agreement(tokens=4, maps=apart, z=0.0, logits=None, version="9.8.7")

    monkeypatch.setattr(agreement_check, "agreement", compared)
    app = open_app(ATTENTION, model="models/mine", text=TEXT)
    app.run()
    assert not began
    monkeypatch.setattr(choices, "_has_time_passed", lambda: True)
    for __ in range(2):
        app.run()
        for work in choices.COMPARING.going():
            assert work.ended.wait(60)
    assert began == [TEXT]
    words = {
        1e-7: "As in transformers 9.8.7",
        1e-2: "**Not as in transformers",
        None: "no memory for a second",
    }
    assert words[apart] in said(app)
    app.query_params["text"] = "I have a cat"
    app.run()
    assert began == [TEXT]  # it was the text that the model opened on
    assert words[apart] in said(app)

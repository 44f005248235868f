"""Two tokens that read the same, such as "I" and the one with a space before it, are told apart wherever both are listed."""

from dataclasses import replace
from functools import partial

import pytest

from tests.bundled import load
from tests.pages.conftest import Open
from tests.pages.reading import said
from tests.refs import subject
from vizformer.analysis.one_forward.predictions import Prediction
from vizformer.analysis.side_by_side.heads import two_answers
from vizformer.web.catalogue import subject_cache
from vizformer.web.pages.generation import computations as generated
from vizformer.web.pages.side_by_side import pair as beside
from vizformer.web.widgets.whole_model import picture

CAT = "我有一只猫。"
LENS, SIDE, IF = "pages/explore/lens.py", "pages/explore/side_by_side.py", "pages/explore/what_if.py"


@pytest.fixture(scope="module")
def twins() -> tuple[Prediction, ...]:
    """Two tokens whose texts are "I"."""
    checkpoint = load("zh-en")
    every = checkpoint.tokenizer.tokens(list(range(checkpoint.model.config.vocab_size)))
    first, second = (token for token in every if token.text == "I")
    return Prediction(first, 0.75), Prediction(second, 0.25)


def test_as_the_answer_that_the_lens_looks_at(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, twins: tuple[Prediction, ...]
) -> None:
    monkeypatch.setattr(subject_cache, "predictions", lambda *_: twins)
    app = open_app(LENS, model="zh-en", text=CAT, position=0)
    options = next(box.options for box in app.selectbox if any("“I”" in option for option in box.options))
    assert sum("“I”" in option for option in options) == 1 + ("“I”" in options[0])  # the model's own is named once more
    assert any("“␣I”" in option for option in options)


def test_side_by_side(open_app: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "answers", beside.of_runs(partial(two_answers, count=100)))
    app = open_app(SIDE, model="zh-en", text=CAT, second="我有一只狼。", position=0)
    assert ">␣I<" in said(app)
    assert ">I<" in said(app)


def test_as_the_answer_to_a_prompt(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, twins: tuple[Prediction, ...]
) -> None:
    monkeypatch.setattr(subject_cache, "predictions", lambda *_: twins)
    app = open_app(IF, model="stories", text="A cat sat on", second="A dog sat on", dials="whatif.way:between")
    options = next(box.options for box in app.selectbox if any("“I”" in option for option in box.options))
    assert "“␣I”" in options


def test_beside_numbers_that_are_set(
    open_app: Open, monkeypatch: pytest.MonkeyPatch, twins: tuple[Prediction, ...]
) -> None:
    monkeypatch.setattr(subject_cache, "predictions", lambda *_: twins)
    app = open_app("pages/learn/qkv.py", model="zh-en", text=CAT, edits="encoder.0.self.q@0,0,0=30", query=0, step=1)
    assert "␣I " in said(app)


def test_among_the_candidates_of_a_step_and_of_a_beam(twins: tuple[Prediction, ...]) -> None:
    ids = sorted(one.token.id for one in twins)
    assert sorted(generated._names(load("zh-en").tokenizer, ids).values()) == ["I", "␣I"]


def test_on_the_page_start(monkeypatch: pytest.MonkeyPatch, twins: tuple[Prediction, ...]) -> None:
    about = subject("zh-en", CAT)
    found = replace(picture.numbers(about), candidates=(twins,))
    monkeypatch.setattr(picture, "numbers", lambda *_about, every: found)
    [row] = picture.drawn(about).candidates
    assert sorted(one.text for one in row) == ["I", "␣I"]

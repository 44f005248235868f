"""What weights leave open: asked first, taken as usual only where the rest was answered, and listed while nobody says."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests import tiny
from tests.handmade_models import MODELS
from vizformer.checkpoints import Question, UnansweredError, load
from vizformer.checkpoints.tensors.questions import resolve
from vizformer.messages import N_

HEADS = Question("n_heads", N_("How many?"), (1, 2, 4))
ROWS = Question("qkv_rows", N_("How?"), ("q_k_v", "by_head"), moot={"n_heads": (1,)})
SCALE = Question("score_scale", N_("By what?"), ("root", "nothing"), usual="root", insists=True)
EPS = Question("norm_eps", N_("How much?"), usual=1e-5, likely=(1e-5, 1e-6), lowest=1e-30, highest=0.5)
ALL = (HEADS, ROWS, SCALE, EPS)


def left(given: dict[str, Any], said: dict[str, dict[str, Any]]) -> set[str]:
    """The questions that the error names; empty where the answers suffice."""
    try:
        resolve(ALL, given, said, "model.pt")
    except UnansweredError as error:
        return {question.name for question in ALL if f"{question.name}=..." in str(error)}
    return set()


def test_what_insists_is_asked_until_the_rest_is_answered() -> None:
    assert left({}, {}) == {"n_heads", "qkv_rows", "score_scale"}
    assert left({"n_heads": 2}, {}) == {"qkv_rows", "score_scale"}
    beside = {"cfg": {"n_head": 1}}
    assert left({}, beside) == {"score_scale"}
    assert not left({"n_heads": 2, "qkv_rows": "by_head"}, {})  # a link from before the scale was asked


def test_what_decides_nothing_is_not_asked_and_not_taken() -> None:
    assert left({"score_scale": "root"}, {"cfg": {"n_head": 1}}) == set()
    answers = resolve(ALL, {"score_scale": "root", "qkv_rows": "by_head"}, {"cfg": {"n_head": 1}}, "model.pt")
    assert answers.values == {"n_heads": 1, "score_scale": "root", "norm_eps": 1e-5}
    assert answers.taken == {"n_heads": "beside", "score_scale": "given", "norm_eps": "usual"}
    assert [note.values["name"] for note in answers.notes] == ["n_heads", "score_scale", "norm_eps"]


def test_what_nobody_answered_stays_open_in_the_report(tmp_path: Path) -> None:
    torch.save(tiny.randomise(MODELS["fused"].make()).state_dict(), tmp_path / "model.pt")
    with pytest.raises(UnansweredError) as caught:
        load(tmp_path / "model.pt")
    assert "score_scale" not in caught.value.answers
    report = load(tmp_path / "model.pt", **MODELS["fused"].answers).report
    open_still = {question.name: question for question in report.open_questions}
    assert {"score_scale", "norm_eps"} <= open_still.keys()
    assert all(len(question.possible) > 1 for question in open_still.values())
    assert all(report.answers[name] in question.possible for name, question in open_still.items())
    again = load(tmp_path / "model.pt", **report.answers).report
    assert again.answers == report.answers
    assert not again.open_questions


def test_a_model_that_says_itself_what_it_is_leaves_nothing_open() -> None:
    assert load("stories").report.open_questions == ()


def test_one_head_has_its_rows_in_one_order_only(tmp_path: Path) -> None:
    model = tiny.randomise(MODELS["fused, keys first"].make())
    torch.save({"state_dict": model.state_dict(), "hyper_parameters": {"n_heads": 1}}, tmp_path / "last.ckpt")
    with pytest.raises(UnansweredError) as caught:
        load(tmp_path / "last.ckpt")
    assert caught.value.answers["n_heads"] == 1
    assert "qkv_rows=..." not in str(caught.value)

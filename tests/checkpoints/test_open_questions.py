"""What weights leave open: asked first, taken as usual only where the rest was answered, and listed while nobody says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests import conventions, tiny
from vizformer.checkpoints import Question, UnansweredError, load
from vizformer.checkpoints.tensors.questions import MAX_POSITIONS, resolve
from vizformer.errors import CheckpointError
from vizformer.messages import N_

HEADS = Question("n_heads", N_("How many?"), (1, 2, 4))
ROWS = Question("scaled_rows", N_("How?"), ("head_by_head", "in_turn", "none"), moot={"n_heads": (1,)})
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
    assert left({}, {}) == {"n_heads", "scaled_rows", "score_scale"}
    assert left({"n_heads": 2}, {}) == {"scaled_rows", "score_scale"}
    beside = {"cfg": {"n_head": 1}}
    assert left({}, beside) == {"score_scale"}
    assert not left({"n_heads": 2, "scaled_rows": "in_turn"}, {})  # a link from before the scale was asked


def test_what_decides_nothing_is_not_asked_and_not_taken() -> None:
    assert left({"score_scale": "root"}, {"cfg": {"n_head": 1}}) == set()
    answers = resolve(ALL, {"score_scale": "root", "scaled_rows": "in_turn"}, {"cfg": {"n_head": 1}}, "model.pt")
    assert answers.values == {"n_heads": 1, "score_scale": "root", "norm_eps": 1e-5}
    assert answers.taken == {"n_heads": "beside", "score_scale": "given", "norm_eps": "usual"}
    assert [note.values["name"] for note in answers.notes] == ["n_heads", "score_scale", "norm_eps"]


def test_an_answer_that_the_others_leave_no_place_for_is_refused_unless_it_says_what_is_so_anyway() -> None:
    usual = replace(ROWS, usual="head_by_head")
    with pytest.raises(CheckpointError, match=r"scaled_rows=in_turn has no effect where n_heads=1: leave it out"):
        resolve((HEADS, usual), {"n_heads": 1, "scaled_rows": "in_turn"}, {}, "model.pt")
    for same in ("head_by_head", "none", None):
        assert resolve((HEADS, usual), {"n_heads": 1, "scaled_rows": same}, {}, "model.pt").values == {"n_heads": 1}
    answers = {"n_heads": 1, "scaled_rows": "in_turn"}  # as a form sends what it has read beside the weights
    assert resolve((HEADS, usual), answers, {"cfg": {"scaled_rows": "in_turn"}}, "model.pt").values == {"n_heads": 1}
    assert (
        resolve((HEADS, usual), {"n_heads": 2, "scaled_rows": "in_turn"}, {}, "model.pt").values["scaled_rows"]
        == "in_turn"
    )


@pytest.mark.parametrize(
    ("name", "value", "answer"),
    [
        ("n_heads", np.int64(4), 4),
        ("norm_eps", np.float32(0.25), 0.25),
        ("norm_eps", np.float64(1e-6), 1e-6),
        ("score_scale", np.str_("root"), "root"),
        ("masked", np.bool_(True), True),
        ("n_heads", np.int64(3), None),
        ("max_positions", 1e3, 1000),
        ("max_positions", "1e3", 1000),
        ("max_positions", "1000", 1000),
        ("max_positions", 1000.5, None),
        ("max_positions", "inf", None),
        ("n_heads", np.array([4]), None),
        ("n_heads", np.bool_(True), None),
    ],
)
def test_scalars_of_numpy_are_answers(name: str, value: Any, answer: Any) -> None:
    others = (Question("masked", N_("Is it?"), (False, True)), MAX_POSITIONS)
    (question,) = [one for one in (*ALL, *others) if one.name == name]
    read = question.read(value)
    assert (type(read), read) == (type(answer), answer)


def test_what_nobody_answered_stays_open_in_the_report(tmp_path: Path) -> None:
    kind = conventions.KINDS["PyTorch's, over the batch"]
    torch.save(tiny.randomise(kind.make()).state_dict(), tmp_path / "model.pt")
    with pytest.raises(UnansweredError) as caught:
        load(tmp_path / "model.pt")
    assert "attention_over" not in caught.value.answers
    report = load(tmp_path / "model.pt", **kind.strict).report
    open_still = {question.name: question for question in report.open_questions}
    assert {"attention_over", "norm_eps"} <= open_still.keys()
    assert all(len(question.possible) > 1 for question in open_still.values())
    assert all(report.answers[name] in question.possible for name, question in open_still.items())
    again = load(tmp_path / "model.pt", **report.answers).report
    assert again.answers == report.answers
    assert not again.open_questions


def test_a_model_that_says_itself_what_it_is_leaves_nothing_open() -> None:
    assert load("stories").report.open_questions == ()

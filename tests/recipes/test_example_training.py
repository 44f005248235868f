"""The bundled training: it is the plan's, its last model has learned, and its first one has not."""

import pytest
import torch

from recipes.example_training import NAME, PLAN
from vizformer.assets import asset
from vizformer.model import Transformer
from vizformer.training.runs import Run


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(asset("trainings", NAME))


def test_the_bundled_training_is_over_and_has_every_snapshot(run: Run) -> None:
    progress = run.progress()
    assert run.plan == PLAN
    assert progress.ending == "done"
    assert tuple(kept.step for kept in progress.snapshots) == PLAN.kept


@pytest.mark.sweep
def test_its_first_snapshot_is_the_untrained_model_of_the_plan(run: Run) -> None:
    torch.manual_seed(PLAN.seed)
    untrained = Transformer(PLAN.config).state_dict()
    for name, tensor in run.checkpoint(0).model.state_dict().items():
        torch.testing.assert_close(tensor, untrained[name], atol=1e-3, rtol=1e-3)  # kept in half precision


def test_its_last_snapshot_answers_what_it_was_not_trained_on(run: Run) -> None:
    first, last = run.progress().snapshots[0], run.progress().snapshots[-1]
    assert first.marks.accuracy < 0.05
    assert last.marks.accuracy > 0.95


def test_an_induction_head_grows_on_the_way(run: Run) -> None:
    from vizformer.analysis.training.small_trainings import repetition_scores

    before, after = (repetition_scores(run.checkpoint(index), PLAN).induction.max() for index in (0, -1 % 23))
    assert before < 0.3
    assert after > 0.5

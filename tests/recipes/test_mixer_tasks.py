"""The small trainings by mixer: their rows ask what they should, the bundled ones show what the lesson says."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from recipes import mixer_tasks
from recipes.mixer_tasks import RECIPE, STATES, accuracy, answered, new_model, rows_of, train
from vizformer.analysis.costs.state_bytes import kept_bytes
from vizformer.analysis.training.small_trainings import task_accuracies
from vizformer.assets import asset
from vizformer.model import count_parameters

BUNDLED = json.loads(asset("lessons", "mixers", "tasks.json").read_text(encoding="utf-8"))
SMALL = replace(RECIPE, longest=4, lengths=(2, 4), measured=64, rows=16, keys=8, n_values=4, warmup=20)


def test_a_key_is_asked_for_its_own_value() -> None:
    batch = rows_of("recall", 5, 7, torch.Generator().manual_seed(0))
    assert batch.values is not None
    assert batch.ids.shape == batch.values.shape == (7, 10)
    assert not batch.values[:, 5:].any()  # the questions do not bring the answer along
    for ids, values, answers in zip(*(part.tolist() for part in batch), strict=True):
        told = dict(zip(ids[:5], values[:5], strict=True))
        assert len(told) == 5
        assert [told[key] - 1 for key in ids[5:]] == answers


def test_a_copy_is_asked_for_one_token_ahead() -> None:
    batch = rows_of("copy", 5, 7, torch.Generator().manual_seed(0))
    assert batch.values is None
    assert batch.ids.shape == (7, 10)
    assert torch.equal(batch.answers, batch.ids[:, :5])
    assert torch.equal(batch.answers[:, :-1], batch.ids[:, 6:])
    assert (batch.ids[:, 5] == RECIPE.keys).all()
    assert all(len(set(row)) == 5 for row in batch.answers.tolist())


@pytest.mark.parametrize("mixer", STATES)
def test_no_answer_is_read_from_a_later_token(mixer: str) -> None:
    batch = rows_of("copy", 4, 2, torch.Generator().manual_seed(0), SMALL)
    model = new_model(mixer, "copy", 0, SMALL).eval()
    other = batch._replace(ids=torch.cat([batch.ids[:, :-1], (batch.ids[:, -1:] + 1) % SMALL.keys], 1))
    with torch.no_grad():
        both = [answered(model, one)[:, :-1] for one in (batch, other)]
    torch.testing.assert_close(*both)


@pytest.mark.sweep
def test_a_training_learns_and_repeats_itself() -> None:
    short = replace(SMALL, updates=150)
    untrained = accuracy(new_model("softmax", "recall", 0, short), "recall", 2, short)
    found = train("softmax", "recall", 0, short)
    assert found["accuracies"][0] > untrained + 0.3
    assert train("softmax", "recall", 0, short)["accuracies"] == found["accuracies"]


def test_a_short_measurement_has_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def quick(mixer: str, task: str, seed: int, recipe: object) -> dict[str, object]:
        return {"seed": seed, "accuracies": [1.0] * len(RECIPE.lengths), "seconds": 1.0}

    monkeypatch.setattr(mixer_tasks, "train", quick)
    said = list[str]()
    found = task_accuracies(mixer_tasks.measure(say=said.append))
    assert len(said) == 8
    assert {task: [one.mixer for one in rows] for task, rows in found.items()} == {
        task: list(STATES) for task in ("recall", "copy")
    }


def test_the_bundled_accuracies_are_of_this_recipe() -> None:
    assert BUNDLED["recipe"] == json.loads(json.dumps(asdict(RECIPE)))
    for task, rows in task_accuracies(BUNDLED).items():
        for one in rows:
            assert one.config == RECIPE.config(one.mixer, task)  # type: ignore[arg-type]
            assert one.parameters == count_parameters(one.config)
            assert one.accuracies.shape == (len(RECIPE.seeds), len(RECIPE.lengths))


def test_what_the_lesson_says_of_the_bundled_trainings_holds() -> None:
    recall, copy = (
        {one.mixer: one for one in rows} for rows in map(task_accuracies(BUNDLED).__getitem__, ("recall", "copy"))
    )
    for rows in (recall, copy):
        for mixer in ("softmax", "hybrid"):  # with a cache nothing is lost within the trained length
            assert rows[mixer].accuracies.min() > 0.9
        for mixer in ("delta", "space"):
            assert rows[mixer].accuracies[:, -1].max() < rows["hybrid"].accuracies[:, -1].min() - 0.1
            assert (rows[mixer].mean[0] > rows[mixer].mean[-1] + 0.2).all()
    sizes = {mixer: [kept_bytes(one.config, n).total for n in (2, 32)] for mixer, one in recall.items()}
    assert sizes["softmax"][1] == 16 * sizes["softmax"][0]
    assert sizes["delta"][0] == sizes["delta"][1] == sizes["space"][0]

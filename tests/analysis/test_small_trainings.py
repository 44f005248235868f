"""What is told of the bundled small trainings."""

import math

import pytest

from vizformer.analysis.training.small_trainings import by_smoothing, left_out_curves


def run(smoothing: float, seed: int, loss: float, bleu: float) -> dict[str, object]:
    at = {"loss": loss, "right": 0.5, "sure": 0.6}
    return {
        "smoothing": smoothing,
        "seed": seed,
        "curve": [{"step": 100, **at, "loss": loss + 1}, {"step": 200, **at}],
        "last": {**at, "bleu": bleu},
    }


NOTES = {"runs": [run(0.0, 0, 2.0, 10.0), run(0.1, 0, 2.5, 11.0), run(0.0, 1, 3.0, 12.0), run(0.1, 1, 2.7, 14.0)]}


def test_the_perplexity_is_of_the_mean_loss_over_the_seeds() -> None:
    found = by_smoothing(NOTES)
    assert list(found) == [0.0, 0.1]
    assert found[0.0].steps == (100, 200)
    assert found[0.0].perplexities == pytest.approx([math.exp(3.5), math.exp(2.5)])
    assert found[0.0].perplexity == pytest.approx(math.exp(2.5))
    assert found[0.1].bleus == (11.0, 14.0)
    assert found[0.1].bleu == 12.5
    assert (found[0.1].sure, found[0.1].right) == (pytest.approx(0.6), 0.5)


def test_the_curves_of_every_seed_and_how_many_learned() -> None:
    found = left_out_curves({"guessing": 2.8, "loss": {"nothing": [[3.0, 1.0], [2.0, 0.5]]}})
    assert found["nothing"].curves.tolist() == [[3.0, 1.0], [2.0, 0.5]]
    assert found["nothing"].last.tolist() == [1.0, 0.5]
    assert found["nothing"].learned == 1

"""What is told of the bundled small trainings."""

from vizformer.analysis.small_trainings import left_out_curves


def test_the_curves_of_every_seed_and_how_many_learned() -> None:
    found = left_out_curves({"guessing": 2.8, "loss": {"nothing": [[3.0, 1.0], [2.0, 0.5]]}})
    assert found["nothing"].curves.tolist() == [[3.0, 1.0], [2.0, 0.5]]
    assert found["nothing"].last.tolist() == [1.0, 0.5]
    assert found["nothing"].learned == 1

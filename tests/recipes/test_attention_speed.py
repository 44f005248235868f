"""The curves that the lesson Costs shows at first: every way at every length, and what they were measured on."""

import json
from collections.abc import Iterator

import pytest

from recipes import attention_speed
from vizformer.analysis.costs.attention_speed import COMPARISONS, LAYER_WIDTH, Kind, Measured, due
from vizformer.assets import asset

BUNDLED = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))


def test_the_shortest_of_all_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = {kind: iter([3.0, 2.0, 5.0, 4.0, 6.0] * 4) for kind in COMPARISONS}

    def measure(kind: Kind) -> Iterator[Measured]:
        seconds = next(rounds[kind])
        yield from (Measured("full", 128, seconds, 512), Measured("linear", 128, 10 - seconds, 256))

    monkeypatch.setattr(attention_speed, "measure", measure)
    found = attention_speed.measured()
    for kind in COMPARISONS:
        assert [one["seconds"] for one in found[kind]] == [2.0, 4.0]
    assert found["processor"]


def test_the_bundled_measurement_is_whole_and_says_what_the_lesson_says() -> None:
    ways, lengths = COMPARISONS["heads"].ways, COMPARISONS["heads"].lengths
    found = {(one["way"], one["n"]): one for one in BUNDLED["heads"]}
    assert list(found) == due("heads")
    longest = {way: found[way, lengths[-1]] for way in ways}
    assert longest["full"]["seconds"] > longest["fused"]["seconds"] > longest["windowed"]["seconds"]
    assert longest["full"]["nbytes"] >= 2 * 4 * lengths[-1] ** 2  # the map, twice
    assert BUNDLED["processor"]


def test_the_steps_of_the_recurrent_layer_take_longer_than_its_multiplications_say() -> None:
    found = {(one["way"], one["n"]): one["seconds"] for one in BUNDLED["layers"]}
    assert list(found) == due("layers")
    for n in (2 * LAYER_WIDTH, 4 * LAYER_WIDTH):  # where it has fewer multiplications
        assert found["gru", n] > found["attention", n]
        assert found["gru_backward", n] > found["attention_backward", n]

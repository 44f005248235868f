"""The curves that the lesson Costs shows at first: every way at every length, and what they were measured on."""

import json
from collections.abc import Iterator

import pytest

from recipes import attention_speed
from vizformer.analysis.costs.attention_speed import LENGTHS, WAYS, Measured
from vizformer.assets import asset

BUNDLED = json.loads(asset("lessons", "costs", "attention_speed.json").read_text(encoding="utf-8"))


def test_the_shortest_of_all_rounds_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = iter([3.0, 2.0, 5.0, 4.0, 6.0])

    def measure() -> Iterator[Measured]:
        seconds = next(rounds)
        yield from (Measured("full", 128, seconds, 512), Measured("linear", 128, 10 - seconds, 256))

    monkeypatch.setattr(attention_speed, "measure", measure)
    found = attention_speed.measured()
    assert [one["seconds"] for one in found["measured"]] == [2.0, 4.0]
    assert found["processor"]


def test_the_bundled_measurement_is_whole_and_says_what_the_lesson_says() -> None:
    found = {(one["way"], one["n"]): one for one in BUNDLED["measured"]}
    assert set(found) == {(way, n) for way in WAYS for n in LENGTHS}
    longest = {way: found[way, LENGTHS[-1]] for way in WAYS}
    assert longest["full"]["seconds"] > longest["fused"]["seconds"] > longest["windowed"]["seconds"]
    assert longest["full"]["nbytes"] >= 2 * 4 * LENGTHS[-1] ** 2  # the map, twice
    assert BUNDLED["processor"]

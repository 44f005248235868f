"""How much of the translator's batches is padding: counted as the batches are, and bundled."""

import json
import random

from recipes.batches import pair_batches
from recipes.padding_waste import counted, mixed
from vizformer.assets import asset

BUNDLED = json.loads(asset("lessons", "training", "padding.json").read_text(encoding="utf-8"))


def test_tokens_and_cells_are_counted() -> None:
    pairs = [([5, 6, 2], [1, 7, 2]), ([8, 2], [1, 9, 9, 9, 2])]
    found = counted(pair_batches(pairs, tokens_per_batch=100, pad_id=0, seed=None), 0)
    assert found == {"batches": 1, "cells": 2 * 3 + 2 * 5, "tokens": 3 + 3 + 2 + 5}


def test_mixed_batches_hold_the_same_pairs_and_more_padding() -> None:
    rng = random.Random(0)
    pairs = [([5] * rng.randint(2, 30), [1] * rng.randint(2, 30)) for _ in range(60)]
    by_length = list(pair_batches(pairs, tokens_per_batch=300, pad_id=0, seed=1))
    first = counted(by_length, 0)
    second = counted(mixed(pairs, [len(batch.source) for batch in by_length], 0), 0)
    assert first["tokens"] == second["tokens"] == sum(len(source) + len(target) for source, target in pairs)
    assert first["batches"] == second["batches"]
    assert first["cells"] < second["cells"]


def test_the_bundled_measurement_is_of_the_translators_training() -> None:
    assert BUNDLED["pairs"] == 27_277  # as in the model's card
    assert BUNDLED["length"]["tokens"] == BUNDLED["mixed"]["tokens"]
    waste = {name: 1 - BUNDLED[name]["tokens"] / BUNDLED[name]["cells"] for name in ("length", "mixed")}
    assert waste["length"] < 0.25 < 0.5 < waste["mixed"]

"""What heads carry: a head of its own is found where there is one, and none in noise; the bundled numbers can be remade."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.bundled import load
from vizformer.analysis import bundled_set, over_prompts
from vizformer.analysis.causes.ablation import Part
from vizformer.analysis.causes.asked_prompts import KINDS, MODEL, roles_of_heads
from vizformer.analysis.corpus_heads.report import digest
from vizformer.assets import asset

HEADS = [Part(f"decoder.{layer}.cross", head) for layer in range(3) for head in range(4)]
ROWS = 24


def effects(seed: int, own: float) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Noise, a head that every kind loses by, and `own` times that for names at head 5."""
    rng = np.random.default_rng(seed)
    found = {}
    for kind in ("names", "numbers", "things"):
        values = rng.normal(0, 0.3, (ROWS, len(HEADS)))
        values[:, 0] -= 2
        values[:, 5] -= own if kind == "names" else 0.5
        found[kind] = values, rng.normal(8, 1, ROWS)
    return found


def test_a_head_of_its_own_is_found_and_no_other() -> None:
    found = roles_of_heads(effects(0, own=3.0), HEADS)
    assert np.argwhere(found.own).tolist() == [[0, 5]]
    assert found.strongest("names") == 5
    assert found.strongest("numbers") == 0  # the strongest of those that carry everything
    assert found.shares[0, 5] == pytest.approx(3 / 8, abs=0.03)
    assert found.low[0, 5] < found.shares[0, 5] < found.high[0, 5]
    assert found.kinds[found.most_of_others("names", 5)] in ("numbers", "things")
    assert found.rows == (ROWS,) * 3


def test_a_head_of_its_own_comes_before_every_larger_share() -> None:
    found = roles_of_heads(effects(0, own=3.0), HEADS)
    larger = replace(found, shares=np.where(found.own, found.shares, found.shares + 1e6))
    assert larger.strongest("names") == 5
    assert replace(larger, own=np.ones_like(found.own)).strongest("names") != 5


def test_noise_gives_no_head_of_its_own() -> None:
    assert sum(int(roles_of_heads(effects(seed, own=0.5), HEADS).own.sum()) for seed in range(5)) == 0


def test_the_bundled_measurement_is_of_the_bundled_weights() -> None:
    """After new weights: python -m recipes.head_roles assets/lessons/heads/roles.json."""
    said = json.loads(asset("lessons", "heads", "roles.json").read_text(encoding="utf-8"))
    assert said["weights"] == digest(asset("models", MODEL))
    parts = [Part(sublayer, head) for sublayer, head in said["heads"]][-2:]
    found = over_prompts(load(MODEL), bundled_set("negation.zh-en"), "zero", parts=parts)
    np.testing.assert_allclose(np.array(said["kinds"]["negation"]["values"])[:, -2:], found.values, atol=2e-3)
    assert not found.refused


def test_each_kind_is_asked_in_both_directions_as_often() -> None:
    for kind in KINDS:
        rows = bundled_set(f"{kind}.{MODEL}").rows
        assert len(rows) == ROWS
        assert sum(row.clean.isascii() for row in rows) == ROWS / 2
        assert len({(row.clean, row.target) for row in rows}) == ROWS

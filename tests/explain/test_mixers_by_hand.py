"""Mixers by hand: both ways to compute each agree, on a sentence and on two tokens, and costs are what is kept."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vizformer.explain.mixers_by_hand import (
    MIXERS,
    VALUES,
    WINDOW,
    Mixer,
    attention_map,
    attention_read,
    delta_map,
    delta_writes,
    mixed,
    mixer_cost,
    space_map,
    space_states,
    two_steps,
    two_writes,
)

IDS = (70, 11, 8, 70, 912, 8, 5)


@pytest.mark.parametrize("kind", MIXERS)
def test_the_map_gives_back_what_is_read_token_by_token_and_sees_no_later_token(kind: Mixer) -> None:
    maps, error = mixed(kind, IDS)
    assert error < 1e-14
    assert not np.triu(maps, 1).any()
    np.testing.assert_array_equal(maps, mixed(kind, IDS)[0])  # from a seed
    sums = maps.sum(-1)
    assert (maps < 0).any() == (kind in ("delta", "space"))
    if kind in ("softmax", "grouped", "latent", "window"):
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)
    elif kind == "sink":
        assert (sums < 1).all()
    assert maps[:, -1, :-WINDOW].any() == (kind != "window")


def test_a_token_that_is_read_again_has_the_same_weights_for_equal_tokens() -> None:
    maps, _ = mixed("softmax", IDS)
    np.testing.assert_allclose(maps[:, 4:, 0], maps[:, 4:, 3])
    assert not np.allclose(maps[:, 4:, 0], maps[:, 4:, 1])


def test_attention_is_that_of_torch() -> None:
    q, k, v = np.random.default_rng(1).standard_normal((3, 6, 4))
    theirs = F.scaled_dot_product_attention(*(torch.from_numpy(one)[None] for one in (q, k, v)), is_causal=True)[0]
    np.testing.assert_allclose(attention_read(q, k, v), theirs.numpy(), atol=1e-12)
    np.testing.assert_allclose(attention_map(q, k) @ v, theirs.numpy(), atol=1e-12)


def test_a_sink_is_a_key_without_a_value() -> None:
    q, k, v = np.random.default_rng(2).standard_normal((3, 5, 4))
    for i in range(5):
        scores = np.append(k[: i + 1] @ q[i] / 2, 0.7)
        weights = np.exp(scores) / np.exp(scores).sum()
        np.testing.assert_allclose(attention_map(q, k, sink=0.7)[i, : i + 1], weights[:-1], atol=1e-12)
        np.testing.assert_allclose(attention_read(q, k, v, sink=0.7)[i], weights[:-1] @ v[: i + 1], atol=1e-12)


def test_the_delta_rule_written_out() -> None:
    """Each state from the one before by (I - b k k^T) a S + b k v^T, as the paper writes it."""
    draw = np.random.default_rng(3)
    q, k, v = draw.standard_normal((3, 6, 3))
    beta, keep = draw.uniform(0.1, 1.0, (2, 6))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    S, read = np.zeros((3, 3)), []
    for i in range(6):
        S = (np.eye(3) - beta[i] * np.outer(k[i], k[i])) @ (keep[i] * S) + beta[i] * np.outer(k[i], v[i])
        read.append(q[i] @ S)
    np.testing.assert_allclose(delta_writes(k, v, beta, keep)[-1].state, S, atol=1e-12)
    np.testing.assert_allclose(delta_map(q, k, beta, keep) @ v, np.stack(read), atol=1e-12)


def test_a_state_space_written_out() -> None:
    draw = np.random.default_rng(4)
    q, k, v = draw.standard_normal((3, 6, 3))
    steps, keep = draw.uniform(0.1, 1.0, (2, 6))
    read = np.stack(
        [
            sum(np.prod(keep[j + 1 : i + 1]) * steps[j] * (q[i] @ k[j]) * v[j] for j in range(i + 1)) - 0.3 * v[i]
            for i in range(6)
        ]
    )
    np.testing.assert_allclose(space_map(q, k, steps, keep, -0.3) @ v, read, atol=1e-12)
    states = space_states(k, v, steps, keep)
    np.testing.assert_allclose(q[-1] @ states[-1] - 0.3 * v[-1], read[-1], atol=1e-12)


@pytest.mark.parametrize(("degrees", "beta", "keep"), [(0, 1.0, 1.0), (30, 0.5, 0.8), (90, 1.0, 0.3), (180, 0.2, 1.0)])
def test_two_tokens_by_the_delta_rule(degrees: int, beta: float, keep: float) -> None:
    found = two_writes(degrees, beta, keep)
    first = beta * np.outer(found.keys[0], VALUES[0])
    held = keep * first.T @ found.keys[1]
    second = keep * first + beta * np.outer(found.keys[1], VALUES[1] - held)
    np.testing.assert_allclose(found.writes[1].state, second, atol=1e-12)
    np.testing.assert_allclose(found.read, found.keys @ second, atol=1e-12)
    np.testing.assert_allclose(found.read_sum, found.keys @ found.keys.T @ VALUES, atol=1e-12)


@pytest.mark.parametrize(
    ("degrees", "step", "rate", "skip"), [(0, 1.0, 0.0, 0.0), (60, 0.5, 0.5, 1.0), (180, 2.0, 2.0, -0.5)]
)
def test_two_tokens_in_a_state_space_both_ways(degrees: int, step: float, rate: float, skip: float) -> None:
    found = two_steps(degrees, step, rate, skip)
    product = np.cos(np.radians(degrees))
    wanted = [[1 + skip, 0], [np.exp(-rate * step) * product, step + skip]]
    np.testing.assert_allclose(found.map, wanted, atol=1e-11)
    np.testing.assert_allclose(found.map @ VALUES, found.read, atol=1e-12)


def test_the_same_key_holds_the_second_value_and_the_sum_holds_both() -> None:
    found = two_writes(0, 1.0, 1.0)
    np.testing.assert_allclose(found.read, [found.values[1]] * 2)
    np.testing.assert_allclose(found.read_sum, [found.values.sum(0)] * 2)


def test_keys_at_right_angles_do_not_disturb_each_other() -> None:
    found = two_writes(90, 1.0, 1.0)
    np.testing.assert_array_equal(found.read, found.values)
    np.testing.assert_array_equal(found.read_sum, found.values)


def test_a_window_and_a_state_end_the_growth() -> None:
    for kind in MIXERS:
        ends = mixer_cost(kind, 1000) == mixer_cost(kind, 10**6)
        assert ends == (kind in ("window", "delta", "space"))


def test_what_is_kept_and_multiplied_after_ten_tokens() -> None:
    """Of 4 heads with 8 numbers, or a latent of 12."""
    assert {kind: mixer_cost(kind, 10) for kind in MIXERS} == {
        "softmax": (640, 640),
        "sink": (640, 640),
        "grouped": (640, 160),
        "latent": (1728, 120),  # 4 heads: 96 to move the query, 120 to score, 120 to mix, 96 to make the value
        "window": (192, 192),
        "delta": (1024, 256),  # 4 heads: forget, read the key, write and read the query, 64 each
        "space": (768, 256),
    }

"""What the options of a draw leave of a distribution; the same against `transformers` is in tests/parity."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vizformer.errors import GenerationError
from vizformer.generation import GREEDY, Cut, Sampling, next_token
from vizformer.generation.sampling import LARGEST_SEED, draw_token, penalised

LOGITS = torch.log(torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2]))


def kept(**options) -> list[int]:
    return next_token(LOGITS, (), Sampling(**options)).filtered.nonzero().flatten().tolist()


def test_without_options_nothing_is_cut() -> None:
    choice = next_token(LOGITS, (1, 2), Sampling())
    assert torch.allclose(choice.probabilities, torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2]))
    assert torch.allclose(choice.filtered, choice.probabilities)
    assert choice.cut.tolist() == [0] * 5


def test_each_cut() -> None:
    assert kept(top_k=2) == [1, 3]
    assert kept(top_k=99) == [0, 1, 2, 3, 4]
    assert kept(top_p=0.4) == [1]
    assert kept(top_p=0.41) == [1, 3]  # the one that reaches it belongs to it
    assert kept(top_p=0.8) == [1, 3, 4]
    assert kept(top_p=0.0) == [1]
    assert kept(min_p=0.49) == [1, 3, 4]
    assert kept(min_p=1.0) == [1]
    assert kept(temperature=0.0) == [1]


def test_a_share_of_all_cuts_nothing_where_one_token_has_nearly_all() -> None:
    logits = torch.tensor([0.0, -40.0, -41.0, -42.0])  # beside 1, the others are lost to rounding
    choice = next_token(logits, (), Sampling(top_k=3, top_p=1.0))
    assert choice.cut.tolist() == [Cut.KEPT, Cut.KEPT, Cut.KEPT, Cut.TOP_K]


def test_the_rest_is_drawn_in_the_old_proportions() -> None:
    filtered = next_token(LOGITS, (), Sampling(top_k=3)).filtered
    assert torch.allclose(filtered, torch.tensor([0, 0.4, 0, 0.25, 0.2]) / 0.85)


def test_temperature() -> None:
    sharp = next_token(LOGITS, (), Sampling(temperature=0.5)).filtered
    squared = torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2]) ** 2
    assert torch.allclose(sharp, squared / squared.sum())
    assert next_token(LOGITS, (), Sampling(temperature=1e-6)).filtered.tolist() == [0, 1, 0, 0, 0]
    flat = next_token(LOGITS, (), Sampling(temperature=1e6)).filtered
    assert torch.allclose(flat, torch.full((5,), 0.2), atol=1e-5)


def test_the_first_cut_that_took_a_token_is_named() -> None:
    choice = next_token(LOGITS, (), Sampling(top_k=4, top_p=0.8, min_p=0.6))
    assert choice.cut.tolist() == [Cut.TOP_K, Cut.KEPT, Cut.TOP_P, Cut.KEPT, Cut.MIN_P]
    assert next_token(LOGITS, (), GREEDY).cut.tolist() == [Cut.GREEDY, 0, Cut.GREEDY, Cut.GREEDY, Cut.GREEDY]


def test_the_penalty_of_what_occurred() -> None:
    logits = torch.tensor([2.0, -2.0, 0.0, 3.0])
    assert penalised(logits, (0, 1, 0), 2.0).tolist() == [1.0, -4.0, 0.0, 3.0]
    assert penalised(logits, (), 2.0) is logits
    repeated = next_token(logits, (3,), Sampling(temperature=0.0, repetition_penalty=2.0))
    assert int(repeated.filtered.argmax()) == 0  # greedy, too
    assert torch.equal(repeated.probabilities, torch.softmax(logits, -1))  # what the model said stays


def test_equal_tokens_are_cut_to_the_number_asked_for() -> None:
    choice = next_token(torch.zeros(6), (), Sampling(top_k=2))
    assert choice.filtered.tolist() == [0.5, 0.5, 0, 0, 0, 0]
    assert next_token(torch.zeros(6), (), Sampling(top_p=0.0)).filtered.tolist() == [1.0, 0, 0, 0, 0, 0]


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=20),
    st.floats(0, 5),
    st.integers(0, 25),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.5, 2),
)
@pytest.mark.sweep
def test_whatever_is_cut_a_distribution_is_left(logits, temperature, top_k, top_p, min_p, penalty) -> None:
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, repetition_penalty=penalty)
    choice = next_token(torch.tensor(logits), (0,), sampling)
    for values in (choice.probabilities, choice.filtered):
        assert values.isfinite().all()
        assert float(values.sum()) == pytest.approx(1.0, abs=1e-5)
    assert bool((choice.filtered[choice.cut > 0] == 0).all())
    assert int((choice.cut == 0).sum()) >= 1


def test_all_problems_are_listed_at_once() -> None:
    with pytest.raises(GenerationError) as raised:
        Sampling(temperature=-1, top_k=-2, top_p=1.5, min_p=-0.1, repetition_penalty=0, seed=-3)
    for word in ("temperature=-1", "top_k=-2", "top_p=1.5", "min_p=-0.1", "repetition_penalty=0", "seed=-3"):
        assert word in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(temperature=math.nan), "temperature=nan: must be a number"),
        (dict(temperature=math.inf), "must be a number"),
        (dict(top_p="0.5"), "top_p='0.5': must be a number"),
        (dict(top_k=2.5), "top_k=2.5: must be a whole number"),
        (dict(top_k=True), "top_k=True: must be a whole number"),
        (dict(seed=LARGEST_SEED + 1), "seed=9223372036854775808: must be from 0 to 9223372036854775807"),
    ],
)
def test_values_that_are_none(options, said) -> None:
    with pytest.raises(GenerationError) as raised:
        Sampling(**options)
    assert said in str(raised.value)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling()])
def test_a_model_that_diverged(sampling) -> None:
    with pytest.raises(GenerationError, match="not numbers"):
        next_token(torch.tensor([0.0, math.nan, 1.0]), (), sampling)
    next_token(torch.tensor([-math.inf, 0.0]), (), sampling)  # a token that never comes is a choice


def test_draws_follow_the_distribution() -> None:
    filtered = torch.tensor([0.2, 0.0, 0.8])
    generator = torch.Generator().manual_seed(0)
    drawn = [draw_token(filtered, generator) for _ in range(2000)]
    assert 1 not in drawn
    assert drawn.count(2) / 2000 == pytest.approx(0.8, abs=0.03)

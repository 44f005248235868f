"""The worksheet: its answers are right, for every version and every sentence."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vizformer.explain.paper_calculations import SEEDS, choice_order, worksheet

TOKENS = ["我", "有", "一", "只"]


@pytest.mark.parametrize("seed", [SEEDS[0], 2, 77, SEEDS[-1]])
def test_the_answers_are_what_pytorch_computes(seed):
    found = {problem.key: problem for problem in worksheet(TOKENS, seed)}
    q, K, V = (torch.from_numpy(table.value) for table in (*found["scores"].given, *found["z"].given))
    z = F.scaled_dot_product_attention(q[None], K[None], V[None])[0]
    np.testing.assert_allclose(found["z"].answer[0].value, z, atol=1e-9)
    assert found["weights"].answer[0].value.sum() == pytest.approx(1)
    S = torch.from_numpy(found["masked"].given[0].value)
    masked = torch.softmax(S + torch.full_like(S, -torch.inf).triu(1), -1)
    np.testing.assert_allclose(found["masked"].answer[0].value, masked, atol=1e-9)
    x = torch.from_numpy(found["norm"].given[0].value)
    np.testing.assert_allclose(found["norm"].answer[0].value, F.layer_norm(x, (4,), eps=0.0), atol=1e-9)
    p = found["loss"].given[0].value
    assert found["loss"].answer[1].value[1] == pytest.approx(float(np.prod(p) ** (-1 / 3)))
    d, f = (found["count"].text.values[name] for name in ("d", "f"))
    layer = torch.nn.TransformerEncoderLayer(d, 1, f)
    assert found["count"].answer[0].value[-1] == sum(x.numel() for x in layer.parameters())


@pytest.mark.parametrize("seed", [SEEDS[0], 77])
def test_an_answer_is_printed_as_exactly_as_it_is_worked_out(seed):
    found = {problem.key: problem for problem in worksheet(TOKENS, seed)}
    for problem in (problem for key, problem in found.items() if key != "loss"):
        table, end = problem.answer[0], re.search(r"= (-?[\d.]+)$", problem.working)
        assert end is None or end[1] in {f"{value:.{table.digits}f}" for value in table.value.flat}, problem.working


def test_versions_have_other_numbers_and_the_same_questions():
    one, other, again = (worksheet(TOKENS, seed) for seed in (1, 2, 1))
    assert [problem.key for problem in one] == [problem.key for problem in other]
    assert not np.array_equal(one[0].given[1].value, other[0].given[1].value)
    assert np.array_equal(one[0].given[1].value, again[0].given[1].value)


def test_one_token_is_enough():
    found = worksheet(["猫"], 5)
    assert "masked" not in {problem.key for problem in found}
    assert all(np.isfinite(table.value).all() for problem in found for table in problem.answer)


def test_choices_are_printed_in_an_order_of_the_version_and_the_question():
    orders = {(name, seed): choice_order(name, 5, seed) for name in ("qkv/self", "qkv/scale") for seed in range(1, 9)}
    assert all(sorted(order) == list(range(5)) for order in orders.values())
    assert len(set(orders.values())) > 10
    assert orders["qkv/self", 1] == choice_order("qkv/self", 5, 1) != orders["qkv/scale", 1]


def test_no_version_has_two_equal_keys():
    for seed in SEEDS:
        for n in (1, 2, 3):
            K = worksheet(TOKENS[:n], seed)[0].given[1].value
            assert len({tuple(row) for row in K}) == n, seed

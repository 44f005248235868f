"""Programs with one wrong line: the wrong one stops or gives other numbers, the right one is what PyTorch computes."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vizformer.analysis.costs.parameter_count import BASE, count
from vizformer.analysis.other_programs.copied_errors import EXERCISES
from vizformer.explain import examples
from vizformer.model.positions import sinusoidal_encoding

D_MODEL, N_HEADS, N = 16, 4, 6


def given(name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    q, k, v = torch.randn(3, N, D_MODEL // N_HEADS)
    hand = {"q": examples.QUERY[0], "K": examples.KEYS, "V": examples.VALUES[:, 0]}
    return {
        "dropout": {"x": torch.randn(N, D_MODEL)},
        "scale": {"q": q, "k": k, "v": v, "mask": torch.zeros(N, N), "n_heads": N_HEADS, "d_model": D_MODEL},
        "waves": {"n": N, "d": D_MODEL},
        "total": {key: torch.from_numpy(array).float() for key, array in hand.items()},
        "count": {},
        "after": {"scores": q @ k.T},
        "cache": {"q": q, "k": k, "v": v},
        "embedding": {"rows": torch.randn(N, D_MODEL), "P": torch.randn(N, D_MODEL)},
        "join": {"z": torch.randn(N_HEADS, N, D_MODEL // N_HEADS), "W_O": torch.randn(D_MODEL, D_MODEL)},
    }[name]


def left(name: str, *, corrected: bool) -> dict[str, Any]:
    names = {"math": math, "torch": torch, "nn": nn, "F": F, **given(name)}
    exec(EXERCISES[name].program(corrected=corrected), names)
    return names


@pytest.mark.parametrize("name", EXERCISES)
def test_the_line_alone_is_wrong(name: str) -> None:
    exercise = EXERCISES[name]
    right = left(name, corrected=True)[exercise.result]
    if exercise.error:
        with pytest.raises((TypeError, AssertionError)) as raised:
            left(name, corrected=False)
        assert exercise.error == f"{raised.type.__name__}: {raised.value}"
        return
    wrong = left(name, corrected=False)[exercise.result]
    assert wrong.shape == right.shape
    assert (wrong - right).abs().max() > 1e-3


def test_the_right_lines_give_what_pytorch_and_the_model_compute() -> None:
    numbers = given("scale")
    q, k, v = (numbers[name][None] for name in "qkv")
    torch.testing.assert_close(left("scale", corrected=True)["z"], F.scaled_dot_product_attention(q, k, v)[0])
    torch.testing.assert_close(left("cache", corrected=True)["z"], F.scaled_dot_product_attention(q[:, -1:], k, v)[0])
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)[0]
    torch.testing.assert_close(left("after", corrected=True)["weights"] @ v[0], causal)
    torch.testing.assert_close(left("waves", corrected=True)["P"], sinusoidal_encoding(N, D_MODEL))
    heads = given("join")["z"]
    torch.testing.assert_close(left("join", corrected=True)["joined"], torch.cat([*heads], dim=-1))


def test_the_weights_by_hand_sum_to_1_2() -> None:
    wrong, right = (left("total", corrected=corrected) for corrected in (False, True))
    assert float(wrong["total"]) == pytest.approx(examples.PRINTED_SUM)
    assert wrong["weights"].tolist() == pytest.approx(examples.PRINTED_WEIGHTS)
    assert right["weights"].tolist() == pytest.approx([0.33, 0.17, 0.33, 0.17], abs=0.006)


def test_the_decoder_is_counted_as_the_model_has_it() -> None:
    right, paper = left("count", corrected=True), count(BASE)
    assert (right["encoder"], right["decoder"], right["embedding"]) == (paper.encoder, paper.decoder, paper.embedding)
    assert right["total"] == paper.model == 63_082_496

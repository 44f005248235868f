"""The objective of a translator against its formula, term by term."""

import math

import pytest
import torch

from recipes.loss import translation_loss
from tests import tiny
from vizformer.model import Transformer
from vizformer.training.loss import PairBatch

SOURCES = [[5, 6, 7, 2], [9, 2], [11, 12, 13, 14, 15, 2]]
TARGETS = [[1, 20, 21, 2], [1, 22, 2], [1, 23, 24, 25, 26, 2]]


def padded(rows: list[list[int]], extra: int = 0) -> torch.Tensor:
    width = max(map(len, rows)) + extra
    return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])


def by_hand(model: Transformer, eps: float) -> tuple[float, int]:
    """-sum_t q_t log p_t per predicted token, q = (1 - eps) onehot + eps / vocab_size; one pair at a time."""
    total, count = 0.0, 0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        logits = model(torch.tensor([source]), torch.tensor([target]))[0].detach().double()
        for position, label in enumerate(target[1:]):
            row = logits[position]
            log_p = row - (row - row.max()).exp().sum().log() - row.max()
            wanted = torch.full_like(row, eps / len(row))
            wanted[label] += 1 - eps
            total -= float((wanted * log_p).sum())
            count += 1
    return total, count


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("extra", [0, 4])
def test_against_the_formula_and_unmoved_by_padding(eps: float, extra: int) -> None:
    model = tiny.model(scaled_embedding=True)
    total, count = by_hand(model, eps)
    batch = PairBatch(padded(SOURCES, extra), padded(TARGETS, extra))
    for reduction, expected in (("sum", total), ("mean", total / count)):
        loss, tokens = translation_loss(model, batch, label_smoothing=eps, autocast=False, reduction=reduction)
        assert tokens == count == 3 + 2 + 5
        assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)


def test_a_model_that_knows_nothing_is_as_good_as_guessing() -> None:
    model = tiny.model()
    with torch.no_grad():
        model.embedding.weight.zero_()
    loss, _ = translation_loss(model, PairBatch(padded(SOURCES), padded(TARGETS)), label_smoothing=0.1, autocast=False)
    assert float(loss.detach()) == pytest.approx(math.log(29), rel=1e-5)


def test_gradients_reach_every_parameter() -> None:
    model = tiny.model().train()
    loss, _ = translation_loss(model, PairBatch(padded(SOURCES), padded(TARGETS)), label_smoothing=0.1, autocast=False)
    loss.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in model.parameters())
    unmoved = [name for name, p in model.named_parameters() if float(p.grad.abs().max()) == 0]
    assert unmoved == []


def test_autocast_is_close_and_gives_a_float32_loss() -> None:
    model, batch = tiny.model(), PairBatch(padded(SOURCES), padded(TARGETS))
    exact, _ = translation_loss(model, batch, label_smoothing=0.1, autocast=False)
    fast, _ = translation_loss(model, batch, label_smoothing=0.1, autocast=True)
    assert fast.dtype == torch.float32
    assert float(fast.detach()) == pytest.approx(float(exact.detach()), rel=2e-2)
    assert float(fast.detach()) != float(exact.detach())


def test_a_model_without_padding_is_refused() -> None:
    with pytest.raises(ValueError, match="pad_id"):
        translation_loss(
            tiny.model(pad_id=None), PairBatch(padded(SOURCES), padded(TARGETS)), label_smoothing=0.1, autocast=False
        )

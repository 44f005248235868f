"""The gradient of one step: it is that of the model itself, which stays as it was."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests import tiny
from tests.explain.test_loss_numbers import TEXT, asked_of
from tests.tiny import STACKS
from vizformer.analysis.training import gradient as gradients
from vizformer.analysis.training.gradient import matrix_lengths, step_gradient
from vizformer.explain.loss_parts import asked_rows, losses


@pytest.mark.parametrize("architecture", STACKS)
def test_the_lengths_are_those_of_a_backward_pass(architecture: str) -> None:
    checkpoint, trace, asked, _ = asked_of(architecture)
    model = checkpoint.model
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = step_gradient(model, trace, asked)
    assert found.loss == pytest.approx(losses(trace, asked).mean, abs=1e-4)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    assert all(parameter.grad is None for parameter in model.parameters())
    model.requires_grad_(True)
    try:
        ids = [torch.tensor([[token.id for token in tokens]]) for tokens in trace.tokens.values()]
        logits = model(*ids)[0, [one.row for one in asked]]
        F.cross_entropy(logits, torch.tensor([one.right.id for one in asked])).backward()
        layers = [*(model.encoder.layers if model.encoder else ()), *(model.decoder.layers if model.decoder else ())]
        for row, block in enumerate(layers):
            kinds = dict(zip(found.kinds, found.norms[row], strict=True))
            expected = {f"W_{one}": getattr(block.self_attention, f"W_{one}") for one in "QKVO"}
            if block.cross_attention is not None:
                expected |= {f"W_{one}'": getattr(block.cross_attention, f"W_{one}") for one in "QKVO"}
            expected |= {"W_1": block.feedforward.W_in, "W_2": block.feedforward.W_out}
            for kind, length in kinds.items():
                if kind in expected:
                    assert length == pytest.approx(float(expected.pop(kind).weight.grad.norm()), rel=1e-4), kind
                else:
                    assert math.isnan(length), kind
            assert not expected
        every = [p.grad for p in model.parameters() if p.grad is not None]
        assert found.total == pytest.approx(float(torch.stack([g.norm() for g in every]).norm()), rel=1e-4)
        table = model.embedding.weight.grad
        assert found.table == pytest.approx(float(table.norm()), rel=1e-4)
        assert found.table_rows == int((table != 0).any(1).sum())
    finally:
        for parameter in model.parameters():
            parameter.grad = None
        model.requires_grad_(False)
    sizes = dict(zip(found.kinds, matrix_lengths(model)[0], strict=True))
    assert sizes["W_O"] == pytest.approx(float(layers[0].self_attention.W_O.weight.norm()), rel=1e-5)
    assert sizes["W_1"] == pytest.approx(float(layers[0].feedforward.W_in.weight.norm()), rel=1e-5)
    assert found.norms[found.largest] == np.nanmax(found.norms)
    squares = np.nan_to_num(found.norms) ** 2
    np.testing.assert_allclose(found.shares, squares / squares.sum())


def test_a_gate_is_counted_with_its_matrix() -> None:
    checkpoint = tiny.checkpoint("decoder-only", **tiny.LLAMA)
    trace = checkpoint.trace(TEXT)
    found = step_gradient(checkpoint.model, trace, asked_rows(checkpoint, trace, ()))
    sizes = matrix_lengths(checkpoint.model)
    for row, block in enumerate(checkpoint.model.decoder.layers):
        network = block.feedforward
        wide = torch.cat([network.W_in.weight.flatten(), network.W_gate.weight.flatten()])
        lengths = dict(zip(found.kinds, sizes[row], strict=True))
        assert lengths["W_1"] == pytest.approx(float(wide.norm()), rel=1e-5)
        assert lengths["W_2"] == pytest.approx(float(network.W_out.weight.norm()), rel=1e-5)
    assert math.hypot(*found.norms.flatten()) < found.total  # norms and the table have gradients too


def test_too_long_a_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint, trace, asked, _ = asked_of("decoder-only")
    monkeypatch.setattr(gradients, "MOST_TOKENS", 2)
    with pytest.raises(ValueError, match="tokens"):
        step_gradient(checkpoint.model, trace, asked)

"""What the boxes of the lesson The map say of their arithmetic: every weight of the box is in it."""

import re
from typing import get_args

import pytest

from tests.tiny import checkpoint
from vizformer.analysis.costs.model_boxes import architecture
from vizformer.options import Activation, FeedForwardKind
from vizformer.web.lessons.map import drawing

NAMES = {
    "relu": "ReLU",
    "gelu": "GELU",
    "gelu_tanh": "GELU",
    "quick_gelu": "QuickGELU",
    "silu": "SiLU",
    "relu_squared": "ReLU²",
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("feedforward", get_args(FeedForwardKind))
@pytest.mark.parametrize("activation", get_args(Activation))
def test_the_feedforward_formula_names_each_weight_once_and_the_activation(
    activation: Activation, feedforward: FeedForwardKind, bias: bool
) -> None:
    model = checkpoint("decoder-only", activation=activation, feedforward=feedforward, bias=bias).model
    box = next(box for box in architecture(model, 3) if box.kind == "feedforward")
    written = drawing.formula(box, model.config)
    symbols = sorted(re.findall(r"([Wb])_\\text\{(\w+)\}", written))
    parts = [name.rpartition(".")[::2] for name, __ in box.tensors]
    assert symbols == sorted(({"weight": "W", "bias": "b"}[kind], layer.removeprefix("W_")) for layer, kind in parts)
    assert re.findall(r"operatorname\{(\w+)\}", written) == [NAMES[activation]]

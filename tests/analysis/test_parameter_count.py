"""Parameters from formulas are those that models have."""

import pytest

from tests import tiny
from tests.bundled import load
from vizformer.analysis.costs import parameter_count
from vizformer.analysis.costs.parameter_count import BASE, Sizes, count
from vizformer.model import Transformer


def test_the_base_model_of_the_paper() -> None:
    found = count(BASE)
    assert (found.encoder, found.decoder, found.embedding) == (18_914_304, 25_224_192, 18_944_000)
    assert found.total == found.model == 63_082_496


@pytest.mark.parametrize("sizes", [Sizes(64, 64, 0, 3, 100), Sizes(128, 1024, 2, 0, 999), Sizes(64, 256, 1, 4, 7)])
def test_formulas_and_models_agree(sizes: Sizes) -> None:
    found = count(sizes)
    assert found.total == found.model
    assert found.encoder + found.decoder + found.embedding == found.total


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("decoder-only", {}),
        ("decoder-only", tiny.LLAMA),
        ("encoder-only", tiny.BERT),
        ("encoder-only", tiny.T5),
        ("decoder-only", tiny.T5),
    ],
    ids=["plain", "gated", "bert", "t5", "t5-decoder"],
)
def test_the_parameters_of_the_feed_forward_are_the_modules(architecture: str, options: dict[str, object]) -> None:
    model: Transformer = tiny.checkpoint(architecture, **options).model
    config, stack = model.config, model.decoder if model.encoder is None else model.encoder
    assert stack is not None
    own = sum(parameter.numel() for parameter in stack.layers[0].feedforward.parameters())
    assert config.network_parameters(config.d_ff) == own


@pytest.mark.parametrize("name", ["zh-en", "stories", "cloze"])
def test_the_parts_of_a_model_are_all_there_are(name: str) -> None:
    model = load(name).model
    found = parameter_count.parts(model)
    assert sum(found.values()) == sum(parameter.numel() for parameter in model.parameters())
    assert found["embedding"] == model.embedding.weight.numel()

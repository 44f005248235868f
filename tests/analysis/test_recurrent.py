"""The gradients against torch's Jacobians and against the product of the steps'; the bundled GRU."""

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian

from tests import tiny
from vizformer.analysis.training.depth_gradients import (
    felt,
    gru_gradients,
    jacobian_cost,
    least_felt,
    transformer_gradients,
)
from vizformer.assets import asset
from vizformer.training.repeater import GRULanguageModel, load_gru

SENTENCE = "那个我在北京上大学时认识的朋友，现在在那个城市工作。"


@pytest.fixture
def small() -> GRULanguageModel:
    torch.manual_seed(1)
    return GRULanguageModel(20, 5, 7).eval().requires_grad_(False)


def test_the_gru_norms_are_those_of_its_jacobian(small: GRULanguageModel) -> None:
    ids = [3, 1, 4, 1, 5, 9]
    found = gru_gradients(small, ids)
    x, gru = small.embedding(torch.tensor([ids])), small.gru
    for t in range(len(ids)):
        whole = jacobian(lambda x: gru(x)[0][0, -1], x)[:, 0, t]  # [d_h, d_x]
        assert found[t] == pytest.approx(float(whole.norm()), rel=1e-5)


def test_the_gradient_is_a_product_of_steps(small: GRULanguageModel) -> None:
    """d h_n / d h_t = prod d h_(s+1) / d h_s, and d h_n / d x_t = that times d h_t / d x_t."""
    ids = [2, 7, 1, 8]
    x = small.embedding(torch.tensor(ids))
    states = [torch.zeros(7), *small(torch.tensor([ids]))[0]]

    def step(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return small.gru(x[None, None], h[None, None])[0][0, 0]

    product = torch.eye(7)
    for t in reversed(range(len(ids))):
        by_x, by_h = jacobian(step, (x[t], states[t]))
        assert gru_gradients(small, ids)[t] == pytest.approx(float((product @ by_x).norm()), rel=1e-4)
        product = product @ by_h


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("encoder-decoder", {}),
        ("decoder-only", tiny.LLAMA),
        ("encoder-only", tiny.BERT),
        ("decoder-only", {**tiny.LLAMA, "sliding_window": 2, "sliding_layers": (1,)}),
    ],
)
def test_the_transformers_norms_are_those_of_its_jacobian(name: str, options: dict[str, object]) -> None:
    model = tiny.model(name, **options)
    ids = tiny.ids(6)[0].tolist()
    found = transformer_gradients(model, ids)
    start = model.embed(torch.tensor([ids]))
    place = "decoder" if name == "decoder-only" else "encoder"

    def last(x: torch.Tensor) -> torch.Tensor:
        """The stack's output, by way of the model's own forward with x in the place of its embeddings."""
        original, model.embed = model.embed, lambda *_, **__: x  # type: ignore[method-assign]
        try:
            return getattr(model, {"decoder": "decode", "encoder": "encode"}[place])(torch.tensor([ids]))[0, -1]
        finally:
            model.embed = original  # type: ignore[method-assign]

    expected = jacobian(last, start)[:, 0].norm(dim=(0, 2))
    assert found == pytest.approx(expected.numpy(), rel=1e-4)


def test_the_bundled_gru_feels_the_beginning_less() -> None:
    """What the lesson says it shows: a steep fall, and no zero; its loss far below guessing."""
    model, tokenizer = load_gru(asset("lessons", "map"))
    ids = tokenizer.encode_ids([SENTENCE])[0]
    sizes = gru_gradients(model, ids) / gru_gradients(model, ids)[-1]
    assert sizes[1] < 0.2
    assert np.median(sizes[:-10]) < 0.1 < np.median(sizes[-4:])
    assert sizes.min() > 0
    states = model(torch.tensor([ids[:-1]]))
    loss = torch.nn.functional.cross_entropy(model.logits(states)[0], torch.tensor(ids[1:]))
    assert float(loss) < 0.7 * np.log(tokenizer.vocab_size)


def test_what_a_token_counts_is_a_share_of_what_the_last_one_counts() -> None:
    sizes = np.array([3.0, 0.5, 1.0, 0.5, 2.0])
    assert felt(sizes, 0) == (4, 1.0)
    assert felt(sizes, 4) == (0, 1.5)
    assert least_felt(sizes) == (1, 0.25)  # the first of two


def test_an_exact_jacobian_costs_rows_times_tokens_times_the_parameters_of_the_layers_that_read() -> None:
    for architecture, stack in (
        ("encoder-decoder", "encoder"),
        ("encoder-only", "encoder"),
        ("decoder-only", "decoder"),
    ):
        model = tiny.model(architecture)
        layers = [p for name, p in model.named_parameters() if name.startswith(f"{stack}.layers.")]
        assert jacobian_cost(model, 9) == model.config.d_model * 9 * sum(p.numel() for p in layers)


def test_the_gru_counts_its_own_parameters(small: GRULanguageModel) -> None:
    assert small.n_parameters == 20 * 5 + 3 * 7 * (5 + 7 + 2) + 5 * 7 + 5

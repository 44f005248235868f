"""The embedding table: look-up, neighbours, projection, lengths."""

import math

import numpy as np
import pytest
import torch

from tests.bundled import load
from tests.tiny import checkpoint
from vizformer.analysis.vectors.embeddings import (
    average_cosine,
    directions,
    entries,
    input_parts,
    lookup,
    neighbours,
    norms,
    project,
    with_scale,
)
from vizformer.errors import TraceError


def test_one_hot_times_the_table_is_the_row_to_the_last_bit() -> None:
    model = load("zh-en")
    n_tokens = model.model.config.vocab_size
    for id in (0, 17, n_tokens - 1):
        found = lookup(model, id)
        assert found.difference == 0.0
        assert np.array_equal(found.row, model.model.embedding.weight[id].double().numpy())
        assert np.array_equal(found.row, found.product)
        assert (found.products, found.copies) == (n_tokens * 256, 256)
    with pytest.raises(TraceError, match=str(n_tokens)):
        lookup(model, n_tokens)


def test_entries_of_the_table_are_the_models() -> None:
    model = load("zh-en")
    found = entries(model, (5, 3), (0, 255, 7))
    assert np.array_equal(found, model.model.embedding.weight.double().numpy()[[5, 3]][:, [0, 255, 7]])
    assert found.dtype == np.float64


@pytest.mark.parametrize("centred", [False, True])
def test_neighbours_are_the_nearest_of_all_rows(centred: bool) -> None:
    model = checkpoint()
    table = model.model.embedding.weight.double().numpy()
    table = table - table.mean(0) if centred else table
    lengths = np.linalg.norm(table, axis=1)
    cosines = table @ table.T / np.outer(lengths, lengths)
    unit = directions(model, centred=centred)
    for id in (0, 5):
        others = [int(i) for i in np.argsort(-cosines[id]) if i != id]
        found = neighbours(unit, id, 4)
        assert list(found.ids) == others[:4]
        assert np.allclose(found.cosines, cosines[id][others[:4]], atol=1e-6)
    different = ~np.eye(len(table), dtype=bool)
    assert average_cosine(unit) == pytest.approx(cosines[different].mean(), abs=1e-6)
    assert len(neighbours(unit, 0, 10_000).ids) == len(table) - 1


def test_a_projection_keeps_the_two_main_directions() -> None:
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(12, 2)) * (5, 2)
    basis = np.linalg.qr(rng.normal(size=(7, 2)))[0]
    found = project(plane @ basis.T + 3)
    assert found.explained.sum() == pytest.approx(1.0)
    assert found.explained[0] > found.explained[1]
    distances = np.linalg.norm(found.points[:, None] - found.points, axis=-1)
    assert np.allclose(distances, np.linalg.norm(plane[:, None] - plane, axis=-1))  # nothing was lost
    assert np.allclose(project(plane @ basis.T).points, found.points)  # the same picture
    alone = project(np.ones((1, 4)))
    assert alone.points.shape == (1, 2)
    assert not alone.explained.any()


def test_lengths_of_tokens_and_waves() -> None:
    model = load("zh-en")
    ids = np.array([token.id for token in model.encode("我有一只猫。")])
    found = norms(model, ids)
    weight = model.model.embedding.weight.double().numpy()
    assert np.allclose(found.tokens, np.linalg.norm(weight[ids], axis=1))
    assert found.positions is not None
    assert np.allclose(found.positions, math.sqrt(256 / 2), atol=1e-4)
    assert (found.factor, found.scaled) == (16.0, True)
    for scaled, factor in ((True, 16.0), (False, 1.0)):
        lengths = found.tokens * factor
        assert np.allclose(found.entering(scaled), lengths)
        of_tokens, of_positions, share = found.compared(scaled)
        assert of_tokens == pytest.approx(lengths.mean())
        assert of_positions == pytest.approx(math.sqrt(128), abs=1e-4)
        assert share == pytest.approx(128 * len(ids) / (128 * len(ids) + np.sum(lengths**2)), rel=1e-5)


def test_the_parts_of_the_input_add_up_to_it() -> None:
    model = load("zh-en")
    ids = [token.id for token in model.encode("我有一只猫。")]
    parts = input_parts(model, ids)
    with torch.no_grad():
        x_0 = parts["E"][parts["ids"]] * parts["d_model"] ** 0.5 + parts["P"]  # type: ignore[index]
    assert torch.allclose(x_0, model.trace("我有一只猫。", target=".").residual("encoder.0.pre"), atol=1e-5)
    assert "P" not in input_parts(load("stories"), ids)


def test_rotary_positions_add_nothing() -> None:
    found = norms(load("stories"), np.array([1, 2]))
    assert found.positions is None
    with pytest.raises(ValueError, match="no position vectors"):
        found.compared(True)


def test_the_factor_can_be_left_out_without_touching_the_model() -> None:
    model = load("zh-en")
    other = with_scale(model, False)
    assert with_scale(model, True) is model
    assert model.model.config.scaled_embedding
    assert not other.model.config.scaled_embedding
    assert other.model.embedding.weight.data_ptr() == model.model.embedding.weight.data_ptr()
    ids = torch.tensor([[5, 9]])
    positions = model.model.positions(2)
    assert torch.allclose((model.model.embed(ids) - positions) / 16, other.model.embed(ids) - positions, atol=1e-5)
    assert model.generate("我有一只猫。").text == "I have a cat."
    assert other.generate("我有一只猫。", max_new=12).text != "I have a cat."

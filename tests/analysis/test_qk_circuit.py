"""One matrix for both sides gives symmetric scores; two do not, and only their product counts."""

import numpy as np
import pytest
import torch

from tests import tiny
from tests.bundled import load
from vizformer.analysis.scores.qk_circuit import asymmetry, bilinear, score_forms
from vizformer.model import Cell, Edit

KINDS = [("encoder-only", {}), ("encoder-only", tiny.BERT), ("decoder-only", tiny.LLAMA), ("decoder-only", {})]


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_three_forms(architecture: str, options: dict[str, object]) -> None:
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。")
    for site in trace.sites:
        found = score_forms(checkpoint, trace, site, 1)
        assert asymmetry(found.identity).largest < 1e-12
        assert asymmetry(found.shared).largest < 1e-12
        assert asymmetry(found.learned).largest > 1e-2
        np.testing.assert_array_equal(found.learned, trace[site].scores(1).double().numpy())


def test_shared_is_what_the_model_computes_when_the_keys_matrix_is_the_queries() -> None:
    checkpoint = tiny.checkpoint("decoder-only", **{**tiny.LLAMA, "n_kv_heads": None})
    trace = checkpoint.trace("我有一只猫。")
    expected = score_forms(checkpoint, trace, "decoder.0.self", 2).shared
    attention = checkpoint.model.decoder.layers[0].self_attention
    with torch.no_grad():
        attention.W_K.weight.copy_(attention.W_Q.weight)
    found = checkpoint.trace("我有一只猫。")["decoder.0.self"].scores(2).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("architecture", "options"), KINDS)
def test_the_product_is_all_that_counts(architecture: str, options: dict[str, object]) -> None:
    checkpoint = tiny.checkpoint(architecture, **options)
    trace = checkpoint.trace("我有一只猫。")
    for site in trace.sites:
        for head in range(4):
            found = bilinear(checkpoint, trace, site, head)
            assert found.rank == found.bound == checkpoint.model.config.d_head
            assert found.proof is not None
            assert found.proof.holds
            attention = getattr(checkpoint.model, site.split(".")[0]).layers[int(site.split(".")[1])].self_attention
            d, group = found.bound, trace[site].kv_head(head)
            product = (
                attention.W_Q.weight[head * d : head * d + d].T @ attention.W_K.weight[group * d : group * d + d]
            ).double()
            np.testing.assert_allclose(found.singular, torch.linalg.svdvals(product)[:d].numpy(), atol=1e-5)


def test_a_poor_product_has_a_lower_rank() -> None:
    checkpoint = tiny.checkpoint("encoder-only")
    with torch.no_grad():
        checkpoint.model.encoder.layers[0].self_attention.W_Q.weight[1] = 0.0  # of head 0
    trace = checkpoint.trace("猫和狗")
    assert bilinear(checkpoint, trace, "encoder.0.self", 0).rank == checkpoint.model.config.d_head - 1
    assert bilinear(checkpoint, trace, "encoder.0.self", 1).rank == checkpoint.model.config.d_head


def test_an_edit_is_found_out() -> None:
    """The proof is no tautology: a query set by hand is not what the product gives."""
    checkpoint = tiny.checkpoint("encoder-only")
    trace = checkpoint.trace("猫和狗", edit=Edit((Cell("encoder.0.self.q", (0, 1, 0), 9.0),)))
    one, other = (bilinear(checkpoint, trace, "encoder.0.self", head).proof for head in (0, 1))
    assert one is not None
    assert other is not None
    assert not one.holds
    assert other.holds


def test_a_norm_between_hides_the_product() -> None:
    checkpoint = tiny.checkpoint("encoder-only", qk_norm=True)
    trace = checkpoint.trace("猫和狗")
    assert bilinear(checkpoint, trace, "encoder.0.self", 0).proof is None


def test_the_measure_of_asymmetry() -> None:
    found = asymmetry(np.array([[0.0, 3.0], [1.0, 5.0]]))
    assert (found.largest, found.pair) == (2.0, (0, 1))
    assert asymmetry(np.array([[0.0, 1.0], [-1.0, 0.0]])).share == pytest.approx(1.0)
    assert asymmetry(np.zeros((2, 2))).share == 0.0
    lopsided = np.array([[3.0, 2.0], [0.0, 1.0]])  # symmetric part [[3, 1], [1, 1]], antisymmetric [[0, 1], [-1, 0]]
    assert asymmetry(lopsided).share == pytest.approx(2 / 14)  # of 12 + 2: a share, not a ratio of norms
    assert asymmetry(np.eye(3)).share == 0.0


def test_cross_attention_has_nothing_to_compare() -> None:
    checkpoint = tiny.checkpoint("encoder-decoder")
    trace = checkpoint.trace("猫", target="a cat")
    with pytest.raises(ValueError, match="different rows"):
        score_forms(checkpoint, trace, "decoder.0.cross", 0)
    with pytest.raises(ValueError, match="different rows"):
        bilinear(checkpoint, trace, "decoder.0.cross", 0)


def test_the_trained_heads_use_their_freedom() -> None:
    """What the lesson says of the bundled model."""
    checkpoint = load("zh-en")
    trace = checkpoint.trace("我有一只猫。")
    shares = [
        asymmetry(score_forms(checkpoint, trace, site, head).learned).share
        for site in trace.sites
        if not site.endswith("cross")
        for head in range(4)
    ]
    assert min(shares) > 0.01
    assert np.median(shares) > 0.09

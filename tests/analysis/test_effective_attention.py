"""Effective attention: the part of the weights that reaches the output, and nothing of the null space of the values."""

import numpy as np
import pytest

from tests import tiny
from tests.bundled import load
from vizformer.analysis import effective_attention
from vizformer.errors import TraceError


@pytest.mark.parametrize(
    ("architecture", "site"),
    [("decoder-only", "decoder.1.self"), ("encoder-only", "encoder.0.self"), ("encoder-decoder", "decoder.0.cross")],
)
def test_the_rest_adds_nothing_and_no_shorter_row_gives_the_same(architecture: str, site: str) -> None:
    checkpoint = tiny.checkpoint(architecture)
    n = 20
    target = {"target_ids": tiny.ids(7)[0].tolist()} if architecture == "encoder-decoder" else {}
    trace = checkpoint.trace(ids=tiny.ids(n, seed=3)[0].tolist(), **target)
    record, found = trace[site], effective_attention(trace, site, 1)
    v = record.v[record.kv_head(1)].double().numpy()
    assert found.proof.holds
    rest = found.weights - found.effective
    np.testing.assert_allclose(rest @ v, 0.0, atol=1e-6)
    seen = (record.reason(1) == 0).numpy()
    assert not found.effective[~np.broadcast_to(seen, found.effective.shape)].any()
    for row in range(len(found.weights)):
        own = v[seen[row]]  # the values that this row sees
        shortest = np.linalg.lstsq(own.T, found.weights[row][seen[row]] @ own, rcond=1e-6)[0]
        np.testing.assert_allclose(found.effective[row][seen[row]], shortest, atol=1e-6)
        assert found.free[row] == len(own) - np.linalg.matrix_rank(own, rtol=1e-6)
    assert found.free.max() >= n - v.shape[1] > 0
    assert np.abs(rest).max() > 0.01


def test_all_weights_of_a_short_text_are_effective() -> None:
    trace = load("stories").trace("The dog saw the cat.")
    found = effective_attention(trace, "decoder.3.self", 0)
    assert not found.free.any()
    np.testing.assert_allclose(found.effective, found.weights, atol=1e-6)


def test_the_rank_of_values_in_bfloat16_is_that_of_their_digits() -> None:
    """With 3 %, a unit in the last place of bfloat16, as the least singular value all of these had 2 to 4 too many free."""
    text = "One day a little girl who lived in a small house with her mother went to the park and saw the big red dog"
    trace = load("stories", dtype="bfloat16").trace(text)
    for layer in range(1, 4):
        found = effective_attention(trace, f"decoder.{layer}.self", 0)
        v = trace[f"decoder.{layer}.self"].v[0]
        assert str(v.dtype) == "torch.bfloat16"
        assert np.linalg.matrix_rank(v.double().numpy()) == len(v) <= v.shape[1]
        assert not found.free.any()
        assert found.proof.holds


def test_a_head_that_is_not_there_is_refused() -> None:
    with pytest.raises(TraceError, match="no head 9"):
        effective_attention(load("stories").trace("A cat."), "decoder.0.self", 9)

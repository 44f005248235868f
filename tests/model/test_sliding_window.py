"""A decoder whose self-attention sees only the latest keys, in all of its layers or in some."""

import pytest
import torch

from tests import tiny
from vizformer.config import ModelConfig
from vizformer.model import Cache, Trace
from vizformer.model.masks import Reason

IDS = torch.tensor([[3, 7, 5, 9, 4, 6, 8, 3], [8, 3, 3, 5, 7, 9, 4, 4]])


@pytest.mark.sweep
def test_a_query_sees_the_window_and_nothing_else():
    """One layer, positions that only count distances: the last `w` tokens alone give the same last row."""
    model = tiny.model("decoder-only", **tiny.LLAMA, sliding_window=3, n_decoder_layers=1)
    whole = model(IDS)
    for end in range(1, 9):
        alone = model(IDS[:, max(0, end - 3) : end])
        torch.testing.assert_close(whole[:, end - 1], alone[:, -1], rtol=1e-5, atol=1e-5)
    wider = tiny.model("decoder-only", **tiny.LLAMA, sliding_window=4, n_decoder_layers=1)(IDS)
    torch.testing.assert_close(wider[:, :3], whole[:, :3])
    assert not torch.allclose(wider[:, 3:], whole[:, 3:], atol=1e-3)


def test_only_the_layers_that_are_named_have_it():
    model = tiny.model("decoder-only", **tiny.LLAMA, sliding_window=3, sliding_layers=(1,))
    trace = Trace()
    model(IDS, trace=trace)
    query, key = torch.arange(8)[:, None], torch.arange(8)[None, :]
    causal = (key > query) * int(Reason.FUTURE)
    assert torch.equal(trace["decoder.0.self"].reason(0), causal.to(torch.uint8))
    expected = causal + (key <= query - 3) * int(Reason.OUTSIDE_WINDOW)
    assert torch.equal(trace["decoder.1.self"].reason(0), expected.to(torch.uint8))
    blocked = trace["decoder.1.self"].bias
    assert blocked is not None
    assert torch.equal(blocked[0] == -torch.inf, expected > 0)


@pytest.mark.sample(5)
@pytest.mark.parametrize("positions", ["rope", "alibi", "relative", "learned"])
@pytest.mark.parametrize("layers", [None, (0,), (1,)])
@pytest.mark.parametrize("cuts", [(1,) * 8, (3, 1, 4), (2, 6), (8,)])
def test_cached_equals_uncached(positions, layers, cuts):
    model = tiny.model("decoder-only", positions=positions, sliding_window=3, sliding_layers=layers)
    whole = model.decode(IDS)
    cache = Cache()
    parts = [model.decode(part, cache=cache) for part in IDS.split(cuts, dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, rtol=1e-5, atol=1e-5)  # another order of summation


def test_padding_is_not_seen_through_the_window():
    model = tiny.model("decoder-only", sliding_window=2, positions="none")
    padding = torch.zeros(2, 8, dtype=torch.bool)
    padding[:, 4] = True
    other = IDS.clone()
    other[:, 4] = 5
    seen, unseen = model(IDS, padding=padding), model(other, padding=padding)
    torch.testing.assert_close(seen[:, 5:], unseen[:, 5:])
    assert not torch.allclose(model(IDS)[:, 5:], model(other)[:, 5:], atol=1e-3)


def test_a_window_that_reaches_everything_changes_nothing():
    narrow, none = (tiny.model("decoder-only", sliding_window=window) for window in (8, None))
    assert torch.equal(narrow(IDS), none(IDS))


def test_options_survive_json():
    config = tiny.config(n_encoder_layers=0, sliding_window=3, sliding_layers=(0, 1))
    assert ModelConfig.from_dict({**config.to_dict(), "sliding_layers": [0, 1]}) == config
    assert hash(config) == hash(ModelConfig.from_dict(config.to_dict()))
    assert config.windowed_layers == {0, 1}
    assert tiny.config(n_encoder_layers=0, sliding_layers=None).windowed_layers == frozenset()

"""Options that families of the field bring: against plain loops, with the cache, in half precision."""

from typing import Any

import pytest
import torch

from tests import tiny
from tests.eager_transformer import Eager
from vizformer.model import Cache, count_parameters

OPTIONS: dict[str, dict[str, Any]] = {
    "qwen2": {**tiny.LLAMA, "attention_bias": "qkv"},
    "qwen3": tiny.QWEN3,
    "geglu": tiny.GEGLU,
    "turned": tiny.ROPE,
    "scaled": tiny.SCALED,
    "llama3": tiny.LLAMA3,
    "linear": {**tiny.LLAMA, "rope_scaling": "linear", "rope_factor": 2.0},
    "mixed": {**tiny.QWEN3, "norm": "layer_norm", "attention_bias": "all"},
}
everywhere = pytest.mark.parametrize("name", OPTIONS)


@everywhere
def test_as_plain_loops_do_it(name: str) -> None:
    model, ids = tiny.model("decoder-only", **OPTIONS[name]), tiny.ids(9)
    with torch.inference_mode():
        tiny.assert_close(model(ids)[0], Eager(model).run(ids[0]).logits.float())


@everywhere
def test_the_cache_changes_nothing(name: str) -> None:
    model, ids = tiny.model("decoder-only", **OPTIONS[name]), tiny.ids(9)
    cache = Cache()
    with torch.inference_mode():
        rows = [model.decode(ids[:, part], cache=cache) for part in (slice(0, 4), slice(4, 5), slice(5, 9))]
        tiny.assert_close(torch.cat(rows, 1), model.decode(ids))


def test_what_each_option_adds() -> None:
    def count(**changes: Any) -> int:
        return count_parameters(tiny.config("decoder-only", **{**tiny.LLAMA, **changes}))

    plain = count()  # two layers, d_model 16, 4 heads and 2 key/value heads of 4
    assert count(attention_bias="qkv") == plain + 2 * (16 + 8 + 8)
    assert count(attention_bias="all") == plain + 2 * (16 + 8 + 8 + 16)
    assert count(bias=True) == count(bias=True, attention_bias="none") + 2 * (16 + 8 + 8 + 16)
    assert count(qk_norm=True) == plain + 2 * (4 + 4)
    assert count(head_dim=6) == plain + 2 * 16 * 2 * (4 + 2) * 2


def test_a_scale_may_be_a_whole_number() -> None:
    """config.json of our own says 2, not 2.0 (a damaged folder of the fuzz did)."""
    assert isinstance(
        tiny.checkpoint("decoder-only", attention_scale=2).trace(ids=[5, 6])["decoder.0.self"].scale, float
    )

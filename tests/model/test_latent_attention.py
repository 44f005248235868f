"""Latent attention: the absorbed form beside the plain one, what a cache keeps, and what cannot be."""

from typing import Any

import pytest
import torch

from tests import tiny
from vizformer.analysis.costs.generation_cost import cache_bytes
from vizformer.errors import ConfigError
from vizformer.model import Cache, Edit, Trace
from vizformer.model.forward_pass import AttentionCall
from vizformer.model.latent_attention import LatentAttention

MODELS = pytest.mark.parametrize("options", [tiny.DEEPSEEK, tiny.DEEPSEEK_LITE], ids=["v3", "lite"])


@MODELS
def test_absorbed_and_unabsorbed_give_the_same_scores(options: dict[str, Any]) -> None:
    """Scores by hand in float64: q . k of every head, and q^r . r + (q^c W_K^T) . c; and what both forms mix."""
    model, trace = tiny.model("decoder-only", **options).double(), Trace()
    with torch.inference_mode():
        model.decode(tiny.ids(9), trace=trace)
        layer = model.decoder.layers[1].self_attention
        assert isinstance(layer, LatentAttention)
        record = trace["decoder.1.self"]
        run = model.forward_pass("decoder", tiny.ids(9))
        x = model.decoder.layers[1].self_norm(trace.residual("decoder.1.pre")[None])
        r, c = layer.kept(x, run.self_attention("decoder.1", windowed=False))
        assert r.shape == (1, 1, 9, 4)
        assert c.shape == (1, 1, 9, 6)
        for head in range(4):
            W_K = layer.W_K.weight[head * 6 : (head + 1) * 6]  # [6, latent]
            absorbed = record.q[head, :, :4] @ r[0, 0].T + record.q[head, :, 4:] @ W_K @ c[0, 0].T
            tiny.assert_close(absorbed * record.scale, record.content_scores(head).double(), 1e-12)
        bias = run.self_attention("decoder.1", windowed=False).bias(run.mask, torch.float64)
        z = layer.absorbed(record.q[None], r, c, bias)[0]
    for head in range(4):
        tiny.assert_close(z[head], record.z(head), 1e-12)


@MODELS
def test_a_cache_keeps_the_latent_and_one_turned_key(options: dict[str, Any]) -> None:
    """And a token that looks at it makes no keys; with a trace it makes them, and finds the same."""
    model, ids = tiny.model("decoder-only", **options), tiny.ids(9)
    kept, watched, trace = Cache(), Cache(), Trace()
    with torch.inference_mode():
        whole = model.decode(ids)
        for cache, extra in ((kept, {}), (watched, {"trace": trace})):
            model.decode(ids[:, :8], cache=cache)
            tiny.assert_close(model.decode(ids[:, 8:], cache=cache, **extra)[0, 0], whole[0, 8])
    assert {name: t.shape for name, t in kept.keys.items()} == dict.fromkeys(kept.keys, (1, 1, 9, 4))
    assert {name: t.shape for name, t in kept.values.items()} == dict.fromkeys(kept.values, (1, 1, 9, 6))
    assert kept.nbytes == cache_bytes(model.config, 9) == 2 * 9 * (4 + 6) * 4
    full = tiny.config("decoder-only", **{**tiny.LLAMA, "n_kv_heads": None, "head_dim": 10})
    assert cache_bytes(full, 9) == 2 * 9 * 2 * 4 * 10 * 4


def test_one_token_alone_and_what_is_set_by_hand() -> None:
    model = tiny.model("decoder-only", **tiny.DEEPSEEK)
    with torch.inference_mode():
        one = model.decode(tiny.ids(1), cache=Cache())
        tiny.assert_close(one, model.decode(tiny.ids(1)))
        cache, trace = Cache(), Trace()
        model.decode(tiny.ids(5)[:, :4], cache=cache)
        edit = Edit(unscaled=frozenset({"decoder.0.self"}))
        changed = model.decode(tiny.ids(5)[:, 4:], cache=cache, edit=edit, trace=trace)
    assert trace["decoder.0.self"].scale == 1.0
    assert not torch.equal(changed, model.decode(tiny.ids(5))[:, 4:])


def test_a_call_without_positions_turns_nothing() -> None:
    """What asks the layer by itself, without a model around it."""
    layer, x = LatentAttention(tiny.config("decoder-only", **tiny.DEEPSEEK)), torch.randn(1, 3, 16)
    assert layer(x, x, AttentionCall("decoder.0.self")).shape == (1, 3, 16)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (dict(latent_dim=0), "latent_dim"),
        (dict(latent_dim=-3), "latent_dim"),
        (dict(latent_dim=True), "latent_dim"),
        (dict(latent_dim=None), "latent_query_dim without latent_dim"),
        (dict(latent_query_dim=0), "latent_query_dim"),
        (dict(latent_value_dim="7"), "latent_value_dim"),
        (dict(rope_dims=3), "rope_dims=3: rotary positions turn pairs"),
        (dict(rope_dims=12), "rope_dims=12: rotary positions turn pairs"),
        (dict(rope_dims=10), "latent_dim=6: latent attention turns a part of each key"),
        (dict(rope_dims=None), "latent_dim=6: latent attention turns a part of each key"),
        (dict(positions="learned", rope_dims=None), "latent_dim=6: latent attention turns a part of each key"),
        (dict(n_kv_heads=2), r"n_kv_heads: latent attention \(latent_dim\) has none"),
        (dict(state_layers=(0,)), "state_layers: latent attention"),
        (dict(qk_norm=True), "qk_norm: latent attention"),
        (dict(sinks=True), "sinks: latent attention"),
        (dict(attention_gate=True), "attention_gate: latent attention"),
        (dict(score_cap=2.0), "score_cap: latent attention"),
        (dict(n_encoder_layers=2), "only a decoder alone has latent attention"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tiny.config("decoder-only", **{**tiny.DEEPSEEK, **changes})

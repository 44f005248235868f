"""Qwen2 folders against `transformers`, every parameter randomised."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same

QWEN2 = "Qwen2ForCausalLM"


def test_qwen2(tmp_path: Path) -> None:
    """Queries, keys and values have biases, the other layers none."""
    checkpoint = opened_and_same(folders.qwen2(tmp_path), QWEN2)
    config = checkpoint.model.config
    assert (config.qkv_bias, config.out_bias, config.bias, config.kv_heads) == (True, False, False, 2)
    fates = {tensor.name: tensor.fate for tensor in checkpoint.report.tensors}
    assert set(fates.values()) == {"used"}
    assert "model.layers.2.self_attn.v_proj.bias" in fates
    assert "model.layers.2.self_attn.o_proj.bias" not in fates


@pytest.mark.parametrize(
    "changes",
    [
        dict(tie_word_embeddings=True, num_key_value_heads=4),
        dict(rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0}, num_key_value_heads=1),
    ],
    ids=str,
)
def test_options_of_qwen2(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.qwen2(tmp_path, **changes), QWEN2)


QWEN3 = "Qwen3ForCausalLM"


def test_qwen3(tmp_path: Path) -> None:
    """Norms of queries and keys, and heads wider than their share."""
    checkpoint = opened_and_same(folders.qwen3(tmp_path), QWEN3)
    config = checkpoint.model.config
    assert (config.qk_norm, config.d_head, config.qkv_bias) == (True, 6, False)
    assert checkpoint.model.decoder.layers[0].self_attention.W_O.weight.shape == (16, 24)


@pytest.mark.parametrize(
    "changes",
    [
        dict(attention_bias=True, tie_word_embeddings=True, rms_norm_eps=1e-2),
        dict(head_dim=4, num_key_value_heads=4),
        dict(rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}),
    ],
    ids=str,
)
@pytest.mark.sample(2)
def test_options_of_qwen3(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.qwen3(tmp_path, **changes), QWEN3)

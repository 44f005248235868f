"""Gemma folders against `transformers`, every parameter randomised."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import load

LM = "GemmaForCausalLM"


def test_gemma(tmp_path: Path) -> None:
    """One key/value head, wide heads, 1 + weight in the norms, scaled embeddings."""
    checkpoint = opened_and_same(folders.gemma(tmp_path), LM)
    config = checkpoint.model.config
    assert (config.d_head, config.kv_heads, config.norm_offset, config.scaled_embedding) == (8, 1, True, True)
    stored = folders.tensors(tmp_path)["model.norm.weight"]
    tiny.assert_close(checkpoint.model.decoder.final_norm.weight, stored, 0.0)  # as it is in the file


@pytest.mark.parametrize(
    "changes",
    [
        dict(num_key_value_heads=4, head_dim=4, attention_bias=True),
        dict(tie_word_embeddings=False, num_key_value_heads=2, hidden_act="gelu_pytorch_tanh", rms_norm_eps=1e-2),
    ],
    ids=str,
)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.gemma(tmp_path, **changes), LM)


@pytest.mark.parametrize("activation", [None, "gelu_pytorch_tanh"])
@pytest.mark.sample(1)
def test_what_the_published_files_say(activation: str | None, tmp_path: Path) -> None:
    """hidden_act is "gelu" there, and stands for the approximation."""
    folder = folders.change(folders.gemma(tmp_path), hidden_act="gelu", hidden_activation=activation)
    checkpoint = opened_and_same(folder, LM)
    assert checkpoint.model.config.activation == "gelu_tanh"
    assert any('hidden_act="gelu" stands for' in str(assumption) for assumption in checkpoint.report.assumptions)


def test_a_body_without_a_head(tmp_path: Path) -> None:
    folder = folders.gemma(tmp_path, tie_word_embeddings=False)
    weights = folders.tensors(folder)
    del weights["lm_head.weight"]
    folders.save_tensors(folder, {name.removeprefix("model."): tensor for name, tensor in weights.items()})
    folders.change(folder, architectures=["GemmaModel"])
    assert not load(folder).report.has_head
    opened_and_same(folder, "GemmaModel")

"""GPT-NeoX folders (Pythia's kind) against `transformers`, every parameter randomised."""

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import load
from vizformer.checkpoints.tensors.tensor_map import Part

LM = "GPTNeoXForCausalLM"


def test_gpt_neox(tmp_path: Path) -> None:
    checkpoint = opened_and_same(folders.gpt_neox(tmp_path), LM)
    config = checkpoint.model.config
    assert (config.residual, config.rope_dims, config.d_head) == ("parallel", 4, 8)


@pytest.mark.parametrize(
    "changes",
    [
        dict(use_parallel_residual=False, rotary_pct=0.25),
        dict(attention_bias=False, rotary_pct=1.0),
        dict(tie_word_embeddings=True, hidden_act="gelu_fast", layer_norm_eps=1e-2),
        dict(rope_parameters={"rope_type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5, "rope_theta": 55.0}),
    ],
    ids=str,
)
@pytest.mark.sample(1)
def test_options(changes: dict[str, object], tmp_path: Path) -> None:
    opened_and_same(folders.gpt_neox(tmp_path, **changes), LM)


def test_a_folder_as_pythia_is_published(tmp_path: Path) -> None:
    """rotary_pct and rotary_emb_base beside each other, embed_out, and buffers stored with the weights."""
    folder = folders.gpt_neox(tmp_path, rotary_pct=0.25, rope_parameters={"rope_type": "default", "rope_theta": 777.0})
    new = load(folder)
    weights = folders.tensors(folder)
    weights = {name.replace("lm_head", "embed_out"): tensor for name, tensor in weights.items()}
    for layer in range(3):
        attention = f"gpt_neox.layers.{layer}.attention"
        weights[f"{attention}.bias"] = torch.ones(1, 1, 64, 64, dtype=torch.bool).tril()
        weights[f"{attention}.masked_bias"] = torch.tensor(-1e9)
        weights[f"{attention}.rotary_emb.inv_freq"] = torch.ones(1)
    folders.save_tensors(folder, weights)
    folders.change(folder, rope_parameters=..., rotary_pct=0.25, rotary_emb_base=777, attention_bias=...)
    old = load(folder)
    assert old.model.config == new.model.config
    assert old.report.problems == ()
    assert {t.fate for t in old.report.tensors if "masked_bias" in t.name or "inv_freq" in t.name} == {"unused"}
    assert not any("rotary" in str(assumption) for assumption in old.report.assumptions)
    opened_and_same(folder, LM)


def test_heads_alternate_in_the_fused_tensor() -> None:
    """Rows of the file: q, k and v of head 0, then q, k and v of head 1."""
    part = Part("qkv", ("q", "k", "v"), heads=2)
    ours = dict.fromkeys(("q", "k", "v"), (4, 3))
    assert part.shape(ours) == (12, 3)
    stored = torch.arange(36.0).reshape(12, 3)
    found = part.split(stored, ours)
    assert found["q"][:, 0].tolist() == [0.0, 3.0, 18.0, 21.0]
    assert found["v"][:, 0].tolist() == [12.0, 15.0, 30.0, 33.0]
    assert torch.equal(part.join(found), stored)

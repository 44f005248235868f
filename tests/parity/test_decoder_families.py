"""Decoders of many families against `transformers`: the same layers, stored and named in as many ways."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, theirs
from vizformer.checkpoints import Opened, RecordedCheckpoint, load
from vizformer.checkpoints.tensors.report import describe
from vizformer.checkpoints.tensors.tensor_map import Part, neighbours_apart
from vizformer.errors import CheckpointError

LLAMA = dict(
    hidden_size=32,
    intermediate_size=24,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
FULL, SLIDING = "full_attention", "sliding_attention"
GPT = dict(n_embd=32, n_head=4, n_layer=3, n_positions=64)
# model_type -> the name of its classes, that of its model with a head, the sizes of a small one.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "starcoder2": ("Starcoder2", "ForCausalLM", LLAMA),
    "openai-gpt": ("OpenAIGPT", "LMHeadModel", GPT),
    "smollm3": ("SmolLM3", "ForCausalLM", dict(LLAMA, no_rope_layer_interval=2)),
    "iquestcoder": ("Llama", "ForCausalLM", dict(LLAMA, head_dim=6)),
    "gemma2": (
        "Gemma2",
        "ForCausalLM",
        dict(
            LLAMA,
            head_dim=6,
            sliding_window=4,
            query_pre_attn_scalar=12,
            attn_logit_softcapping=1.5,
            final_logit_softcapping=2.0,
        ),
    ),
    "gemma3_text": (
        "Gemma3",
        "ForCausalLM",
        dict(LLAMA, head_dim=6, sliding_window=4, layer_types=[SLIDING, FULL, SLIDING], query_pre_attn_scalar=12),
    ),
}
# Where it is called otherwise than the model.
CONFIGS = {
    "gemma3_text": "Gemma3Text",
    "iquestcoder": "IQuestCoder",
}
MARKS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def written(kind: str, folder: Path, **changes: Any) -> Path:
    """A tiny folder of a family."""
    name, model, options = KINDS[kind]
    folders.write_metaspace(folder)
    rows = folders.vocabulary(folder)
    options = {**options, **MARKS, "vocab_size": rows}
    folders.written(folder, f"{CONFIGS.get(kind, name)}Config", f"{name}{model}", options, changes)
    return folders.norms_around_zero(folder) if kind.startswith("gemma") else folder


def same(kind: str, folder: Path, **changes: Any) -> Opened:
    """Tokens, stream, maps, logits and 20 greedy tokens with cache; every tensor has its place."""
    opened = opened_and_same(written(kind, folder, **changes), "".join(KINDS[kind][:2]))
    assert isinstance(opened, Opened)
    assert {tensor.fate for tensor in opened.report.tensors} == {"used"}
    return opened


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sample(6)
def test_decoders(kind: str, tmp_path: Path) -> None:
    opened = same(kind, tmp_path)
    assert opened.model.config.architecture == "decoder-only"
    assert describe(opened.report)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", KINDS)
def test_decoders_whose_head_is_tied_otherwise(kind: str, tmp_path: Path) -> None:
    tied = load(written(kind, tmp_path / "usual")).model.config.tied_unembedding
    assert same(kind, tmp_path / "other", tie_word_embeddings=not tied).model.config.tied_unembedding is not tied


ROPE = {"rope_type": "default", "rope_theta": 77.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("starcoder2", dict(use_bias=False, sliding_window=4, hidden_act="gelu", norm_epsilon=1e-2)),
    ("openai-gpt", dict(afn="relu", layer_norm_epsilon=1e-2)),
    ("openai-gpt", dict(afn="silu")),
    ("smollm3", dict(no_rope_layers=[0, 0, 1], attention_bias=True, rope_parameters=LINEAR)),
    ("smollm3", dict(no_rope_layers=[0, 0, 0], mlp_bias=True)),
    ("smollm3", dict(use_sliding_window=True, sliding_window=4, no_rope_layers=[1, 0, 1])),
    ("smollm3", dict(use_sliding_window=True, sliding_window=4, layer_types=[SLIDING, FULL, SLIDING])),
    ("gemma2", dict(attn_logit_softcapping=None, layer_types=[FULL, SLIDING, FULL], query_pre_attn_scalar=6)),
    ("gemma2", dict(final_logit_softcapping=None, num_key_value_heads=4, attention_bias=True, rope_parameters=LINEAR)),
    ("gemma3_text", dict(final_logit_softcapping=2.0, attn_logit_softcapping=1.0)),
    ("gemma3_text", dict(layer_types=[SLIDING] * 3, sliding_window=64, head_dim=8, query_pre_attn_scalar=8)),
    ("gemma3_text", dict(rope_parameters={FULL: LINEAR}, attention_bias=True, hidden_activation="relu")),
    ("gemma3_text", dict(rope_parameters={SLIDING: {"rope_type": "default", "rope_theta": 9.0}}, rms_norm_eps=1e-2)),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("kind", "changes"), VARIANTS, ids=str)
def test_variants(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    same(kind, tmp_path, **changes)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("smollm3", dict(no_rope_layers=[1, 0]), "no_rope_layers=.*: it must have an entry for each of the 3 layers"),
    ("gemma3_text", dict(sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("gemma3_text", dict(rope_parameters={SLIDING: LINEAR}), "rope_parameters=.*: sliding_attention: supported are"),
    ("gemma3_text", dict(rope_parameters={FULL: ROPE}), "rope_parameters=.*: this family turns all numbers"),
]


@pytest.mark.parametrize(("kind", "changes", "said"), REFUSED, ids=str)
@pytest.mark.sample(12)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


# What ours does not compute and the code of `transformers` does.
RECORDED: list[tuple[str, dict[str, Any], str]] = [
    ("smollm3", dict(no_rope_layers=[1, 2, 0]), "no_rope_layers=.*: it must list 1 for a layer with rotary positions"),
    ("gemma2", dict(attn_logit_softcapping=-1.0), "attn_logit_softcapping=-1.0: it must be a number above 0"),
    ("gemma3_text", dict(use_bidirectional_attention=True), "use_bidirectional_attention=true: supported is"),
    ("gemma3_text", dict(rope_parameters=LINEAR), "rope_parameters=.*: it must have a table for full_attention"),
]


@pytest.mark.parametrize(("kind", "changes", "said"), RECORDED, ids=str)
@pytest.mark.sample(4)
def test_what_is_not_followed_is_computed_by_transformers(
    kind: str, changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    opened = load(folder)
    assert isinstance(opened, RecordedCheckpoint)
    assert re.search(said, str(opened.report.assumptions[0]))
    ids = [3, 7, 1, 22, 0, 9]
    with torch.no_grad():
        logits = theirs(folder, opened.report.declared)(input_ids=torch.tensor([ids])).logits[0]
    assert_close(opened.trace(ids=ids).logits, logits, rtol=0, atol=1e-5)


def test_neighbouring_numbers_go_apart_and_back() -> None:
    """Two heads of five numbers, of which the first four are turned in pairs (0, 1) and (2, 3)."""
    part = Part("q", ("q",), order=lambda: neighbours_apart(2, 5, 4))
    stored = torch.arange(10.0)[:, None]
    found = part.split(stored, {"q": (10, 1)})
    assert found["q"][:, 0].tolist() == [0, 2, 1, 3, 4, 5, 7, 6, 8, 9]
    assert torch.equal(part.join(found), stored)

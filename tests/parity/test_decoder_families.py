"""Decoders of many families against `transformers`: the same layers, stored and named in as many ways."""

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same
from vizformer.checkpoints import Opened, load
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
GEMMA4_LONGER = {
    SLIDING: {"rope_type": "default", "rope_theta": 50.0},
    FULL: {"rope_type": "proportional", "rope_theta": 900.0, "factor": 2.5},
}
GEMMA4: dict[str, Any] = dict(
    LLAMA,
    head_dim=6,
    global_head_dim=16,
    num_hidden_layers=5,
    num_global_key_value_heads=1,
    attention_k_eq_v=True,
    hidden_size_per_layer_input=0,
    sliding_window=4,
    layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL],
    rope_parameters={
        SLIDING: {"rope_type": "default", "rope_theta": 50.0},
        FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 900.0},
    },
    final_logit_softcapping=3.0,
)
GEMMA4_SMALL: dict[str, Any] = dict(
    num_kv_shared_layers=2,
    use_double_wide_mlp=True,
    hidden_size_per_layer_input=6,
    rms_norm_eps=3e-2,  # with less, norms make large what is small, and its rounding in float32 too
)
GEMMA3N: dict[str, Any] = dict(
    LLAMA,
    head_dim=6,
    num_hidden_layers=5,
    num_kv_shared_layers=2,
    hidden_size_per_layer_input=6,
    laurel_rank=3,
    activation_sparsity_pattern=[0.6, 0.9, 0.0, 0.5, 0.0],
    sliding_window=4,
    layer_types=[SLIDING, FULL, SLIDING, SLIDING, FULL],
    rope_parameters={
        SLIDING: {"rope_type": "default", "rope_theta": 50.0},
        FULL: {"rope_type": "default", "rope_theta": 900.0},
    },
    final_logit_softcapping=3.0,
    rms_norm_eps=3e-2,
)
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
    "gemma3n_text": ("Gemma3n", "ForCausalLM", GEMMA3N),
    "gemma4_text": ("Gemma4", "ForCausalLM", GEMMA4),
}
# Where it is called otherwise than the model.
CONFIGS = {
    "gemma3_text": "Gemma3Text",
    "gemma3n_text": "Gemma3nText",
    "gemma4_text": "Gemma4Text",
    "iquestcoder": "IQuestCoder",
}
MARKS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)


def written(kind: str, folder: Path, **changes: Any) -> Path:
    """A tiny folder of a family."""
    name, model, options = KINDS[kind]
    folders.write_metaspace(folder)
    rows = folders.vocabulary(folder)
    options = {**options, **MARKS, "vocab_size": rows}
    if kind in ("gemma3n_text", "gemma4_text"):
        options = {**options, "vocab_size_per_layer_input": rows}
    folders.written(folder, f"{CONFIGS.get(kind, name)}Config", f"{name}{model}", options, changes)
    if kind in ("gemma3n_text", "gemma4_text"):
        return scaled(folder)
    return folders.norms_around_zero(folder) if kind.startswith("gemma") else folder


def scaled(folder: Path) -> Path:
    """What stands at 1 or 0 in a new Gemma 3n or 4 with numbers of its own."""
    stored, generator = folders.tensors(folder), torch.Generator().manual_seed(0)
    for name in stored:
        if name.endswith("layer_scalar"):
            stored[name] = 0.6 + torch.rand(1, generator=generator)
        elif name.endswith("correct_output_scale"):
            stored[name] = 0.5 + torch.rand(stored[name].shape, generator=generator)
        elif name.endswith(
            "q_norm.weight"
        ):  # scores are products as they are: of a usual size, so that they round alike
            stored[name] *= 0.3
    folders.save_tensors(folder, stored)
    return folder


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


def test_gemma_3n_without_the_scale_of_what_its_gates_read(tmp_path: Path) -> None:
    opened = opened_and_same(written("gemma3n_text", tmp_path, altup_correct_scale=False), "Gemma3nForCausalLM")
    assert isinstance(opened, Opened)
    unused = [tensor for tensor in opened.report.tensors if tensor.fate != "used"]
    assert len(unused) == opened.model.config.n_decoder_layers
    assert {tensor.fate for tensor in unused} == {"unused"}
    assert all(tensor.name.endswith("altup.correct_output_scale") for tensor in unused)


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
    ("gemma4_text", dict(num_kv_shared_layers=2, output_hidden_states=True, attention_k_eq_v=False)),
    (
        "gemma4_text",
        dict(
            num_kv_shared_layers=2,
            output_hidden_states=True,
            layer_types=[SLIDING, FULL, SLIDING, FULL, FULL],
            head_dim=10,
        ),
    ),
    ("gemma3n_text", dict(num_kv_shared_layers=0, altup_num_inputs=2, activation_sparsity_pattern=[0.0] * 5)),
    ("gemma3n_text", dict(num_kv_shared_layers=3, altup_num_inputs=3, attention_bias=True, laurel_rank=40)),
    ("gemma3n_text", dict(final_logit_softcapping=2.0, hidden_activation="silu", vocab_size_per_layer_input=20)),
    (
        "gemma3n_text",
        dict(
            num_hidden_layers=11,
            layer_types=None,
            activation_sparsity_pattern=None,
            rope_parameters=None,
            intermediate_size=[20] * 11,
            num_kv_shared_layers=4,
            rms_norm_eps=0.1,
        ),
    ),
    (
        "gemma3n_text",
        dict(
            rope_parameters={
                FULL: {**LINEAR, "rope_theta": 900.0},
                SLIDING: {"rope_type": "default", "rope_theta": 50.0},
            }
        ),
    ),
    ("gemma3n_text", dict(layer_types=[FULL] * 5, num_kv_shared_layers=4, sliding_window=2)),
    ("gemma4_text", dict(hidden_size_per_layer_input=6, rms_norm_eps=3e-2)),
    ("gemma4_text", dict(GEMMA4_SMALL, attention_k_eq_v=False, num_key_value_heads=1)),
    ("gemma4_text", dict(GEMMA4_SMALL, hidden_size_per_layer_input=3, hidden_activation="silu")),
    ("gemma4_text", dict(num_kv_shared_layers=2, use_double_wide_mlp=True, output_hidden_states=True)),
    ("gemma4_text", dict(num_hidden_layers=6, layer_types=[SLIDING] * 5 + [FULL], head_dim=4)),
    ("gemma4_text", dict(num_global_key_value_heads=None, attention_bias=True, final_logit_softcapping=None)),
    ("gemma4_text", dict(layer_types=[FULL] * 5, rope_parameters={FULL: {"rope_type": "default", "rope_theta": 9.0}})),
    ("gemma4_text", dict(layer_types=[SLIDING] * 5, global_head_dim=8, num_global_key_value_heads=4)),
    ("gemma4_text", dict(layer_types=None, num_hidden_layers=7, rms_norm_eps=1e-2, hidden_activation="relu")),
    ("gemma4_text", dict(rope_parameters=GEMMA4_LONGER, sliding_window=64, use_bidirectional_attention="vision")),
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
    ("gemma3n_text", dict(altup_active_idx=1), "altup_active_idx=1: supported is 0"),
    ("gemma3n_text", dict(altup_num_inputs=1), "altup_num_inputs=1: it must be a whole number from 2 to 64"),
    ("gemma3n_text", dict(altup_num_inputs=10**6), "altup_num_inputs=1000000: it must be a whole number from 2"),
    ("gemma3n_text", dict(altup_correct_scale=None), "altup_correct_scale=null: it must be true or false"),
    ("gemma3n_text", dict(laurel_rank=0), "laurel_rank=0: it must be a whole number from 1"),
    ("gemma3n_text", dict(hidden_size_per_layer_input=0), "hidden_size_per_layer_input=0: it must be a whole number"),
    ("gemma3n_text", dict(vocab_size_per_layer_input=10**6), "vocab_size_per_layer_input=1000000: it must be vocab_s"),
    ("gemma3n_text", dict(intermediate_size=[24, 24, 24, 24, 48]), "intermediate_size=.*: it must be one number, or"),
    ("gemma3n_text", dict(intermediate_size=[24]), "intermediate_size=.*: it must be one number, or the same"),
    ("gemma3n_text", dict(intermediate_size=[]), "intermediate_size=.*: it must be one number, or the same"),
    ("gemma3n_text", dict(intermediate_size=[{}] * 5), "intermediate_size=.*: it must be a whole number"),
    ("gemma3n_text", dict(activation_sparsity_pattern=0.9), "activation_sparsity_pattern=0.9: it must have a number"),
    ("gemma3n_text", dict(activation_sparsity_pattern=[0.9]), "activation_sparsity_pattern=.*: it must have a number"),
    ("gemma3n_text", dict(activation_sparsity_pattern=[1.0] * 5), "activation_sparsity_pattern=.*: it must have a"),
    ("gemma3n_text", dict(activation_sparsity_pattern=[True] * 5), "activation_sparsity_pattern=.*: it must have a"),
    ("gemma3n_text", dict(num_kv_shared_layers=4), "num_kv_shared_layers=4: before these layers there must be one"),
    ("gemma3n_text", dict(num_hidden_layers=10**9), "num_kv_shared_layers=2: it must be a whole number|layer_types"),
    ("smollm3", dict(no_rope_layers=[1, 0]), "no_rope_layers=.*: it must have an entry for each of the 3 layers"),
    ("smollm3", dict(no_rope_layers=[1, 2, 0]), "no_rope_layers=.*: it must list 1 for a layer with rotary positions"),
    ("gemma2", dict(attn_logit_softcapping=-1.0), "attn_logit_softcapping=-1.0: it must be a number above 0"),
    (
        "gemma4_text",
        dict(hidden_size_per_layer_input=8, vocab_size_per_layer_input=7),
        "vocab_size_per_layer_input=7: it must be vocab_size",
    ),
    ("gemma4_text", dict(hidden_size_per_layer_input=-8), "hidden_size_per_layer_input=-8: it must be a whole number"),
    ("gemma4_text", dict(enable_moe_block=1), "enable_moe_block=1: it must be true or false"),
    ("gemma4_text", dict(enable_moe_block=True), "enable_moe_block=true: a mixture of experts beside the network"),
    (
        "gemma4_text",
        dict(num_kv_shared_layers=4),
        "num_kv_shared_layers=4: before these layers there must be one of each",
    ),
    ("gemma4_text", dict(num_kv_shared_layers=10**9), "num_kv_shared_layers=1000000000: before these layers"),
    ("gemma4_text", dict(num_kv_shared_layers="2"), 'num_kv_shared_layers="2": it must be a whole number'),
    ("gemma4_text", dict(num_kv_shared_layers=-1), "num_kv_shared_layers=-1: it must be a whole number"),
    ("gemma4_text", dict(attention_k_eq_v=False), "attention_k_eq_v=false: the file of weights has matrices of values"),
    ("gemma4_text", dict(use_bidirectional_attention="all"), 'use_bidirectional_attention="all": supported is'),
    ("gemma4_text", dict(per_layer_config={"1": {"head_dim": 16}}), "per_layer_config=.*: supported are head_dim and"),
    (
        "gemma4_text",
        dict(per_layer_config={"1": {"head_dim": 0}, "4": {"head_dim": 0}}),
        "per_layer_config: head_dim=0",
    ),
    ("gemma4_text", dict(per_layer_config={"1": 3, "4": 3}), "per_layer_config=.*: supported are head_dim and"),
    ("gemma4_text", dict(per_layer_config=[1]), "per_layer_config=.*: supported are head_dim and"),
    ("gemma4_text", dict(rope_parameters={FULL: ROPE}), "rope_parameters=.*: it must have a table for full_attention"),
    ("gemma4_text", dict(rope_parameters=5), "rope_parameters=5: it must have a table for full_attention"),
    (
        "gemma4_text",
        dict(rope_parameters={**GEMMA4_LONGER, SLIDING: LINEAR}),
        "rope_parameters=.*: sliding_attention: supported are rotary positions as they are",
    ),
    (
        "gemma4_text",
        dict(rope_parameters={**GEMMA4_LONGER, FULL: LINEAR}),
        "rope_parameters=.*: full_attention: supported are rotary positions of type default or proportional",
    ),
    (
        "gemma4_text",
        dict(rope_parameters={**GEMMA4_LONGER, FULL: {**GEMMA4_LONGER[FULL], "partial_rotary_factor": 0.01}}),
        "partial_rotary_factor=0.01: it must be at most 1, and turn one pair",
    ),
    ("gemma4_text", dict(layer_types=[FULL]), "layer_types=.*: it must have an entry for each of the 5 layers"),
    ("gemma4_text", dict(sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("gemma3_text", dict(sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("gemma3_text", dict(use_bidirectional_attention=True), "use_bidirectional_attention=true: supported is"),
    ("gemma3_text", dict(rope_parameters={SLIDING: LINEAR}), "rope_parameters=.*: sliding_attention: supported are"),
    ("gemma3_text", dict(rope_parameters=LINEAR), "rope_parameters=.*: it must have a table for full_attention"),
    ("gemma3_text", dict(rope_parameters={FULL: ROPE}), "rope_parameters=.*: this family turns all numbers"),
]


@pytest.mark.parametrize(("kind", "changes", "said"), REFUSED, ids=str)
@pytest.mark.sample(12)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_neighbouring_numbers_go_apart_and_back() -> None:
    """Two heads of five numbers, of which the first four are turned in pairs (0, 1) and (2, 3)."""
    part = Part("q", ("q",), order=lambda: neighbours_apart(2, 5, 4))
    stored = torch.arange(10.0)[:, None]
    found = part.split(stored, {"q": (10, 1)})
    assert found["q"][:, 0].tolist() == [0, 2, 1, 3, 4, 5, 7, 6, 8, 9]
    assert torch.equal(part.join(found), stored)

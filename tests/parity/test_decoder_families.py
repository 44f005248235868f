"""Decoders of many families against `transformers`: the same layers, stored and named in as many ways."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers")

from tests import tiny
from tests.checkpoints import folders
from tests.parity.against_transformers import opened_and_same, same_numbers, theirs
from vizformer.checkpoints import Opened, load, save
from vizformer.checkpoints.hugging_face.missing_parameters import fairseq_waves
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
DELTA: dict[str, Any] = dict(
    head_dim=8,
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    linear_key_head_dim=4,
    linear_value_head_dim=6,
    rms_norm_eps=3e-2,  # with less the norm after the rule makes large what is small, and its rounding in float32 too
    layer_types=["linear_attention", "full_attention", "linear_attention"],
)
YARN = {
    "rope_type": "yarn",
    "rope_theta": 77.0,
    "factor": 4.0,
    "original_max_position_embeddings": 48,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
LATENT: dict[str, Any] = dict(
    {name: value for name, value in LLAMA.items() if name != "num_key_value_heads"},
    num_key_value_heads=4,
    kv_lora_rank=8,
    q_lora_rank=10,
    qk_rope_head_dim=4,
    qk_nope_head_dim=6,
    v_head_dim=7,
    n_routed_experts=8,
    num_experts_per_tok=3,
    moe_intermediate_size=8,
    n_shared_experts=2,
    n_group=4,
    topk_group=2,
    routed_scaling_factor=1.5,
    first_k_dense_replace=1,
)
HALF = {"rope_type": "default", "rope_theta": 77.0, "partial_rotary_factor": 0.5}
GPT = dict(n_embd=32, n_head=4, n_layer=3, n_positions=64)
# model_type -> the name of its classes, that of its model with a head, the sizes of a small one.
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
    rms_norm_eps=3e-2,  # as of DELTA: what the norms make large here is small
)
GEMMA4_EXPERTS: dict[str, Any] = dict(enable_moe_block=True, num_experts=5, top_k_experts=2, moe_intermediate_size=12)
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
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "phi3": ("Phi3", "ForCausalLM", LLAMA),
    "starcoder2": ("Starcoder2", "ForCausalLM", LLAMA),
    "gpt_bigcode": ("GPTBigCode", "ForCausalLM", dict(GPT, n_inner=24)),
    "gpt_neo": (
        "GPTNeo",
        "ForCausalLM",
        dict(
            hidden_size=32,
            num_heads=4,
            num_layers=3,
            max_position_embeddings=64,
            attention_types=[[["global", "local"], 1], [["global"], 1]],
            window_size=5,
        ),
    ),
    "openai-gpt": ("OpenAIGPT", "LMHeadModel", GPT),
    "bloom": ("Bloom", "ForCausalLM", dict(hidden_size=32, n_head=4, n_layer=3)),
    "falcon": (
        "Falcon",
        "ForCausalLM",
        dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64),
    ),
    "mpt": ("Mpt", "ForCausalLM", dict(d_model=32, n_heads=4, n_layers=3, max_seq_len=64)),
    "cohere": ("Cohere", "ForCausalLM", LLAMA),
    "gptj": ("GPTJ", "ForCausalLM", dict(GPT, rotary_dim=4)),
    "codegen": ("CodeGen", "ForCausalLM", dict(GPT, n_embd=64, n_head=8, rotary_dim=4)),
    "glm": ("Glm", "ForCausalLM", dict(LLAMA, head_dim=8)),
    "glm4": ("Glm4", "ForCausalLM", dict(LLAMA, head_dim=8)),
    "cohere2": ("Cohere2", "ForCausalLM", dict(LLAMA, sliding_window=4, sliding_window_pattern=2)),
    "cwm": ("Cwm", "ForCausalLM", dict(LLAMA, head_dim=6, sliding_window=4)),
    "smollm3": ("SmolLM3", "ForCausalLM", dict(LLAMA, no_rope_layer_interval=2)),
    "iquestcoder": ("Llama", "ForCausalLM", dict(LLAMA, head_dim=6)),
    "olmo": ("Olmo", "ForCausalLM", LLAMA),
    "olmo2": ("Olmo2", "ForCausalLM", LLAMA),
    "olmo3": ("Olmo3", "ForCausalLM", dict(LLAMA, sliding_window=4)),
    "exaone4": ("Exaone4", "ForCausalLM", dict(LLAMA, head_dim=6, sliding_window=4, sliding_window_pattern=2)),
    "ministral3": (
        "Ministral3",
        "ForCausalLM",
        dict(LLAMA, head_dim=6, sliding_window=5, rope_parameters=dict(YARN, llama_4_scaling_beta=0.1)),
    ),
    "nanochat": ("NanoChat", "ForCausalLM", dict(LLAMA, final_logit_softcapping=2.0, rms_norm_eps=1e-2)),
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
    "granite": (
        "Granite",
        "ForCausalLM",
        dict(
            LLAMA,
            embedding_multiplier=3.0,
            attention_multiplier=0.2,
            residual_multiplier=0.3,
            logits_scaling=2.5,
        ),
    ),
    "seed_oss": ("SeedOss", "ForCausalLM", dict(LLAMA, head_dim=6)),
    "ernie4_5": ("Ernie4_5", "ForCausalLM", dict(LLAMA, head_dim=6)),
    "helium": ("Helium", "ForCausalLM", dict(LLAMA, head_dim=8)),
    "internlm3": ("Llama", "ForCausalLM", dict(LLAMA, head_dim=6)),
    "ctrl": ("CTRL", "LMHeadModel", dict(GPT, dff=24)),
    "xglm": (
        "XGLM",
        "ForCausalLM",
        dict(d_model=32, ffn_dim=24, num_layers=3, attention_heads=4, max_position_embeddings=64),
    ),
    "biogpt": ("BioGpt", "ForCausalLM", {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}),
    # (with head_dim: without it, `transformers` 5.23 stops at rotary positions of type yarn)
    "mixtral": ("Mixtral", "ForCausalLM", dict(LLAMA, head_dim=8, num_local_experts=5)),
    "qwen2_moe": (
        "Qwen2Moe",
        "ForCausalLM",
        dict(LLAMA, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=8, shared_expert_intermediate_size=12),
    ),
    "qwen3_moe": (
        "Qwen3Moe",
        "ForCausalLM",
        dict(LLAMA, head_dim=6, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=8, decoder_sparse_step=2),
    ),
    "olmoe": ("Olmoe", "ForCausalLM", dict(LLAMA, num_experts=6, num_experts_per_tok=3)),
    "flex_olmo": ("FlexOlmo", "ForCausalLM", dict(LLAMA, num_experts=6, num_experts_per_tok=3)),
    "glm4_moe": (
        "Glm4Moe",
        "ForCausalLM",
        dict(
            LLAMA,
            n_routed_experts=8,
            num_experts_per_tok=3,
            moe_intermediate_size=8,
            n_shared_experts=2,
            n_group=4,
            topk_group=2,
            routed_scaling_factor=1.5,
            use_qk_norm=True,
            head_dim=8,
        ),
    ),
    "minimax_m2": (
        "MiniMaxM2",
        "ForCausalLM",
        dict(LLAMA, head_dim=8, num_local_experts=6, num_experts_per_tok=3, rope_parameters=HALF),
    ),
    "deepseek_v2": ("DeepseekV2", "ForCausalLM", dict(LATENT, topk_method="group_limited_greedy")),
    "deepseek_v3": ("DeepseekV3", "ForCausalLM", dict(LATENT, rope_parameters=YARN)),
    "glm4_moe_lite": (
        "Glm4MoeLite",
        "ForCausalLM",
        {name: value for name, value in LATENT.items() if name != "first_k_dense_replace"},
    ),
    "granitemoe": (
        "GraniteMoe",
        "ForCausalLM",
        dict(
            LLAMA,
            num_local_experts=5,
            embedding_multiplier=3.0,
            attention_multiplier=0.2,
            residual_multiplier=0.3,
            logits_scaling=2.5,
        ),
    ),
    "qwen3_next": (
        "Qwen3Next",
        "ForCausalLM",
        dict(
            LLAMA,
            **DELTA,
            num_experts=6,
            num_experts_per_tok=3,
            moe_intermediate_size=8,
            shared_expert_intermediate_size=12,
        ),
    ),
    "mamba2": (
        "Mamba2",
        "ForCausalLM",
        dict(
            hidden_size=24,
            num_hidden_layers=3,
            num_heads=6,
            head_dim=8,
            n_groups=3,
            state_size=5,
            chunk_size=4,
            layer_norm_epsilon=1e-3,
        ),
    ),
    "bamba": (
        "Bamba",
        "ForCausalLM",
        dict(
            LLAMA,
            head_dim=8,
            attn_layer_indices=[1],
            mamba_n_heads=8,
            mamba_d_head=8,
            mamba_n_groups=2,
            mamba_d_state=5,
            mamba_chunk_size=4,
            rms_norm_eps=3e-2,
        ),
    ),
    "nemotron_h": (
        "NemotronH",
        "ForCausalLM",
        dict(
            hidden_size=32,
            intermediate_size=24,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=6,
            max_position_embeddings=64,
            layers_block_type=["linear_attention", "mlp", "linear_attention", FULL, "mlp"],
            mamba_num_heads=6,
            mamba_head_dim=8,
            n_groups=3,
            ssm_state_size=5,
            chunk_size=4,
            layer_norm_epsilon=3e-2,
        ),
    ),
    "lfm2": (
        "Lfm2",
        "ForCausalLM",
        dict(LLAMA, full_attn_idxs=[1], conv_L_cache=4, norm_eps=3e-2, block_multiple_of=5),
    ),
    "llama4_text": (
        "Llama4",
        "ForCausalLM",
        dict(
            LLAMA,
            head_dim=8,
            intermediate_size_mlp=40,
            num_local_experts=4,
            interleave_moe_layer_step=2,
            no_rope_layer_interval=2,
            attention_chunk_size=64,
            floor_scale=65,
        ),
    ),
    "qwen3_5_text": ("Qwen3_5", "ForCausalLM", dict(LLAMA, **DELTA)),
    "gpt_oss": (
        "GptOss",
        "ForCausalLM",
        dict(LLAMA, head_dim=6, sliding_window=4, num_local_experts=5, num_experts_per_tok=2, swiglu_limit=0.7),
    ),
    "gpt_neox_japanese": (
        "GPTNeoXJapanese",
        "ForCausalLM",
        dict(hidden_size=32, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=64),
    ),
}
# Where it is called otherwise than the model.
CONFIGS = {
    "qwen3_5_text": "Qwen3_5Text",
    "llama4_text": "Llama4Text",
    "gemma3_text": "Gemma3Text",
    "gemma3n_text": "Gemma3nText",
    "gemma4_text": "Gemma4Text",
    "internlm3": "InternLM3",
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
    return folders.norms_around_zero(folder) if kind.startswith(("gemma", "qwen3_next", "qwen3_5")) else folder


def scaled(folder: Path) -> Path:
    """What stands at 1 or 0 in a new Gemma 3n or 4 with numbers of its own."""
    stored, generator = folders.tensors(folder), torch.Generator().manual_seed(0)
    for name in stored:
        if name.endswith("layer_scalar"):
            stored[name] = 0.6 + torch.rand(1, generator=generator)
        elif name.endswith(("router.scale", "per_expert_scale")):
            stored[name] = 0.6 + torch.rand(stored[name].shape, generator=generator)
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
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nemotron_h"])  # (whose head is never tied)
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


def test_what_mamba_2_is_given_is_said(tmp_path: Path) -> None:
    opened = load(written("mamba2", tmp_path))
    made = sum(w.numel() for name, w in opened.model.named_parameters() if ".feedforward" in name)
    said = " ".join(map(str, opened.report.assumptions))
    assert f"its {made:,} parameters" in said
    assert "texts up to 131,072 tokens are accepted" in said


def test_mamba_2_with_the_table_by_its_first_name(tmp_path: Path) -> None:
    folder = written("mamba2", tmp_path)
    now, weights = load(folder).trace(folders.TEXTS[0]).logits, folders.tensors(folder)
    folders.save_tensors(folder, {name.replace("embeddings", "embedding"): w for name, w in weights.items()})
    assert "backbone.embedding.weight" in folders.tensors(folder)
    assert torch.equal(load(folder).trace(folders.TEXTS[0]).logits, now)


@pytest.mark.parametrize(
    ("changes", "reach"),
    [
        (dict(attention_chunk_size=20), 20),
        (dict(floor_scale=20), 19),
        (dict(floor_scale=20, attn_temperature_tuning=False), 64),
        (dict(attention_chunk_size=20, layer_types=[FULL] * 3), 64),
    ],
    ids=str,
)
def test_how_far_llama_4_reaches(changes: dict[str, Any], reach: int, tmp_path: Path) -> None:
    """Up to there `transformers` computes the same; one token further it does not."""
    folder = written("llama4_text", tmp_path, **changes)
    opened = load(folder)
    assert opened.model.config.max_positions == reach
    assert any(f"up to {reach} tokens" in str(note) for note in opened.report.assumptions) is (reach < 64)
    ids, other = tiny.ids(min(reach + 1, 64)), theirs(folder, "Llama4ForCausalLM")
    with torch.no_grad():
        tiny.assert_close(opened.model(ids[:, :reach]), other(ids[:, :reach]).logits)
        if reach < 64:
            longer = load(written("llama4_text", tmp_path / "longer")).model
            longer.load_state_dict(opened.model.state_dict())
            assert not torch.allclose(longer(ids)[0, -1], other(ids).logits[0, -1], atol=1e-4)


def test_second_names_of_lfm2_are_followed(tmp_path: Path) -> None:
    """They count where a file has both, as in the files that were published first."""
    folder = written("lfm2", tmp_path, intermediate_size=30, tie_word_embeddings=False)
    folders.change(folder, intermediate_size=300, block_ff_dim=30, tie_word_embeddings=True, tie_embedding=False)
    ours = opened_and_same(folder, "Lfm2ForCausalLM")
    assert (ours.model.config.d_ff, ours.model.config.tied_unembedding) == (20, False)
    said = [str(note) for note in load(folder).report.assumptions]
    assert any("intermediate_size=300 and block_ff_dim=30 are two names of one thing" in note for note in said)


def test_what_nemotron_h_is_given_is_said(tmp_path: Path) -> None:
    """Of its three mixers, the first and the last have a network."""
    opened = load(written("nemotron_h", tmp_path))
    assert [layer.feedforward.W_in.weight.any().item() for layer in opened.model.decoder.layers] == [True, False, True]
    block = "decoder.layers.1.feedforward"
    made = sum(w.numel() for name, w in opened.model.named_parameters() if name.startswith(block))
    assert any(f"{made:,} parameters" in str(note) for note in opened.report.assumptions)


def test_a_network_of_nemotron_h_that_is_missing_is_not_made_of_zeros(tmp_path: Path) -> None:
    folder = written("nemotron_h", tmp_path)
    kept = {name: tensor for name, tensor in folders.tensors(folder).items() if ".layers.4." not in name}
    folders.save_tensors(folder, kept)
    with pytest.raises(CheckpointError, match=r"layers_block_type=.*: the file of weights has networks"):
        load(folder)


@pytest.mark.parametrize(("kind", "name"), [("bamba", "attn_layer_indices"), ("llama4_text", "moe_layers")])
def test_a_long_list_of_layers_is_gone_through_once(kind: str, name: str, tmp_path: Path) -> None:
    """Layers times entries would take most of a minute."""
    more = {name: [-1] * 1_000_000, "num_hidden_layers": 9_000}
    more |= {"no_rope_layers": [1] * 9_000, "layer_types": ...} if kind == "llama4_text" else {}
    folder, before = folders.change(written(kind, tmp_path), **more), time.perf_counter()
    with pytest.raises(CheckpointError, match="9000 layers, but the file of weights has only"):
        load(folder)
    assert time.perf_counter() - before < 10


@pytest.mark.parametrize("said", [False, 0, "", {}])
def test_layers_of_attention_that_are_no_list_are_refused(said: object, tmp_path: Path) -> None:
    folder = folders.change(written("bamba", tmp_path), attn_layer_indices=said)
    with pytest.raises(CheckpointError, match=r"attn_layer_indices=.*: it must be a list"):
        load(folder)


def test_files_of_nemotron_h_as_they_were(tmp_path: Path) -> None:
    """A letter for each layer, first names of fields, and `backbone` before the names of the tensors."""
    folder = written("nemotron_h", tmp_path)
    now, weights = load(folder).trace(folders.TEXTS[0]).logits, folders.tensors(folder)
    old = {re.sub("^(model|backbone)", "backbone", name): tensor for name, tensor in weights.items()}
    folders.save_tensors(folder, old)
    folders.change(
        folder,
        layers_block_type=None,
        hybrid_override_pattern="M-M*-",
        num_hidden_layers=5,
        n_groups=1,
        mamba_n_groups=3,
    )
    opened = load(folder)
    assert torch.equal(opened.trace(folders.TEXTS[0]).logits, now)
    same_numbers(opened, theirs(folder, "NemotronHForCausalLM"))


def test_limits_of_the_step_hold(tmp_path: Path) -> None:
    """`transformers` leaves them out where it writes token by token: the forward over the whole text is compared."""
    folder = written("mamba2", tmp_path, time_step_limit=[0.4, 0.9], layer_norm_epsilon=3e-2)
    ours = load(folder)
    assert (ours.model.config.state_step_least, ours.model.config.state_step_most) == (0.4, 0.9)
    same_numbers(ours, theirs(folder, "Mamba2ForCausalLM"))
    free = load(written("mamba2", tmp_path / "free", layer_norm_epsilon=3e-2)).trace(folders.TEXTS[0])
    assert not torch.allclose(free.logits, ours.trace(folders.TEXTS[0]).logits, atol=1e-2)


ROPE = {"rope_type": "default", "rope_theta": 77.0, "partial_rotary_factor": 0.5}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 77.0}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("phi3", dict(rope_parameters=ROPE, sliding_window=4, num_key_value_heads=4, rms_norm_eps=1e-2)),
    ("starcoder2", dict(use_bias=False, sliding_window=4, hidden_act="gelu", norm_epsilon=1e-2)),
    ("gpt_bigcode", dict(multi_query=False, activation_function="relu", n_inner=None)),
    ("gpt_bigcode", dict(n_head=1, scale_attn_weights=False)),
    ("gpt_neo", dict(attention_types=[[["local"], 3]], intermediate_size=24, layer_norm_epsilon=1e-2)),
    ("gpt_neo", dict(window_size=64, activation_function="relu")),
    ("openai-gpt", dict(afn="relu", layer_norm_epsilon=1e-2)),
    ("openai-gpt", dict(afn="silu")),
    ("bloom", dict(hidden_size=30, n_head=6, layer_norm_epsilon=1e-2)),
    ("falcon", dict(multi_query=False, bias=True, rope_parameters=LINEAR)),
    ("falcon", dict(parallel_attn=False, ffn_hidden_size=24, activation="relu")),
    ("falcon", dict(new_decoder_architecture=True, num_kv_heads=2)),
    ("falcon", dict(new_decoder_architecture=True, num_kv_heads=2, num_ln_in_parallel_attn=1, bias=True)),
    ("falcon", dict(new_decoder_architecture=True, num_kv_heads=1, layer_norm_epsilon=1e-2)),
    ("mpt", dict(d_model=30, n_heads=6, layer_norm_epsilon=1e-2)),
    ("mpt", dict(attn_config={"softmax_scale": 0.3})),
    ("cohere", dict(attention_bias=True, logit_scale=0.5, rope_parameters=LINEAR, layer_norm_eps=1e-2)),
    ("cohere2", dict(attention_bias=True, logit_scale=0.5, rope_parameters=LINEAR, layer_types=[FULL] * 3)),
    ("cohere2", dict(layer_types=[SLIDING] * 3, sliding_window=64)),
    ("cwm", dict(layer_types=[FULL, SLIDING, FULL], rope_parameters=LINEAR, mlp_bias=True)),
    ("smollm3", dict(no_rope_layers=[0, 0, 1], attention_bias=True, rope_parameters=LINEAR)),
    ("smollm3", dict(no_rope_layers=[0, 0, 0], mlp_bias=True)),
    ("smollm3", dict(use_sliding_window=True, sliding_window=4, no_rope_layers=[1, 0, 1])),
    ("smollm3", dict(use_sliding_window=True, sliding_window=4, layer_types=[SLIDING, FULL, SLIDING])),
    ("gptj", dict(rotary_dim=8, n_inner=24, activation_function="relu", layer_norm_epsilon=1e-2)),
    ("codegen", dict(rotary_dim=8, n_inner=24, n_head=4, n_embd=32, activation_function="relu")),
    ("glm", dict(attention_bias=False, rope_parameters={**ROPE, "partial_rotary_factor": 1.0}, head_dim=6)),
    ("glm4", dict(attention_bias=False, rope_parameters={**ROPE, "partial_rotary_factor": 1.0}, head_dim=6)),
    ("glm4", dict(rms_norm_eps=1e-2, num_key_value_heads=4, hidden_act="relu")),
    ("olmo", dict(attention_bias=True, num_key_value_heads=4, rope_parameters=LINEAR)),
    ("olmo2", dict(attention_bias=True, num_key_value_heads=4, rope_parameters=LINEAR, rms_norm_eps=1e-2)),
    ("olmo2", dict(hidden_size=30, num_attention_heads=3, num_key_value_heads=1, hidden_act="gelu")),
    ("olmo3", dict(layer_types=[FULL, SLIDING, FULL], rope_parameters={FULL: LINEAR, SLIDING: {"rope_theta": 77.0}})),
    ("olmo3", dict(layer_types=[FULL] * 3, attention_bias=True)),
    ("exaone4", dict(layer_types=[FULL, SLIDING, SLIDING], rope_parameters=LINEAR, num_key_value_heads=4)),
    ("exaone4", dict(sliding_window=None, layer_types=[FULL] * 3, rms_norm_eps=1e-2)),
    ("exaone4", dict(layer_types=[FULL] * 3)),
    ("exaone4", dict(sliding_window=64, layer_types=[SLIDING] * 3)),
    ("ministral3", dict(sliding_window=None, rope_parameters=dict(YARN, llama_4_scaling_beta=0.5, mscale=0.7))),
    ("ministral3", dict(rope_parameters=dict(LINEAR, llama_4_scaling_beta=0, original_max_position_embeddings=64))),
    ("nanochat", dict(attention_bias=True, num_key_value_heads=4, hidden_act="gelu")),
    ("nanochat", dict(final_logit_softcapping=None, rope_parameters=LINEAR)),
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
    ("gemma4_text", GEMMA4_EXPERTS),
    ("gemma4_text", dict(GEMMA4_EXPERTS, num_kv_shared_layers=2, top_k_experts=5, output_hidden_states=True)),
    ("gemma4_text", dict(GEMMA4_EXPERTS, hidden_size_per_layer_input=6, attention_k_eq_v=False, rms_norm_eps=3e-2)),
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
    ("granite", dict(attention_bias=True, num_key_value_heads=4, rope_parameters=LINEAR, attention_multiplier=1)),
    ("granite", dict(mlp_bias=True, embedding_multiplier=1, residual_multiplier=1.0, logits_scaling=1)),
    ("seed_oss", dict(attention_out_bias=True, mlp_bias=True, head_dim=8)),
    ("seed_oss", dict(attention_bias=False)),
    ("ernie4_5", dict(use_bias=True, rope_parameters=LINEAR, head_dim=8)),
    ("helium", dict(attention_bias=True, mlp_bias=True)),
    ("internlm3", dict(qkv_bias=True, bias=True, rope_parameters=LINEAR)),
    ("internlm3", dict(attention_bias=True, mlp_bias=True, head_dim=8)),
    ("mixtral", dict(sliding_window=4, num_experts_per_tok=1, num_key_value_heads=4, head_dim=6)),
    ("mixtral", dict(num_experts_per_tok=5, rope_parameters=LINEAR, hidden_act="gelu")),
    ("qwen2_moe", dict(norm_topk_prob=True, mlp_only_layers=[1], qkv_bias=False)),
    ("qwen2_moe", dict(num_experts=0)),
    ("qwen2_moe", dict(use_sliding_window=True, sliding_window=4, max_window_layers=2, decoder_sparse_step=3)),
    ("qwen3_moe", dict(attention_bias=True, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[0, 2])),
    ("qwen3_moe", dict(use_sliding_window=True, sliding_window=4, mlp_only_layers=[0, 1, 2])),
    ("olmoe", dict(norm_topk_prob=True, attention_bias=True, rope_parameters=LINEAR)),
    ("flex_olmo", dict(norm_topk_prob=True, attention_bias=True, num_key_value_heads=4)),
    ("glm4_moe", dict(n_group=1, topk_group=1, norm_topk_prob=False, attention_bias=True, first_k_dense_replace=0)),
    (
        "glm4_moe",
        dict(use_qk_norm=False, first_k_dense_replace=2, routed_scaling_factor=1.0, rope_parameters=dict(LINEAR)),
    ),
    ("glm4_moe", dict(first_k_dense_replace=3)),
    ("deepseek_v2", dict(topk_method="greedy", n_group=None, topk_group=None, q_lora_rank=None, attention_bias=True)),
    (
        "deepseek_v2",
        dict(first_k_dense_replace=0, v_head_dim=10, rope_parameters=dict(YARN, mscale=0.7, mscale_all_dim=0.7)),
    ),
    ("deepseek_v2", dict(first_k_dense_replace=3, num_experts_per_tok=4, qk_rope_head_dim=2, rope_parameters=LINEAR)),
    ("deepseek_v3", dict(rope_parameters={**YARN, "mscale": 0.7})),
    ("deepseek_v3", dict(q_lora_rank=None, attention_bias=True, rms_norm_eps=1e-2, n_group=1, topk_group=1)),
    ("deepseek_v3", dict(norm_topk_prob=False, rope_parameters=dict(LINEAR), hidden_act="gelu", num_hidden_layers=2)),
    ("deepseek_v3", dict(rope_parameters=dict(YARN, factor=1.0), qk_nope_head_dim=3, kv_lora_rank=5, q_lora_rank=1)),
    ("deepseek_v3", dict(rope_parameters=dict(YARN, attention_factor=1.0, mscale=None, mscale_all_dim=0.5))),
    ("glm4_moe_lite", dict(mlp_layer_types=["sparse", "dense", "sparse"], attention_bias=True, q_lora_rank=None)),
    ("glm4_moe_lite", dict(mlp_layer_types=["dense"] * 3, v_head_dim=3, kv_lora_rank=1, rope_parameters=LINEAR)),
    ("minimax_m2", dict(num_experts_per_tok=1, num_key_value_heads=4, hidden_act="gelu", rope_parameters=dict(LINEAR))),
    ("granitemoe", dict(attention_bias=True, num_experts_per_tok=3, rope_parameters=LINEAR, hidden_act="relu")),
    (
        "qwen3_next",
        dict(layer_types=["linear_attention", "linear_attention", FULL], norm_topk_prob=False, mlp_only_layers=[1]),
    ),
    ("mamba2", dict(use_bias=True, n_groups=1, conv_kernel=2, chunk_size=256, expand=4, num_heads=12)),
    ("mamba2", dict(residual_in_fp32=False, time_step_limit=[0.0, float("inf")], n_groups=6, layer_norm_epsilon=3e-2)),
    ("bamba", dict(attn_layer_indices=[0, 2], mamba_proj_bias=True, mamba_n_groups=1, mamba_d_conv=2)),
    ("bamba", dict(attention_bias=True, mlp_bias=True, mamba_d_head="auto", mamba_expand=4, rope_parameters=ROPE)),
    ("bamba", dict(attn_layer_indices=[0, 1, 2], num_key_value_heads=4, rope_parameters=dict(LINEAR))),
    (
        "llama4_text",
        dict(use_qk_norm=False, num_experts_per_tok=2, interleave_moe_layer_step=1, rope_parameters=LINEAR),
    ),
    ("llama4_text", dict(moe_layers=[0, 1], no_rope_layers=[1, 1, 1], attention_bias=True, floor_scale=4)),
    ("llama4_text", dict(moe_layers=[], no_rope_layers=[0, 0, 0], attn_temperature_tuning=False, head_dim=6)),
    ("lfm2", dict(layer_types=["conv", FULL, "conv"], full_attn_idxs=[0], conv_bias=True, conv_L_cache=2)),
    ("lfm2", dict(full_attn_idxs=[2], block_auto_adjust_ff_dim=False, num_key_value_heads=4, conv_L_cache=1)),
    ("lfm2", dict(full_attn_idxs=[0, 2, 9], head_dim=6, block_ffn_dim_multiplier=1.7, rope_parameters=dict(LINEAR))),
    ("lfm2", dict(full_attn_idxs=None, num_attention_heads=8, conv_L_cache=7, norm_eps=1e-2)),
    ("nemotron_h", dict(layers_block_type=[FULL, "mlp", FULL], mlp_bias=True, num_key_value_heads=4)),
    ("nemotron_h", dict(layers_block_type=[FULL, "linear_attention"], use_bias=True, n_groups=1, conv_kernel=2)),
    ("nemotron_h", dict(layers_block_type=None, hybrid_override_pattern="M-*-M", mlp_hidden_act="gelu", head_dim=8)),
    ("qwen3_next", dict(attention_bias=True, linear_num_key_heads=6, linear_conv_kernel_dim=2, num_experts=0)),
    ("qwen3_5_text", dict(layer_types=None, num_hidden_layers=4, linear_key_head_dim=7, linear_conv_kernel_dim=2)),
    ("qwen3_5_text", dict(layer_types=[FULL] * 3, rope_parameters={**ROPE, "mrope_section": [1, 1, 0]})),
    ("gpt_oss", dict(layer_types=[FULL, SLIDING, FULL], attention_bias=False, rope_parameters=LINEAR)),
    ("gpt_oss", dict(num_experts_per_tok=5, num_key_value_heads=4, rms_norm_eps=1e-2, swiglu_limit=7.0)),
    ("xglm", dict(scale_embedding=False, activation_function="relu", pad_token_id=5)),
    ("biogpt", dict(scale_embedding=False, hidden_act="relu")),
    ("gpt_neox_japanese", dict(rope_parameters=ROPE, intermediate_multiple_size=2, hidden_act="relu")),
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
    ("llama4_text", dict(attention_chunk_size=None), "attention_chunk_size=null: it must be a whole number"),
    ("llama4_text", dict(layer_types=[SLIDING] * 3), "layer_types=.*: it must list full_attention or chunked"),
    ("llama4_text", dict(moe_layers="all"), 'moe_layers="all": it must be a list of numbers'),
    (
        "llama4_text",
        dict(rope_parameters={**YARN, "mscale": 0.7}),
        "rope_parameters=.*: queries and keys are normalised after",
    ),
    ("llama4_text", dict(floor_scale=1), "floor_scale=1: it must be above 1"),
    (
        "nemotron_h",
        dict(layers_block_type=["linear_attention", "moe"]),
        "layers_block_type=.*: supported are layers of",
    ),
    (
        "nemotron_h",
        dict(layers_block_type=["mlp", FULL]),
        "layers_block_type=.*: supported are networks .* follow a mixer",
    ),
    ("nemotron_h", dict(layers_block_type=[FULL, "mlp", "mlp"]), "layers_block_type=.*: supported are networks"),
    (
        "nemotron_h",
        dict(layers_block_type=["linear_attention", "linear_attention", "mlp", FULL, "mlp"]),
        "layers_block_type=.*: the file of weights has networks .* in other layers",
    ),
    (
        "nemotron_h",
        dict(layers_block_type=..., hybrid_override_pattern="ME*"),
        "hybrid_override_pattern=.*: supported are layers",
    ),
    ("falcon", dict(alibi=True), "alibi=true: what it takes off the scores is rounded to bfloat16"),
    ("falcon", dict(num_ln_in_parallel_attn=2), "num_ln_in_parallel_attn=2: supported is null / 1"),
    ("phi3", dict(rope_scaling=LINEAR), "rope_scaling=.*: supported here are rotary positions as they are"),
    ("cohere", dict(use_qk_norm=True), "use_qk_norm=true: supported is false"),
    ("cohere2", dict(sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("cohere2", dict(layer_types=[FULL]), "layer_types=.*: it must have an entry for each of the 3 layers"),
    ("cwm", dict(sliding_window=None), "sliding_window=null: it must be a whole number"),
    ("smollm3", dict(no_rope_layers=[1, 0]), "no_rope_layers=.*: it must have an entry for each of the 3 layers"),
    ("smollm3", dict(no_rope_layers=[1, 2, 0]), "no_rope_layers=.*: it must list 1 for a layer with rotary positions"),
    (
        "exaone4",
        dict(sliding_window=None, layer_types=...),
        "layer_types=null: where sliding_window is null it must have",
    ),
    (
        "exaone4",
        dict(sliding_window_pattern="LLG", layer_types=...),
        'sliding_window_pattern="LLG": it must be a whole',
    ),
    ("ministral3", dict(rope_parameters=YARN), "rope_parameters=.*: it must say original_max_position_embeddings and"),
    (
        "nanochat",
        dict(rope_parameters={"rope_type": "yarn", "factor": 2.0}),
        "rope_parameters=.*: queries and keys are",
    ),
    ("gemma2", dict(attn_logit_softcapping=-1.0), "attn_logit_softcapping=-1.0: it must be a number above 0"),
    (
        "gemma4_text",
        dict(hidden_size_per_layer_input=8, vocab_size_per_layer_input=7),
        "vocab_size_per_layer_input=7: it must be vocab_size",
    ),
    ("gemma4_text", dict(hidden_size_per_layer_input=-8), "hidden_size_per_layer_input=-8: it must be a whole number"),
    ("gemma4_text", dict(enable_moe_block=1), "enable_moe_block=1: it must be true or false"),
    ("gemma4_text", dict(enable_moe_block=True), "num_experts=null: it must be a whole number"),
    ("gemma4_text", dict(GEMMA4_EXPERTS, top_k_experts=6), "top_k_experts=6: it must not be above num_experts"),
    ("gemma4_text", dict(GEMMA4_EXPERTS, num_experts=10**6), "num_experts=1000000: the file of weights has fewer"),
    (
        "gemma4_text",
        dict(GEMMA4_EXPERTS, moe_intermediate_size=0),
        "moe_intermediate_size=0: it must be a whole number",
    ),
    (
        "gemma4_text",
        dict(GEMMA4_EXPERTS, use_double_wide_mlp=True, num_kv_shared_layers=2),
        "use_double_wide_mlp=true: not with experts",
    ),
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
    ("olmo3", dict(rope_parameters={}, rope_scaling=LINEAR), "rope_scaling=.*: rope_parameters has no table"),
    ("olmo", dict(clip_qkv=8.0), "clip_qkv=8.0: supported is null"),
    ("mpt", dict(attn_config={"alibi": False}), "attn_config: alibi=false: supported is true"),
    ("mpt", dict(attn_config=[1]), "attn_config=.*: it must be a table of fields"),
    ("codegen", dict(n_head=2), "n_head=2: it must be a multiple of 4"),
    ("gptj", dict(rotary_dim=None), "rotary_dim=null: it must be a whole number"),
    ("mixtral", dict(num_experts_per_tok=6), "num_experts_per_tok=6: it must not be above num_local_experts"),
    ("mixtral", dict(num_local_experts=10**9), "num_local_experts=1000000000: the file of weights has fewer tensors"),
    ("glm4_moe", dict(n_group=3), "router_groups=3: n_experts=8 must make groups of one size"),
    (
        "glm4_moe",
        dict(n_group=8, topk_group=4),
        "router_groups=8: n_experts=8 must make groups of one size, of at least 2",
    ),
    ("glm4_moe", dict(topk_group=5), "router_groups_used=5: must not be above router_groups=4"),
    ("glm4_moe", dict(topk_group=1), "num_experts_per_tok=3: the groups of topk_group have fewer"),
    ("glm4_moe", dict(first_k_dense_replace=-1), "first_k_dense_replace=-1: it must be a whole number, 0 or above"),
    ("deepseek_v2", dict(topk_method="noaux_tc"), 'topk_method="noaux_tc": supported are greedy, group_limited_greedy'),
    ("deepseek_v2", dict(norm_topk_prob=True), "norm_topk_prob=true: supported is null / false"),
    ("deepseek_v2", dict(mlp_bias=True), "mlp_bias=true: supported is null / false"),
    ("deepseek_v2", dict(n_group=None), "n_group=null: it must be a whole number"),
    ("deepseek_v3", dict(rope_interleave=False), "rope_interleave=false: supported is null / true"),
    ("deepseek_v3", dict(num_key_value_heads=2), "num_key_value_heads=2: supported is null / 4"),
    ("deepseek_v3", dict(scoring_func="softmax"), 'scoring_func="softmax": supported is null / "sigmoid"'),
    ("deepseek_v3", dict(topk_method="greedy"), 'topk_method="greedy": supported is null / "noaux_tc"'),
    ("deepseek_v3", dict(moe_layer_freq=2), "moe_layer_freq=2: supported is null / 1"),
    (
        "deepseek_v3",
        dict(rope_parameters={**YARN, "mscale_all_dim": -1}),
        "mscale_all_dim=-1: it must be a number above",
    ),
    ("deepseek_v3", dict(rope_parameters=[1]), "rope_parameters=.*: rotary positions are supported"),
    ("deepseek_v3", dict(rope_parameters=ROPE), "rope_parameters=.*: this family turns all numbers"),
    ("deepseek_v3", dict(qk_head_dim=9), "qk_head_dim=9: supported is null / 10"),
    ("deepseek_v3", dict(head_dim=2), "head_dim=2: it must be qk_rope_head_dim, 4, or left out"),
    ("deepseek_v3", dict(head_dim=None), "head_dim=null: it must be qk_rope_head_dim, 4, or left out"),
    ("deepseek_v3", dict(kv_lora_rank=0), "kv_lora_rank=0: it must be a whole number from 1"),
    ("deepseek_v3", dict(kv_lora_rank=...), '"model.layers.0.self_attn.kv_a_layernorm.weight" has the shape|has shape'),
    ("deepseek_v3", dict(kv_lora_rank=2**31 - 1), "shape"),
    ("deepseek_v3", dict(kv_lora_rank=2**40), "kv_lora_rank=1099511627776: it must be a whole number from 1"),
    ("deepseek_v3", dict(q_lora_rank=0), "q_lora_rank=0: it must be a whole number from 1"),
    ("deepseek_v3", dict(q_lora_rank="10"), 'q_lora_rank="10": it must be a whole number from 1'),
    (
        "deepseek_v3",
        dict(qk_rope_head_dim=3, qk_head_dim=..., head_dim=...),
        "rope_dims=3: rotary positions turn pairs of numbers",
    ),
    ("deepseek_v3", dict(qk_rope_head_dim=0, qk_head_dim=...), "qk_rope_head_dim=0: it must be a whole number from 1"),
    ("deepseek_v3", dict(qk_rope_head_dim=2**31 - 2, qk_head_dim=..., head_dim=...), "does not fit"),
    ("deepseek_v3", dict(qk_nope_head_dim=0, qk_head_dim=...), "qk_nope_head_dim=0: it must be a whole number from 1"),
    ("deepseek_v3", dict(v_head_dim=None), "v_head_dim=null: it must be a whole number from 1"),
    ("deepseek_v3", dict(v_head_dim=-7), "v_head_dim=-7: it must be a whole number from 1"),
    ("deepseek_v3", dict(n_group=3), "router_groups=3: n_experts=8 must make groups of one size"),
    ("deepseek_v3", dict(n_routed_experts=10**9), "n_routed_experts=1000000000: the file of weights has fewer"),
    ("deepseek_v3", dict(first_k_dense_replace=None), "first_k_dense_replace=null: it must be a whole number"),
    ("deepseek_v3", dict(num_hidden_layers=2**31 - 1), "n_routed_experts|num_hidden_layers"),
    ("glm4_moe_lite", dict(mlp_layer_types=["sparse"]), "mlp_layer_types=.*: it must list dense or sparse for each"),
    ("glm4_moe_lite", dict(mlp_layer_types=["moe"] * 3), "mlp_layer_types=.*: it must list dense or sparse for each"),
    ("glm4_moe_lite", dict(mlp_layer_types=7), "mlp_layer_types=.*: it must list dense or sparse for each"),
    (
        "glm4_moe_lite",
        dict(mlp_layer_types=..., first_k_dense_replace=2),
        "first_k_dense_replace=2: supported is null / 1",
    ),
    ("qwen3_moe", dict(num_experts=3, num_local_experts=6), "num_experts and num_local_experts are two names of one"),
    ("qwen3_moe", dict(mlp_only_layers="no"), 'mlp_only_layers="no": it must be a list of numbers'),
    ("qwen3_moe", dict(decoder_sparse_step=0), "decoder_sparse_step=0: it must be a whole number"),
    ("olmoe", dict(clip_qkv=8.0), "clip_qkv=8.0: supported is null"),
    (
        "qwen3_next",
        dict(layer_types=[SLIDING] * 3),
        "layer_types=.*: supported are full_attention and linear_attention",
    ),
    ("qwen3_5_text", dict(linear_num_key_heads=4), "state_value_heads=6 is not a multiple of state_key_heads=4"),
    ("mamba2", dict(use_conv_bias=False), "use_conv_bias=false: supported is true"),
    ("mamba2", dict(hidden_act="gelu"), 'hidden_act="gelu": supported is "silu"'),
    ("mamba2", dict(expand=3), "expand=3: expand . hidden_size must be num_heads . head_dim"),
    ("mamba2", dict(n_groups=4), "state_value_heads=6 is not a multiple of state_key_heads=4"),
    ("mamba2", dict(time_step_limit=[0.2, 0.1]), "time_step_limit=.*: it must be two numbers from 0 on"),
    ("mamba2", dict(time_step_limit="wide"), "time_step_limit=.*: it must be two numbers from 0 on"),
    (
        "mamba2",
        dict(time_step_limit=[0, 10**400]),
        "time_step_limit=.*: it must be two numbers from 0 on and below 1e30",
    ),
    ("mamba2", dict(time_step_limit=[1e30, float("inf")]), "time_step_limit=.*: it must be two numbers from 0 on"),
    ("mamba2", dict(num_hidden_layers=2**31 - 1), "num_hidden_layers=2147483647: supported are at most"),
    ("lfm2", dict(conv_L_cache=0), "conv_L_cache=0: it must be a whole number from 1"),
    ("lfm2", dict(conv_L_cache=2**31 - 1), "conv_L_cache=2147483647: supported are at most 64"),
    ("lfm2", dict(conv_L_cache="3"), 'conv_L_cache="3": it must be a whole number from 1'),
    ("lfm2", dict(conv_L_cache=5), "shape"),
    ("lfm2", dict(conv_bias="no"), 'conv_bias="no": it must be true or false'),
    ("lfm2", dict(conv_bias=True), "conv.*bias"),
    ("lfm2", dict(layer_types=..., full_attn_idxs=7), "full_attn_idxs=7: it must be a list of numbers of layers"),
    (
        "lfm2",
        dict(layer_types=..., full_attn_idxs=[1, True]),
        "full_attn_idxs=.*: it must be a list of numbers of layers",
    ),
    ("lfm2", dict(layer_types=["conv"]), "layer_types=.*: it must have an entry for each of the 3 layers"),
    ("lfm2", dict(layer_types=["conv", SLIDING, FULL]), "layer_types=.*: supported are full_attention and conv"),
    ("lfm2", dict(num_hidden_layers=2**31 - 1), "num_hidden_layers=2147483647: supported are at most"),
    ("lfm2", dict(block_ffn_dim_multiplier=1e29), "block_ffn_dim_multiplier=1e.29: the width of the networks would be"),
    ("lfm2", dict(block_ffn_dim_multiplier=0), "block_ffn_dim_multiplier=0: it must be a number above 0"),
    ("lfm2", dict(block_ffn_dim_multiplier=1e-9), "the width of the networks would be 0"),
    ("lfm2", dict(block_multiple_of=0), "block_multiple_of=0: it must be a whole number from 1"),
    ("lfm2", dict(block_auto_adjust_ff_dim=None), "block_auto_adjust_ff_dim=null: it must be true or false"),
    ("qwen3_5_text", dict(hidden_act="relu"), 'hidden_act="relu": supported is "silu"'),
    ("gpt_oss", dict(swiglu_alpha=1.0), "swiglu_alpha=1.0: supported is 1.702"),
    ("gpt_oss", dict(num_experts_per_tok=6), "num_experts_per_tok=6: it must not be above num_local_experts"),
    ("seed_oss", dict(attention_bias=False, attention_out_bias=True), "attention_bias=false: supported is true"),
    ("internlm3", dict(mlp_bias=True), "mlp_bias=true: supported is false"),
    ("helium", dict(head_dim=6), "head_dim=6: supported are heads as wide as their share"),
    ("gpt_neo", dict(attention_layers=["local", "far", "global"]), "attention_layers=.*: it must list global or local"),
    (
        "gpt_neo",
        dict(attention_layers=..., attention_types=[["local", 3]]),
        "attention_types=.*: it must list global or",
    ),
    ("gpt_neo", dict(attention_layers=..., attention_types=[[["local"], 10**9]]), "attention_types=.*: it must list"),
    (
        "gpt_neox_japanese",
        dict(rope_scaling={"rope_type": "ntk"}),
        "rope_scaling=.*: rotary positions are supported",
    ),
]


@pytest.mark.parametrize(("kind", "changes", "said"), REFUSED, ids=str)
@pytest.mark.sample(12)
def test_what_is_not_followed_is_refused_by_name(kind: str, changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    folder = folders.change(written(kind, tmp_path), **changes)
    with pytest.raises(CheckpointError, match=said):
        load(folder)


def test_scaling_that_stands_where_it_stood_before_version_5(tmp_path: Path) -> None:
    """Alone, also in the family whose usual rope_parameters are scaled."""
    folder = folders.change(written("cwm", tmp_path), rope_parameters=..., rope_scaling=LINEAR)
    assert opened_and_same(folder, "CwmForCausalLM").model.config.rope_scaling == "linear"


@pytest.mark.parametrize("kind", ["deepseek_v2", "deepseek_v3"])
def test_code_that_transformers_has_taken_over_is_named_and_not_run(kind: str, tmp_path: Path) -> None:
    name = {"deepseek_v2": "DeepseekV2", "deepseek_v3": "DeepseekV3"}[kind]
    code = {
        "AutoConfig": f"configuration_deepseek.{name}Config",
        "AutoModelForCausalLM": f"deepseek-ai/{name}--modeling_deepseek.{name}ForCausalLM",
    }
    folder = folders.change(written(kind, tmp_path), auto_map=code)
    assert any("the class that `transformers` has" in str(one) for one in load(folder).report.assumptions)
    for other in (
        "modeling_deepseek.DeepseekV3ForCausalLM2",
        "x.DeepseekV3Model",
        7,
        ["modeling_deepseek.DeepseekV3Model"],
    ):
        folders.change(folder, auto_map={**code, "AutoModel": other})
        with pytest.raises(CheckpointError, match="brings its own code, which is never run"):
            load(folder)


def test_how_the_first_files_of_minimax_m2_say_what_turns(tmp_path: Path) -> None:
    folder = folders.change(written("minimax_m2", tmp_path), rope_parameters=..., rope_theta=77.0, rotary_dim=6)
    assert opened_and_same(folder, "MiniMaxM2ForCausalLM").model.config.rope_dims == 6


def test_waves_that_an_old_xglm_file_holds_are_compared(tmp_path: Path) -> None:
    folder = written("xglm", tmp_path)
    waves = fairseq_waves(66, 32, 0, 0)
    weights = folders.tensors(folder)
    folders.save_tensors(folder, {**weights, "model.embed_positions.weights": waves})
    assert load(folder).report.problems == ()
    folders.save_tensors(folder, {**weights, "model.embed_positions.weights": waves + 0.1})
    with pytest.raises(CheckpointError, match="should hold what follows"):
        load(folder)


WITH_EXPERTS = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "flex_olmo", "granitemoe")
NAMES = {"mixtral": ("w1", "w3", "w2")}


@pytest.mark.parametrize("kind", WITH_EXPERTS)
@pytest.mark.sample(2)
def test_experts_open_one_by_one_and_in_one_tensor(kind: str, tmp_path: Path) -> None:
    """Of 5 or 6 experts, whose matrices lie in the file each by itself or as [n_experts, rows, columns]."""
    folder = written(kind, tmp_path)
    opened, stored = load(folder), folders.tensors(folder)
    expected = opened.trace(folders.TEXTS[0])
    chosen = {site: set(routing.chosen.flatten().tolist()) for site, routing in expected.routings.items()}
    assert list(chosen) == [f"decoder.{i}.feedforward" for i in range(3) if kind != "qwen3_moe" or i == 1]
    assert all(len(one) > opened.model.config.experts_per_token for one in chosen.values())
    names = {name for name in stored if ".experts." in name or "_linear." in name}
    rest = {name: tensor for name, tensor in stored.items() if name not in names}
    for stack in (True, False):
        other = dict(rest)
        for site in expected.routings:
            layer = int(site.split(".")[1])
            experts = opened.model.decoder.layers[layer].feedforward.experts
            at = f"model.layers.{layer}.{'mlp' if kind != 'granitemoe' or not stack else 'block_sparse_moe'}"
            if stack:
                first = [torch.cat([e.W_gate.weight, e.W_in.weight]) for e in experts]
                other[f"{at}.experts.gate_up_proj"] = torch.stack(first)
                other[f"{at}.experts.down_proj"] = torch.stack([e.W_out.weight for e in experts])
                continue
            at = at.replace("mlp", "block_sparse_moe") if kind == "mixtral" else at
            for number, e in enumerate(experts):
                for name, of in zip(
                    NAMES.get(kind, ("gate_proj", "up_proj", "down_proj")), ("gate", "in", "out"), strict=True
                ):
                    other[f"{at}.experts.{number}.{name}.weight"] = getattr(e, f"W_{of}").weight.clone()
        folders.save_tensors(folder, other)
        again = load(folder)
        assert {tensor.fate for tensor in again.report.tensors} == {"used"}
        kept = again.model.state_dict()
        assert all(torch.equal(kept[name], tensor) for name, tensor in opened.model.state_dict().items())
        # The same weights at another place in memory: on some processors the last bit of a sum depends on that.
        tiny.assert_close(again.trace(folders.TEXTS[0]).logits, expected.logits, 1e-6)
    missing = next(name for name in other if ".experts.1." in name)
    folders.save_tensors(folder, {name: tensor for name, tensor in other.items() if name != missing})
    with pytest.raises(CheckpointError, match=r'experts\.1\.\w+\.weight" is missing'):
        load(folder)


def test_neighbouring_numbers_go_apart_and_back() -> None:
    """Two heads of five numbers, of which the first four are turned in pairs (0, 1) and (2, 3)."""
    part = Part("q", ("q",), order=lambda: neighbours_apart(2, 5, 4))
    stored = torch.arange(10.0)[:, None]
    found = part.split(stored, {"q": (10, 1)})
    assert found["q"][:, 0].tolist() == [0, 2, 1, 3, 4, 5, 7, 6, 8, 9]
    assert torch.equal(part.join(found), stored)


BACK: list[tuple[str, dict[str, Any]]] = [
    ("mixtral", dict(sliding_window=4)),
    ("mixtral", dict(tie_word_embeddings=True, rope_parameters=LINEAR)),
    ("qwen2_moe", dict(norm_topk_prob=True, mlp_only_layers=[1])),
    ("qwen2_moe", dict(qkv_bias=False)),
    ("qwen3_moe", {}),
    ("qwen3_moe", dict(attention_bias=True, norm_topk_prob=True, decoder_sparse_step=1)),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("kind", "changes"), BACK, ids=str)
def test_experts_go_back_to_their_layout_one_by_one(kind: str, changes: dict[str, Any], tmp_path: Path) -> None:
    """What is written opens in `transformers` with the same logits, stream, maps and greedy tokens."""
    original = load(written(kind, tmp_path / "theirs", **changes))
    save(original, tmp_path / "again", torch.float32, layout="hugging-face")
    again = opened_and_same(tmp_path / "again", "".join(KINDS[kind][:2]))
    assert again.model.config == original.model.config
    assert again.report.family == original.report.family
    assert {tensor.fate for tensor in again.report.tensors} == {"used"}
    for name, tensor in original.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], tensor), name


def test_experts_narrower_than_mixtrals_networks_stay(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="Mixtral, apart from d_expert=12"):
        save(tiny.checkpoint("decoder-only", **tiny.MIXTRAL), tmp_path, layout="hugging-face")

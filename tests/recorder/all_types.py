"""Tiny models with random weights of every text type of `transformers`, their sizes set by rule from the names of fields."""

import inspect
import re
from typing import Any

import torch
from torch import nn

VOCAB = 99
"""Tokens; ids from 60 on stand for pictures, sounds and the like, those below 10 for ends of texts."""

_TABLES = ("SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "CAUSAL_LM")
"""Where `transformers` says which types write or fill in text; of a type in several of them the first counts."""

SIZES: tuple[tuple[str, int], ...] = (
    (r"codebook_size|audio_vocab_size", 64),
    (r"(?!type_|task_type_).*vocab_size.*", VOCAB),
    (r"type_vocab_size|task_type_vocab_size", 2),
    (r"(num_|swa_num_)?(key_value|kv)_heads|kv_n_heads|num_query_groups|linear_num_key_heads|multi_query_group_num", 2),
    (r".*attention_heads|n_heads?|num_heads|index_n_heads|linear_num_(value_)?heads|n_mamba_heads", 4),
    (r"qk_rope_head_dim", 4),
    (r"qk_head_dim", 12),
    (r".*head_dim|.*head_size|kv_channels|d_head|d_kv|dim_head|mamba_d_head|mamba_headdim|swa_head_dim", 8),
    (r"mamba_(n_|num_)?heads|mamba_num_heads|mamba_n_heads|num_heads_mamba", 8),
    (
        r"(num_)?(hidden_|encoder_|decoder_)*(layers?|blocks)|n_layers?|.*_(encoder|decoder)_layers|conf_num_hidden_layers",
        2,
    ),
    (r"num_layers_per_stack|depth", 2),
    (r".*hidden_size.*|d_model|n_embd|dim|emb_dim|embed_dim|word_embed_proj_dim|.*embedding_size", 32),
    (r"lru_width|d_latents|output_dim|projector_(in|out)put_dim|mamba_d_ssm|out_hidden_size|prediction_head_size", 32),
    (
        r".*intermediate_size(_mlp)?|.*ffn_dim|d_ff|d_inner|dff|dim_ff|hidden_dim|.*ffn_hidden_size|feed_forward_size",
        40,
    ),
    (r"mlp_dim|prompt_mid_dim", 40),
    (r"(num_|n_)?(routed_|local_|moe_num_)?experts|moe_num_experts", 4),
    (r"num_experts_per_tok(en)?|moe_top_?k|moe_k|n_group|num_expert_group", 2),
    (r"topk_group", 1),
    (r"first_k_dense_replace|num_dense_layers|max_window_layers", 1),
    (r".*lora_rank", 16),
    (r"index_topk", 4),
    (
        r"attention_window|sliding_window(_size)?|attention_window_size|local_attention(_window_len)?|keep_window_size",
        4,
    ),
    (r"max_(.*_)?position_embeddings|n_positions|max_(source|target)_positions|max_seq_len|n_ctx|model_max_length", 64),
    (r"context_length", 64),
    (r"rotary_dim", 4),
    (r"(.*d_state|state_size|ssm_state_size)", 8),
    (r".*chunk_size", 4),
    (r"num_mel_bins|input_feat_size", 16),
    (r"num_filters", 2),
)

_NONE = {
    "head_dim": 8,
    "vocab_size": VOCAB,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 2,
}
"""What has a number although its default is none."""

EXCEPTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "bamba": ({"attn_layer_indices": [1]}, "which layers attend"),
    "blt": ({"encoder_hash_byte_group_vocab": 50}, "rows of a table"),
    "cohere_compass_text": (
        {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4}}},
        "its default lacks them",
    ),
    "dots3_note.vision_config": (
        {"adapter_in_dim": 32, "adapter_out_dim": 32},
        "widths named by the part that reads them",
    ),
    "dots3_note.audio_config": (
        {"adapter_input_size": 32, "adapter_out_dim": 32},
        "widths named by the part that reads them",
    ),
    "dbrx.attn_config": ({"rope_theta": 1e4, "clip_qkv": 8.0}, "its default lacks them"),
    "esm": ({"pad_token_id": 1}, "its default lacks it"),
    "hrm_text": ({"num_layers_per_stack": None}, "counted from the layers"),
    "musicgen.decoder": ({"num_codebooks": 1}, "one row of tokens"),
    "musicgen_melody.decoder": ({"num_codebooks": 1}, "one row of tokens"),
    "qwen4_exp_text": (
        {
            "indexer_n_heads": 2,
            "indexer_kv_heads": 1,
            "indexer_head_dim": 8,
            "indexer_budget": 4,
            "indexer_compress_ratio": 2,
        },
        "its default lacks them",
    ),
    "qwen4_exp.text_config": (
        {
            "indexer_n_heads": 2,
            "indexer_kv_heads": 1,
            "indexer_head_dim": 8,
            "indexer_budget": 4,
            "indexer_compress_ratio": 2,
        },
        "its default lacks them",
    ),
    "t5": ({"decoder_start_token_id": 0}, "its default lacks it"),
    "vibevoice_asr": ({"acoustic_tokenizer_chunk_size": 3200}, "samples"),
    "xlstm": ({"chunk_size": 64}, "a length that its kernels want"),
    "xmod": ({"default_language": "en_XX"}, "its default lacks it"),
    "deepseek_v2": ({"topk_group": 1, "n_group": 2}, "its default lacks them"),
    "gemma3n_text": (
        {
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_hidden_layers": 4,
            "num_kv_shared_layers": 2,
            "intermediate_size": 40,
            "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
        },
        "the last layers take keys of the first",
    ),
    "granitemoehybrid": ({"layer_types": ["linear_attention", "full_attention"]}, "which layers attend"),
    "jamba": ({"attn_layer_period": 2, "attn_layer_offset": 1}, "which layers attend"),
    "lfm2_moe": ({"layer_types": ["conv", "full_attention"]}, "which layers attend"),
    "mamba2": ({"num_heads": 8}, "heads times width is twice the stream"),
    "mobilebert": ({"intra_bottleneck_size": 32}, "a width"),
    "neomme": ({"head_dim": 16}, "a quarter of it is turned, four by four"),
    "recurrent_gemma": ({"block_types": ["recurrent", "attention"]}, "which layers attend"),
    "reformer": (
        {
            "axial_pos_embds": False,
            "attn_layers": ["local", "lsh"],
            "lsh_attn_chunk_length": 4,
            "local_attn_chunk_length": 4,
        },
        "positions in a grid",
    ),
    "zamba": (
        {
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
            "num_hidden_layers": 4,
            "attention_head_dim": 16,
            "attention_hidden_size": 64,
        },
        "layers share one attention",
    ),
    "zamba2": (
        {
            "layers_block_type": ["linear_attention", "hybrid", "linear_attention", "hybrid"],
            "num_hidden_layers": 4,
            "attention_head_dim": 16,
            "attention_hidden_size": 64,
            "mamba_headdim": 16,
        },
        "layers share one attention",
    ),
}
"""Fields whose name does not say their size, and why."""


REFUSED = {
    "gemma3n": "its pictures are read by timm, which is not installed; gemma3n_text is its text",
    "gemma4_assistant": "it reads the keys of another model",
    "gemma4_unified_assistant": "it reads the keys of another model",
    "nemo_speechlm": "it writes of sound alone",
    "voxtral_realtime": "it writes of sound alone",
}
"""What reads no text by itself, and why."""

WITHOUT_CACHE = {"blt", "xlstm"}
"""Whose code fails where it makes a cache."""

BESIDE = {"vit": "ViTModel", "whisper": "WhisperForConditionalGeneration"}
"""What reads images or sound."""
CHOSEN: dict[str, int] = {
    **dict.fromkeys(("gpt2", "gptj", "llama", "qwen2", "mistral", "gemma2", "bert", "roberta", "distilbert"), 2),
    **dict.fromkeys(("gpt_neox", "falcon", "phi", "bloom", "mpt", "opt", "deepseek_v3", "gpt_oss", "vit"), 2),
    **dict.fromkeys(("bart", "marian", "t5", "whisper"), 6),
}
"""The types that are looked at closely, and how many attention calls they make."""


def tables() -> dict[str, str]:
    """The class of each type, its name by the type's."""
    from transformers.models.auto import modeling_auto

    found: dict[str, str] = {}
    for table in _TABLES:
        for name, cls in getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES").items():
            found.setdefault(name, cls)
    return dict(sorted(found.items()))


def small(config: Any, name: str) -> dict[str, Any]:
    """Fields of a config with small numbers, those of the configs within it too."""
    from transformers import PreTrainedConfig

    fields = {field: value for field, value in vars(config).items() if not field.startswith("_")}
    made: dict[str, Any] = {}
    special = 60
    layers = _layers(fields)
    for field, value in fields.items():
        if isinstance(value, PreTrainedConfig):
            made[field] = type(value)(**small(value, f"{name}.{field}"))
        elif isinstance(value, list) and layers is not None and len(value) == layers[0]:
            made[field] = [value[at] for at in layers[1]]
        elif isinstance(value, bool) or not isinstance(value, int):
            continue
        elif re.fullmatch(r".*(token_id|token_index)", field):
            end = {"pad": 0, "bos": 1, "eos": 2}.get(field[:3])
            if value >= 0:
                made[field] = special if end is None else end
                special += end is None
        else:
            size = next((size for pattern, size in SIZES if re.fullmatch(pattern, field)), None)
            if size is not None and value > size:
                made[field] = size
    if layers is not None:
        for field in ("num_hidden_layers", "num_layers", "n_layer"):
            if field in fields:
                made[field] = len(layers[1])
    heads = made.get("num_attention_heads")
    if heads and fields.get("num_key_value_heads") == fields["num_attention_heads"]:
        made["num_key_value_heads"] = heads  # they are not shared
    made |= {field: size for field, size in _NONE.items() if field in fields and fields[field] is None}
    if "qk_rope_head_dim" in fields:
        made |= {"head_dim": 4, "qk_head_dim": 12}
    made |= EXCEPTIONS.get(name, ({}, ""))[0]
    return made


def _layers(fields: dict[str, Any]) -> tuple[int, list[int]] | None:
    """How many layers there are, and which are kept so that each kind of layer is there, two at least."""
    n = next((fields[f] for f in ("num_hidden_layers", "num_layers", "n_layer") if isinstance(fields.get(f), int)), 0)
    kinds = [value for value in fields.values() if isinstance(value, list) and len(value) == n > 2]
    if not kinds:
        return None
    kept = {values.index(one) for values in kinds for one in values} | {0}
    return n, sorted(kept | ({n - 1} if len(kept) < 2 else set()))


def config_of(name: str, **changes: Any) -> Any:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    cls = CONFIG_MAPPING[name]
    default = cls()
    return cls(**{**small(default, name), **changes})


def made(name: str, attention: str | None = None, *, of_text: bool = False, **changes: Any) -> Any:
    """A model in evaluation, every parameter drawn: norms, sinks and biases too; `of_text`: the class of `tables`."""
    import transformers

    classes = tables() if of_text else tables() | BESIDE
    cls, config = getattr(transformers, classes[name]), config_of(name, **changes)
    if cls.config_class is not None and not isinstance(config, cls.config_class):
        config = config.get_text_config(decoder=True)
    if attention is not None:
        config._attn_implementation = attention
    torch.manual_seed(0)
    model: nn.Module = cls(config)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return model.eval()


def given(model: Any, n: int = 9) -> dict[str, Any]:
    """What its forward is handed."""
    draw, config = torch.Generator().manual_seed(3), model.config
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(1, 3, config.image_size, config.image_size, generator=draw)}
    found: dict[str, Any] = {"input_ids": torch.randint(10, 60, (1, n), generator=draw)}
    if model.main_input_name == "input_features":
        sound = (1, config.num_mel_bins, 2 * config.max_source_positions)
        found = {"input_features": torch.randn(sound, generator=draw)}
    if config.model_type in WITHOUT_CACHE:
        found["use_cache"] = False
    if "decoder_input_ids" in inspect.signature(model.forward).parameters and config.is_encoder_decoder:
        found["decoder_input_ids"] = torch.randint(10, 60, (1, 2 * n // 3), generator=draw)
    return found

"""LLaMA and what is built like it: RoPE, RMSNorm, a gated network.  A row for each model type that differs.

Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", and what stands above each row, with the
weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.family import Export, Family, Options, flags, reading, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FITS,
    LIKE,
    NORMS,
    OUT,
    WRITTEN,
    attention_bias,
    biases,
    decoder,
    export,
    tensors,
)
from vizformer.checkpoints.hugging_face.rotary import of_texts, table_of
from vizformer.checkpoints.hugging_face.sliding_window import window_fields
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig

WINDOWED = {**FITS, "bias": [False], "attention_bias": ["same", "none"]}  # what Mistral and Ministral are written from
STARCODER_2 = {**NORMS, **ATTENTION, **OUT, "mlp.c_fc": ["feedforward.W_in"], "mlp.c_proj": ["feedforward.W_out"]}


def export_windowed(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """Writes the config of Mistral (all layers have the window) or of Ministral (it lists the layers that have it)."""
    said = export(config, has_head)
    in_all = config.sliding_layers is None
    kind = f"{'Mistral' if in_all else 'Ministral'}{'ForCausalLM' if has_head else 'Model'}"
    fields = {name: value for name, value in said.items() if name not in ("attention_bias", "mlp_bias")}
    windows = window_fields(config)
    return {**fields, "architectures": [kind], **({"sliding_window": config.sliding_window} if in_all else windows)}


def _of_texts(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.raw.setdefault("tie_word_embeddings", False)  # which the model around it says
    name, said = table_of(fields)
    of_texts(fields)
    options, has_head = decoder(fields, names)
    pairs = (options["head_dim"] or options["d_model"] // options["n_heads"]) // 2
    sections = said.get("mrope_section", [16, 24, 24])
    if fields.kind != "qwen3_vl_text" and not (
        isinstance(sections, list) and all(type(n) is int for n in sections) and sum(sections) == pairs
    ):
        fields.refuse(name, "mrope_section: it must list whole numbers that sum to the pairs of a head, {n}", n=pairs)
    return options, has_head


LLAMA = relative(
    LIKE,
    "LLaMA",
    "llama iquestcoder",
    decoder,
    biases,
    tokenizer=sentencepiece_or_refuse,
    exports=(Export("llama", {**FITS, "attention_bias": ["same", "all", "none"]}, WRITTEN, export),),
)
FAMILIES: tuple[Family, ...] = (
    LLAMA,
    # A window in all layers, or in those that are listed.  Jiang et al. 2023, "Mistral 7B".
    replace(
        LLAMA,
        types=("mistral", "ministral"),
        config=reading(decoder, {"bias": False, "attention_bias": "same"}),
        exports=(
            Export("mistral", WINDOWED, (*WRITTEN, "sliding_window"), export_windowed),
            Export("ministral", WINDOWED, (*WRITTEN, "sliding_window", "sliding_layers"), export_windowed),
        ),
    ),
    # Biases for queries, keys and values alone (also of 2.5).  Yang et al. 2024, "Qwen2 Technical Report", section 2.2.
    relative(LIKE, "Qwen2", "qwen2", decoder, {"bias": False, "attention_bias": "qkv"}, tokenizer=qwen),
    # Norms of queries and keys, heads of a width of their own.  Yang et al. 2025, "Qwen3 Technical Report", section 2.
    relative(LIKE, "Qwen3", "qwen3", decoder, attention_bias("all"), {"qk_norm": True}, tokenizer=qwen),
    # Their language models inside those for pictures and texts.  Wang et al. 2024, "Qwen2-VL"; Bai et al. 2025, "Qwen2.5-VL
    # Technical Report"; Qwen Team 2025, "Qwen3-VL Technical Report".
    relative(
        LIKE,
        "Qwen2",
        "qwen2_vl_text qwen2_5_vl_text",
        _of_texts,
        {"bias": False, "attention_bias": "qkv"},
        tokenizer=qwen,
    ),
    relative(LIKE, "Qwen3", "qwen3_vl_text", _of_texts, attention_bias("all"), {"qk_norm": True}, tokenizer=qwen),
    # LayerNorm, biases, no gate.  Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 6.
    relative(
        LIKE,
        "StarCoder2",
        "starcoder2",
        partial(decoder, eps="norm_epsilon"),
        {"norm": "layer_norm", "feedforward": "plain"},
        flags(bias="use_bias"),
        weights=partial(tensors, template=STARCODER_2),
    ),
)

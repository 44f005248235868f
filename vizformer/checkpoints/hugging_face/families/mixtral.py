"""Mixtral: Mistral's layers, with experts in the place of each feed-forward network.

Source: Jiang et al. 2024, "Mixtral of Experts", section 2, and the weights published with it.
"""

import re
from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.experts_like import MOST_EXPERTS, RENAMED, as_stored, experts, weights
from vizformer.checkpoints.hugging_face.family import Export, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_export import FITS, WRITTEN, export
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, ties
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.config import ModelConfig

DEFAULTS: dict[str, Any] = {
    "vocab_size": 32_000,
    "hidden_size": 4096,
    "intermediate_size": 14_336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_act": "silu",
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "rope_theta": 1_000_000.0,
    "sliding_window": None,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}
FIRST_NAMES = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}  # of an expert's matrices


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    found = experts(fields, options, names, number="num_local_experts", renormalised=True)
    return {**options, **found, "bias": False}, has_head


def tokenizer(folder: Folder) -> Backend:
    """tokenizer.model, as the first ones came with."""
    return sentencepiece_or_refuse(folder)


def exported(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json."""
    said = {
        name: value for name, value in export(config, has_head).items() if name not in ("attention_bias", "mlp_bias")
    }
    return {
        **said,
        "architectures": ["MixtralForCausalLM" if has_head else "MixtralModel"],
        "sliding_window": config.sliding_window,
        "num_local_experts": config.n_experts,
        "num_experts_per_tok": config.experts_per_token,
    }


def stored(name: str) -> str:
    """The first names of the tensors, which the published files have."""
    name = re.sub(r"(\.experts\.\d+)\.(\w+)\.", lambda found: f"{found[1]}.{FIRST_NAMES[found[2]]}.", name)
    return name.replace(".mlp.", ".block_sparse_moe.")


FAMILY = Family(
    name="Mixtral",
    defaults={"mixtral": DEFAULTS},
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    renamed=RENAMED,
    aliases={"num_experts": "num_local_experts"},
    exports=(
        Export(
            "mixtral",
            {**FITS, "bias": [False], "attention_bias": ["same", "none"], "n_experts": range(1, MOST_EXPERTS)},
            (*WRITTEN, "sliding_window", "experts_per_token"),
            exported,
            stored,
        ),
    ),
)

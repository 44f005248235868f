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
    types=("mixtral",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    renamed=RENAMED,
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

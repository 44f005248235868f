"""LLaMA and what is built like it (IQuest-Coder; Mistral, Ministral: with a window): RoPE, RMSNorm, a gated network.

Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models"; Jiang et al. 2023, "Mistral 7B".
"""

from collections.abc import Collection
from typing import Any

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Export, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_export import FITS, WRITTEN, export
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.hugging_face.sliding_window import window_fields
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.config import ModelConfig


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    attention, bias = (name in fields.defaults and fields.flag(name) for name in ("attention_bias", "mlp_bias"))
    biases = "same" if attention is bias else "all" if attention else "none"
    return {**options, "bias": bias, "attention_bias": biases}, has_head


def tokenizer(folder: Folder) -> Backend:
    """tokenizer.model, as LLaMA 1 and 2 and the first Mistral came with."""
    return sentencepiece_or_refuse(folder)


def export_windowed(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """The same as Mistral's, whose layers all have the window, or Ministral's, which lists those that have it."""
    said = export(config, has_head)
    in_all = config.sliding_layers is None
    kind = f"{'Mistral' if in_all else 'Ministral'}{'ForCausalLM' if has_head else 'Model'}"
    fields = {name: value for name, value in said.items() if name not in ("attention_bias", "mlp_bias")}
    windows = window_fields(config)
    return {**fields, "architectures": [kind], **({"sliding_window": config.sliding_window} if in_all else windows)}


FAMILY = Family(
    name="LLaMA",
    types=("llama", "mistral", "ministral", "iquestcoder"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
    exports=(
        Export("llama", {**FITS, "attention_bias": ["same", "all", "none"]}, WRITTEN, export),
        Export(
            "mistral",
            {**FITS, "bias": [False], "attention_bias": ["same", "none"]},
            (*WRITTEN, "sliding_window"),
            export_windowed,
        ),
        Export(
            "ministral",
            {**FITS, "bias": [False], "attention_bias": ["same", "none"]},
            (*WRITTEN, "sliding_window", "sliding_layers"),
            export_windowed,
        ),
    ),
)

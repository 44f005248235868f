"""Phi-3 and 4 (mini): LLaMA's layers with queries, keys and values in one tensor, and the gate in one with its input.

Source: Abdin et al. 2024, "Phi-3 Technical Report", section 2, and the weights published with it.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import NORMS, OUT, UNUSED, decoder, tensors, ties
from vizformer.checkpoints.hugging_face.rotary import not_scaled
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.config import ModelConfig

LAYER = {
    **NORMS,
    "self_attn.qkv_proj": [f"self_attention.W_{letter}" for letter in "QKV"],
    **OUT,
    "mlp.gate_up_proj": ["feedforward.W_gate", "feedforward.W_in"],
    "mlp.down_proj": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names, part=True)
    fields.ignore("original_max_position_embeddings")  # of rotary positions of another kind, which are refused
    return {**not_scaled(fields, options), "bias": False}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return tensors(config, LAYER)


def tokenizer(folder: Folder) -> Backend:
    """tokenizer.model, as the first ones came with."""
    return sentencepiece_or_refuse(folder)


FAMILY = Family(
    name="Phi-3",
    types=("phi3",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
)

"""Phi (1, 1.5 and 2): parallel layers behind one norm, rotary positions for a part of each head, biases everywhere.

Source: Gunasekar et al. 2023, "Textbooks Are All You Need", section 2.3, and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import ONE_NORM
from vizformer.checkpoints.hugging_face.llama_like import ATTENTION, LIKE
from vizformer.checkpoints.hugging_face.rotary import PART, rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig

LAYER = {
    "input_layernorm": ["self_norm", "feedforward_norm"],
    **ATTENTION,
    "self_attn.dense": ["self_attention.W_O"],
    "mlp.fc1": ["feedforward.W_in"],
    "mlp.fc2": ["feedforward.W_out"],
}
USUAL = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    fields.only("qk_layernorm", False)
    fields.only("head_dim", None, width // heads)
    kv_heads = fields.size("num_key_value_heads", otherwise=heads)
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    fields.assume(ONE_NORM)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        n_kv_heads=None if kv_heads == heads else kv_heads,
        d_ff=fields.size("intermediate_size"),
        n_decoder_layers=fields.size("num_hidden_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="rope",
        **rope(fields),
        rope_dims=turned(fields, width // heads, PART),
        norm_order="pre",
        final_norm=True,
        norm_eps=fields.number("layer_norm_eps"),
        activation=fields.choice("hidden_act", ACTIVATIONS),
        residual="parallel",
        tied_unembedding=tied or not has_head,
        logit_bias="lm_head.bias" in names,
        dropout=0.0,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    of_layers = layers(LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers)
    parts = [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *of_layers,
        *linear("final_layernorm", "decoder.final_norm"),
        *([Part("lm_head.bias", ("logit_bias",))] if config.logit_bias else []),
    ]
    return parts if config.tied_unembedding else [*parts, Part("lm_head.weight", ("unembedding.weight",))]


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    return byte_level(folder, USUAL)


FAMILIES: tuple[Family, ...] = (
    replace(
        LIKE,
        name="Phi",
        types=("phi",),
        config=config,
        weights=weights,
        tokenizer=tokenizer,
    ),
)

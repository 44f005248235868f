"""GPT-NeoX and Pythia: parallel layers, rotary positions for a part of each head, q, k and v in one, head by head.

Source: Black et al. 2022, "GPT-NeoX-20B: An Open-Source Autoregressive Language Model", section 2; Biderman et al.
2023, "Pythia", and the weights published with them.
"""

from collections.abc import Collection

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.rotary import rope, turned
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_

USUAL = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|padding|>"}
FUSED = "attention.query_key_value"
LAYER = {
    "input_layernorm": ["self_norm"],
    FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attention.dense": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    fields.ignore("is_decoder")  # only a warning depends on it
    fields.only("head_dim", None, width // heads)
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        d_ff=fields.size("intermediate_size"),
        n_decoder_layers=fields.size("num_hidden_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="rope",
        **rope(fields, "rotary_emb_base"),
        rope_dims=turned(fields, width // heads, "rotary_pct"),
        norm_order="pre",
        final_norm=True,
        norm_eps=fields.number("layer_norm_eps"),
        activation=fields.choice("hidden_act", ACTIVATIONS),
        residual="parallel" if fields.flag("use_parallel_residual") else "sequential",
        attention_bias="same" if fields.flag("attention_bias") else "none",
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    without = [] if config.qkv_bias else [FUSED, "attention.dense"]
    of_layers = layers(
        LAYER, "layers.{}", "decoder.layers.{}", config.n_decoder_layers, no_bias=without, heads={FUSED: config.n_heads}
    )
    parts = [
        Part("embed_in.weight", ("embedding.weight",)),
        *of_layers,
        *linear("final_layer_norm", "decoder.final_norm"),
    ]
    return parts if config.tied_unembedding else [*parts, Part("lm_head.weight", ("unembedding.weight",))]


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt."""
    return byte_level(folder, USUAL, composed=True)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="GPT-NeoX",
        types=("gpt_neox",),
        prefix="gpt_neox.",
        head="lm_head.",
        config=config,
        weights=weights,
        tokenizer=tokenizer,
        ties=tied_to("embed_in.weight"),
        renamed={r"^embed_out\.": "lm_head."},
        unused={
            r"layers\.\d+\.attention\.(masked_)?bias": N_("the causal mask: it follows from the positions"),
            r"(layers\.\d+\.attention\.)?rotary_emb\.inv_freq": N_(
                "the angles of the rotary positions: they follow from rope_theta"
            ),
            r"(score|classifier|qa_outputs)\..*": N_("the head of another task"),
        },
    ),
)

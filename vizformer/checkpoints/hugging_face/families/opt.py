"""OPT: GPT-2's kind of decoder with ReLU; its position table begins two rows down.

The model of 350 million parameters, whose table of embeddings is narrower than the layers, is recorded.

Source: Zhang et al. 2022, "OPT: Open Pre-trained Transformer Language Models", and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bart_like import SELF
from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tensors, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_

USUAL = {"bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>", "pad_token": "<pad>"}
OFFSET = 2  # rows of the position table before that of position 0


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    vocab_size, width = fields.size("vocab_size"), fields.size("hidden_size")
    pre_norm = fields.flag("do_layer_norm_before")
    fields.only("layer_norm_elementwise_affine", True)
    fields.only("word_embed_proj_dim", None, width)
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=fields.size("num_attention_heads"),
        d_ff=fields.size("ffn_dim"),
        n_decoder_layers=fields.size("num_hidden_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="learned",
        norm_order="pre" if pre_norm else "post",
        final_norm=not fields.flag("_remove_final_layer_norm") and pre_norm,
        norm_eps=1e-5,
        activation=fields.choice("activation_function", ACTIVATIONS),
        bias=fields.flag("enable_bias"),
        tied_unembedding=tied or not has_head,
        **fields.marks(vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor; the first rows of the position table belong to no position."""
    return tensors(
        config,
        SELF,
        "embed_tokens",
        "embed_positions",
        "layers.{}",
        "final_layer_norm",
        skip=OFFSET,
        no_bias=[] if config.bias else [name for name in SELF if not name.endswith("norm")],
    )


FAMILIES: tuple[Family, ...] = (
    Family(
        name="OPT",
        types=("opt",),
        prefix="model.decoder.",
        head="lm_head.",
        config=config,
        weights=weights,
        tokenizer=partial(byte_level, usual=USUAL),
        ties=tied_to("embed_tokens.weight"),
        renamed={r"^decoder\.": ""},
        unused={r"(score|qa_outputs)\..*": N_("the head of another task")},
        usual=USUAL,
    ),
)

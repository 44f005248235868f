"""GPT-2: a decoder, pre-norm, learned positions; its linear layers are stored transposed, q, k and v in one.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", and the weights published with it.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.family import Export, Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import byte_level_texts, tensors
from vizformer.checkpoints.tensors.activations import ACTIVATIONS, THEIRS
from vizformer.config import ModelConfig
from vizformer.messages import N_

LAYER = {
    "ln_1": ["self_norm"],
    "attn.c_attn": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.c_proj": ["self_attention.W_O"],
    "ln_2": ["feedforward_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}
TRANSPOSED = [name for name in LAYER if not name.startswith("ln")]


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    vocab_size, width = fields.size("vocab_size"), fields.size("n_embd")
    fields.only("scale_attn_weights", True)
    fields.only("scale_attn_by_inverse_layer_idx", False)
    fields.ignore("n_ctx")  # an old second name of n_positions, which no forward reads
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=fields.size("n_head"),
        d_ff=fields.size("n_inner", 4 * width),
        n_decoder_layers=fields.size("n_layer"),
        max_positions=fields.size("n_positions"),
        positions="learned",
        norm_order="pre",
        final_norm=True,
        norm_eps=fields.number("layer_norm_epsilon"),
        activation=fields.choice("activation_function", ACTIVATIONS),
        tied_unembedding=tied or not has_head,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json."""
    return dict(
        architectures=["GPT2LMHeadModel" if has_head else "GPT2Model"],
        vocab_size=config.vocab_size,
        n_positions=config.max_positions,
        n_embd=config.d_model,
        n_layer=config.n_decoder_layers,
        n_head=config.n_heads,
        n_inner=config.d_ff,
        activation_function=THEIRS[config.activation],
        layer_norm_epsilon=config.norm_eps,
        tie_word_embeddings=config.tied_unembedding,
        bos_token_id=config.bos_id,
        eos_token_id=config.eos_id,
        pad_token_id=config.pad_id,
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
    )


FAMILIES: tuple[Family, ...] = (
    Family(
        name="GPT-2",
        types=("gpt2",),
        prefix="transformer.",
        head="lm_head.",
        config=config,
        weights=partial(tensors, template=LAYER, positions="wpe", transposed=TRANSPOSED),
        tokenizer=byte_level_texts,
        ties=tied_to("wte.weight"),
        unused={
            r"h\.\d+\.attn\.(masked_)?bias": N_("the causal mask: it follows from the positions"),
            r"(score|classifier|multiple_choice_head)\..*": N_("the head of another task"),
        },
        exports=(
            Export(
                "gpt2",
                dict(
                    architecture=["decoder-only"],
                    positions=["learned"],
                    norm_order=["pre"],
                    norm=["layer_norm"],
                    final_norm=[True],
                    feedforward=["plain"],
                    bias=[True],
                    head=["linear"],
                    scaled_embedding=[False],
                    embedding_norm=[False],
                    n_segments=[0],
                ),
                (
                    "vocab_size",
                    "d_model",
                    "n_heads",
                    "d_ff",
                    "n_decoder_layers",
                    "max_positions",
                    "norm_eps",
                    "activation",
                    "tied_unembedding",
                    "pad_id",
                    "bos_id",
                    "eos_id",
                ),
                export,
            ),
        ),
    ),
)

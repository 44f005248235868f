"""GPT-2, and the first GPT.

Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; Radford et al. 2018, "Improving Language
Understanding by Generative Pre-Training"; and the weights published with them.
"""

from collections.abc import Collection
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.family import (
    Export,
    Family,
    Options,
    only,
    reading,
    relative,
    said,
    says_head,
    tensors,
    tied_to,
)
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.vocabularies import gpt_2
from vizformer.config import ModelConfig
from vizformer.messages import N_

QKV = [f"self_attention.W_{letter}" for letter in "QKV"]
OF_GPT = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}  # its list of activations
GPT_2 = {
    "ln_1": ["self_norm"],
    "attn.c_attn": QKV,
    "attn.c_proj": ["self_attention.W_O"],
    "ln_2": ["feedforward_norm"],
    "mlp.c_fc": ["feedforward.W_in"],
    "mlp.c_proj": ["feedforward.W_out"],
}
GPT = {name: GPT_2[name] for name in ("attn.c_attn", "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.c_proj", "ln_2")}
TRANSPOSED = [name for name in GPT_2 if not name.startswith("ln")]
FIELDS = {
    "vocab_size": "vocab_size",
    "n_positions": "max_positions",
    "n_embd": "d_model",
    "n_layer": "n_decoder_layers",
    "n_head": "n_heads",
    "n_inner": "d_ff",
    "activation_function": "activation",
    "layer_norm_epsilon": "norm_eps",
    "tie_word_embeddings": "tied_unembedding",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "pad_token_id": "pad_id",
}
OF_GPT_2 = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}
FITS: dict[str, Collection[Any]] = dict(
    architecture=["decoder-only"], positions=["learned"], norm_order=["pre"], final_norm=[True]
)


def decoder(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options that both have, and whether there is a head for tokens."""
    vocab_size = fields.size("vocab_size")
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("n_embd"),
        n_heads=fields.size("n_head"),
        n_decoder_layers=fields.size("n_layer"),
        max_positions=fields.size("n_positions"),
        positions="learned",
        norm_eps=fields.number("layer_norm_epsilon"),
        tied_unembedding=tied or not has_head,
        **fields.marks(vocab_size),
    ), has_head


def _gpt_2(fields: Fields, options: Options) -> Options:
    return {
        "d_ff": fields.size("n_inner", 4 * options["d_model"]),
        "norm_order": "pre",
        "final_norm": True,
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    return {"architectures": ["GPT2LMHeadModel" if has_head else "GPT2Model"], **said(FIELDS, config), **OF_GPT_2}


def _gpt(fields: Fields, options: Options) -> Options:
    return {"d_ff": 4 * options["d_model"], "activation": fields.choice("afn", OF_GPT), "dropout": 0.0}


# Pre-norm, learned positions; linear layers are stored transposed, q, k and v in one.
GPT_2_FAMILY = Family(
    name="GPT-2",
    types=("gpt2",),
    prefix="transformer.",
    head="lm_head.",
    # (n_ctx is an old second name of n_positions, which no forward reads)
    config=reading(decoder, only("n_ctx", **OF_GPT_2), _gpt_2),
    weights=partial(tensors, template=GPT_2, table="wte", positions="wpe", transposed=TRANSPOSED),
    tokenizer=gpt_2,
    ties=tied_to("wte.weight"),
    unused={
        r"h\.\d+\.attn\.(masked_)?bias": N_("the causal mask: it follows from the positions"),
        r"(score|classifier|multiple_choice_head)\..*": N_("the head of another task"),
    },
    exports=(Export("gpt2", FITS, tuple(FIELDS.values()), export),),
)
FAMILIES: tuple[Family, ...] = (
    GPT_2_FAMILY,
    # Norms after the sublayers and none at the end; stored like GPT-2.
    relative(
        GPT_2_FAMILY,
        "GPT",
        "openai-gpt",
        decoder,
        _gpt,
        weights=partial(
            tensors, template=GPT, table="tokens_embed", positions="positions_embed", transposed=TRANSPOSED
        ),
        tokenizer=only_tokenizer_json,
        ties=tied_to("tokens_embed.weight"),
        exports=(),
    ),
)

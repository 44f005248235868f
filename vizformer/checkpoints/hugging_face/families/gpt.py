"""GPT-2, and decoders in its manner whose tensors have other names.  A row for each model type.

Source: what stands above each row, and the weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.bart_like import SELF as FAIRSEQ
from vizformer.checkpoints.hugging_face.family import Export, Family, Options, only, reading, relative, said, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import LIKE, byte_level_texts, decoder, side_by_side, tensors
from vizformer.checkpoints.hugging_face.missing_parameters import WAVES, Made, fairseq_waves
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import attention
from vizformer.config import ModelConfig
from vizformer.messages import N_

QKV = [f"self_attention.W_{letter}" for letter in "QKV"]
OF_GPT = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}  # its list of activations
LONGEST_OF_BLOOM = 2048  # what the published models were trained with; config.json says no limit
LONGEST_OF_XGLM = 32_768  # rows of the table of waves
OFFSET = 2  # rows before that of position 0, of the tables of BioGPT and XGLM
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
ATTENTION_OF_GPT_J = attention("attn.{}_proj", "q k v out")
GPT_J = {
    "ln_1": ["self_norm", "feedforward_norm"],
    **ATTENTION_OF_GPT_J,
    "mlp.fc_in": ["feedforward.W_in"],
    "mlp.fc_out": ["feedforward.W_out"],
}
BLOOM = {
    "input_layernorm": ["self_norm"],
    "self_attention.query_key_value": QKV,
    "self_attention.dense": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
}
CTRL = {
    "layernorm1": ["self_norm"],
    **attention("multi_head_attention.{}", "Wq Wk Wv dense"),
    "layernorm2": ["feedforward_norm"],
    "ffn.0": ["feedforward.W_in"],
    "ffn.2": ["feedforward.W_out"],
}
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
named_as_gpt_2 = partial(decoder, width="n_embd", heads="n_head", layers="n_layer", longest="n_positions")
fairseq = partial(tensors, template=FAIRSEQ, table="embed_tokens", layer="layers.{}", final="layer_norm")


def _as_gpt_2(fields: Fields, options: Options) -> Options:
    return {
        "d_ff": fields.size("n_inner", 4 * options["d_model"]),
        "positions": "learned",
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
    }


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    return {"architectures": ["GPT2LMHeadModel" if has_head else "GPT2Model"], **said(FIELDS, config), **OF_GPT_2}


def _bigcode(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = named_as_gpt_2(fields, names)
    fields.ignore("attention_softmax_in_fp32", "scale_attention_softmax_in_fp32")  # how half precision is rounded
    fields.ignore("num_key_value_heads")  # follows from multi_query, whatever is said
    return {
        **options,
        "n_kv_heads": 1 if fields.flag("multi_query") and options["n_heads"] > 1 else None,
        **_as_gpt_2(fields, options),
        "attention_scale": None if fields.flag("scale_attn_weights") else 1.0,
    }, has_head


def _gpt(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = named_as_gpt_2(fields, names)
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "positions": "learned",
        "norm_order": "post",
        "final_norm": False,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("afn", OF_GPT),
    }, has_head


def _bloom(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "hidden_size", "n_head", "n_layer", None)
    fields.only("apply_residual_connection_post_layernorm", False)
    fields.only("n_embed", None, options["d_model"])
    # How it is computed on several devices; the length of its training.
    fields.ignore("slow_but_exact", "seq_length", "skip_bias_add", "skip_bias_add_qkv", "offset_alibi")
    fields.assume("texts up to {limit:,} tokens are accepted; config.json names no limit", limit=LONGEST_OF_BLOOM)
    return {
        **options,
        "d_ff": 4 * options["d_model"],
        "max_positions": LONGEST_OF_BLOOM,
        "positions": "alibi",
        "embedding_norm": True,
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": "gelu_tanh",
    }, has_head


def _ctrl(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = named_as_gpt_2(fields, names)
    fields.only("layer_norm_epsilon", 1e-6)  # that of the norms inside the layers, whatever is said
    fields.ignore("n_ctx", "from_tf")  # the first is an old second name of n_positions, which no forward reads
    return {
        **options,
        "d_ff": fields.size("dff"),
        "positions": "sinusoidal",
        "sinusoids": "halves",
        "scaled_embedding": True,
        "norm_eps": 1e-6,
        "activation": "relu",
    }, has_head


def _xglm(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, "d_model", "attention_heads", "num_layers")
    fields.assume(WAVES)
    return {
        **options,
        "max_positions": min(options["max_positions"], LONGEST_OF_XGLM),
        "d_ff": fields.size("ffn_dim"),
        **_as_fairseq(fields, "activation_function"),
    }, has_head


def _biogpt(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    options, has_head = decoder(fields, names, head="output_projection")
    fields.ignore("layer_norm_eps")  # no norm reads it
    return {**options, "d_ff": fields.size("intermediate_size"), **_as_fairseq(fields, "hidden_act")}, has_head


def _as_fairseq(fields: Fields, activation: str) -> Options:
    return {
        "positions": "learned",
        "scaled_embedding": fields.flag("scale_embedding"),
        "norm_eps": 1e-5,
        "activation": fields.choice(activation, ACTIVATIONS),
    }


def _waves(config: ModelConfig) -> Made:
    make = partial(fairseq_waves, config.max_positions, config.d_model, config.pad_id, OFFSET)
    return {"position_embedding.weight": make}


def _stored_waves(config: ModelConfig) -> Made:
    """Old files hold them, from row 0 on."""
    make = partial(fairseq_waves, config.max_positions + OFFSET, config.d_model, config.pad_id, 0)
    return {"embed_positions.weights": make}


FAMILIES: tuple[Family, ...] = (
    # Pre-norm, learned positions; linear layers are stored transposed, q, k and v in one.  Radford et al. 2019, "Language
    # Models are Unsupervised Multitask Learners".
    replace(
        LIKE,
        name="GPT-2",
        types=("gpt2",),
        # (n_ctx is an old second name of n_positions, which no forward reads)
        config=reading(
            named_as_gpt_2, only("n_ctx", **OF_GPT_2), _as_gpt_2, {"logit_bias": False, "dropout": ModelConfig.dropout}
        ),
        weights=partial(tensors, template=GPT_2, positions="wpe", transposed=TRANSPOSED),
        tokenizer=byte_level_texts,
        unused={
            r"h\.\d+\.attn\.(masked_)?bias": N_("the causal mask: it follows from the positions"),
            r"(score|classifier|multiple_choice_head)\..*": N_("the head of another task"),
        },
        exports=(Export("gpt2", FITS, tuple(FIELDS.values()), export),),
    ),
    # SantaCoder and StarCoder: GPT-2 whose heads share one key and one value, not stored transposed; without multi_query the
    # rows of queries, keys and values alternate.  Ben Allal et al. 2023, "SantaCoder: don't reach for the stars!"; Li et al.
    # 2023, "StarCoder: may the source be with you!".
    relative(
        LIKE,
        "GPT-BigCode",
        "gpt_bigcode",
        _bigcode,
        weights=partial(tensors, template=GPT_2, positions="wpe", fused="attn.c_attn"),
    ),
    # The first: norms after the sublayers and none at the end; stored like GPT-2.  Radford et al. 2018, "Improving Language
    # Understanding by Generative Pre-Training".
    relative(
        LIKE,
        "GPT",
        "openai-gpt",
        _gpt,
        weights=partial(
            tensors, template=GPT, table="tokens_embed", positions="positions_embed", transposed=TRANSPOSED
        ),
        ties=tied_to("tokens_embed.weight"),
    ),
    # The distance taken off every score (ALiBi), a norm after the embeddings, q, k and v in one, head by head.  Workshop et
    # al. 2022, "BLOOM: A 176B-Parameter Open-Access Multilingual Language Model", section 3.2.
    relative(
        LIKE,
        "BLOOM",
        "bloom",
        _bloom,
        weights=partial(tensors, template=BLOOM, table="word_embeddings", fused="self_attention.query_key_value"),
        ties=tied_to("word_embeddings.weight"),
    ),
    # Attention and feed-forward side by side, neighbouring numbers of each head turned by position.  Wang & Komatsuzaki
    # 2021, "GPT-J-6B: A 6 Billion Parameter Autoregressive Language Model".
    replace(
        LIKE,
        name="GPT-J",
        types=("gptj",),
        config=reading(side_by_side, only("rotary")),  # written by old versions, always true
        weights=partial(tensors, template=GPT_J, no_bias=list(ATTENTION_OF_GPT_J), neighbours=True),
        tokenizer=byte_level_texts,
    ),
    # The waves of the paper of 2017 in a decoder with norms in front, and a bias for every token's logit.  Keskar et al.
    # 2019, "CTRL: A Conditional Transformer Language Model for Controllable Generation".
    relative(
        LIKE,
        "CTRL",
        "ctrl",
        _ctrl,
        weights=partial(tensors, template=CTRL, table="w", final="layernorm"),
        ties=tied_to("w.weight"),
    ),
    # OPT's layers with fixed waves as positions, which begin two rows down, and scaled embeddings.  Lin et al. 2021,
    # "Few-shot Learning with Multilingual Language Models".
    relative(
        LIKE,
        "XGLM",
        "xglm",
        _xglm,
        prefix="model.",
        weights=fairseq,
        ties=tied_to("embed_tokens.weight"),
        computed=_stored_waves,
        made=_waves,
    ),
    # OPT's layers with scaled embeddings; its position table begins two rows down.  Luo et al. 2022, "BioGPT: Generative
    # Pre-trained Transformer for Biomedical Text Generation and Mining".
    relative(
        LIKE,
        "BioGPT",
        "biogpt",
        _biogpt,
        prefix="biogpt.",
        head="output_projection.",
        weights=partial(fairseq, positions="embed_positions", skip=OFFSET, output="output_projection"),
        ties=tied_to("embed_tokens.weight", head="output_projection"),
    ),
)

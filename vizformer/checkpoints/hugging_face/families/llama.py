"""LLaMA and what is built like it: RoPE, RMSNorm, a gated network.  A row for each model type that differs.

Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", and what stands above each row, with the
weights published with it.
"""

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from vizformer.checkpoints.hugging_face.family import Export, Family, Options, flags, reading, relative
from vizformer.checkpoints.hugging_face.fields import LARGEST, Fields
from vizformer.checkpoints.hugging_face.llama_like import (
    ATTENTION,
    FITS,
    LIKE,
    NORMS,
    OUT,
    PACKED_FEEDFORWARD,
    WRITTEN,
    attention_bias,
    biases,
    decoder,
    export,
    factors,
    tensors,
)
from vizformer.checkpoints.hugging_face.missing_parameters import Made, norms_of
from vizformer.checkpoints.hugging_face.rotary import KINDS, TRAINED, of_texts, table_of
from vizformer.checkpoints.hugging_face.sliding_window import listed_layers, turning_in, window_fields
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tokenizers.sentencepiece_files import sentencepiece_or_refuse
from vizformer.checkpoints.tokenizers.vocabularies import qwen
from vizformer.config import ModelConfig

WINDOWED = {**FITS, "bias": [False], "attention_bias": ["same", "none"]}  # what Mistral and Ministral are written from
BETA = "llama_4_scaling_beta"
STARCODER_2 = {**NORMS, **ATTENTION, **OUT, "mlp.c_fc": ["feedforward.W_in"], "mlp.c_proj": ["feedforward.W_out"]}
PHI_3 = {**NORMS, "self_attn.qkv_proj": [f"self_attention.W_{letter}" for letter in "QKV"], **OUT, **PACKED_FEEDFORWARD}
GLM = {**NORMS, **ATTENTION, **OUT, **PACKED_FEEDFORWARD}
GLM_4 = {**GLM, "post_self_attn_layernorm": ["self_output_norm"], "post_mlp_layernorm": ["feedforward_output_norm"]}


def export_windowed(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """The same as Mistral's, whose layers all have the window, or Ministral's, which lists those that have it."""
    said = export(config, has_head)
    in_all = config.sliding_layers is None
    kind = f"{'Mistral' if in_all else 'Ministral'}{'ForCausalLM' if has_head else 'Model'}"
    fields = {name: value for name, value in said.items() if name not in ("attention_bias", "mlp_bias")}
    windows = window_fields(config)
    return {**fields, "architectures": [kind], **({"sliding_window": config.sliding_window} if in_all else windows)}


def _gemma(fields: Fields, options: Options) -> Options:
    fields.only("use_bidirectional_attention", None, False)
    fields.only("hidden_activation", None, "gelu_pytorch_tanh")
    if fields.value("hidden_act") == "gelu":
        fields.assume(
            "hidden_act={value} stands for the approximation by tanh in this family, as `transformers` reads it",
            value='"gelu"',
        )
    return {
        **attention_bias("all")(fields, options),
        "activation": fields.choice("hidden_act", {**ACTIVATIONS, "gelu": "gelu_tanh"}),
        "norm_offset": True,
        "scaled_embedding": True,
    }


def _olmo(fields: Fields, options: Options) -> Options:
    fields.only("clip_qkv", None)
    fields.assume("the norms of this family learn nothing: those of the model here multiply by 1 and add 0")
    return {"norm": "layer_norm", "norm_eps": 1e-5}


def _norms_that_learn_nothing(config: ModelConfig) -> Made:
    """LayerNorm(x) = (x - mean) / sqrt(var + eps)."""
    one, zero = partial(torch.ones, config.d_model), partial(torch.zeros, config.d_model)
    return {f"{norm}.{kind}": make for norm in norms_of(config) for kind, make in (("weight", one), ("bias", zero))}


def _seed_oss(fields: Fields, options: Options) -> Options:
    qkv, out = fields.flag("attention_bias"), fields.flag("attention_out_bias")
    if out:
        fields.only("attention_bias", True)  # a bias of the output alone is not supported
    return {"bias": fields.flag("mlp_bias"), "attention_bias": "all" if out else "qkv" if qkv else "none"}


def _helium(fields: Fields, options: Options) -> Options:
    width = options["d_model"]
    if options["head_dim"] is not None:
        fields.refuse("head_dim", "supported are heads as wide as their share of hidden_size={n}", n=width)
    return {**attention_bias("qkv")(fields, options), "bias": fields.flag("mlp_bias")}


def _internlm_3(fields: Fields, options: Options) -> Options:
    bias = fields.flag("attention_bias")
    fields.only("mlp_bias", bias)  # as `transformers` has it, which takes both for one
    return {"bias": bias}


def _smollm_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    turned = listed_layers(fields, fields.size("num_hidden_layers"))
    # Where the layers are not listed, those that do not turn have the window.
    options, has_head = decoder(fields, names, windowed=lambda layer: layer not in turned)
    return {**options, **turning_in(turned, options)}, has_head


def _cwm(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    if fields.raw.get("rope_parameters", ...) is None:  # null stands for what the family has anyway
        del fields.raw["rope_parameters"]
    fields.size("sliding_window")  # there is always one
    return decoder(fields, names, windowed=lambda layer: layer % 4 != 0)


def _ministral_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    if fields.raw.get("rope_parameters", ...) is None:  # null stands for what the family has anyway
        del fields.raw["rope_parameters"]
    name, said = table_of(fields)
    known, scaled = KINDS.get(str(said.get("rope_type", said.get("type"))), set()), said.get(BETA)
    reach = fields.raw[TRAINED] if TRAINED in known and TRAINED in fields.raw else said.get(TRAINED)
    unread = {BETA, "max_position_embeddings", TRAINED} - known
    fields.raw[name] = {key: value for key, value in said.items() if key not in unread}
    if type(reach) is not int or reach < 1 or type(scaled) not in (int, float):
        fields.refuse(name, "it must say {field} and {other}, a number each", field=TRAINED, other=BETA)
        reach = LARGEST
    options, has_head = decoder(fields, names)
    if reach < options["max_positions"]:
        fields.assume(
            "texts up to {limit:,} tokens are accepted: from there on queries are multiplied by a number for their "
            "place ({field}), which the model here does not do; config.json allows {longest:,}",
            limit=reach,
            field=BETA,
            longest=options["max_positions"],
        )
        options = {**options, "max_positions": reach}
    return options, has_head


def _phi_3(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    name, said = table_of(fields)
    kind = said.get("rope_type", said.get("type", "default"))
    if kind == "yarn":  # a name that LongRoPE had before
        fields.raw[name] = {**said, "rope_type": "longrope"}
    elif kind not in ("default", "longrope"):
        fields.refuse(name, "supported here are rotary positions as they are (default), or longrope")
    fields.ignore(TRAINED)  # (of longrope, which reads it)
    return decoder(fields, names, part=True)


def _of_texts(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.raw.setdefault("tie_word_embeddings", False)  # which the model around it says
    name, said = table_of(fields)
    of_texts(fields)
    options, has_head = decoder(fields, names)
    pairs = (options["head_dim"] or options["d_model"] // options["n_heads"]) // 2
    sections = said.get("mrope_section", [16, 24, 24])
    if fields.kind != "qwen3_vl_text" and not (
        isinstance(sections, list) and all(type(n) is int for n in sections) and sum(sections) == pairs
    ):
        fields.refuse(name, "mrope_section: it must list whole numbers that sum to the pairs of a head, {n}", n=pairs)
    return options, has_head


def _eurobert(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    found, has_head = decoder(fields, names)
    fields.ignore("is_causal", "classifier_pooling")  # an encoder looks both ways all the same
    return {
        **found,
        "n_encoder_layers": found["n_decoder_layers"],
        "n_decoder_layers": 0,
        **biases(fields, found),
        "logit_bias": "lm_head.bias" in names,
        "mask_id": fields.token("mask_token_id", found["vocab_size"]),
    }, has_head


LLAMA = relative(
    LIKE,
    "LLaMA",
    "llama iquestcoder",
    decoder,
    biases,
    tokenizer=sentencepiece_or_refuse,
    exports=(Export("llama", {**FITS, "attention_bias": ["same", "all", "none"]}, WRITTEN, export),),
)
FAMILIES: tuple[Family, ...] = (
    LLAMA,
    # A window in all layers, or in those that are listed.  Jiang et al. 2023, "Mistral 7B".
    replace(
        LLAMA,
        types=("mistral", "ministral"),
        config=reading(decoder, {"bias": False, "attention_bias": "same"}),
        exports=(
            Export("mistral", WINDOWED, (*WRITTEN, "sliding_window"), export_windowed),
            Export("ministral", WINDOWED, (*WRITTEN, "sliding_window", "sliding_layers"), export_windowed),
        ),
    ),
    # Mistral's layers, slowed down by YaRN.  Mistral AI 2025, "Introducing Mistral 3".
    relative(LIKE, "Ministral 3", "ministral3", _ministral_3, {"bias": False}, tokenizer=sentencepiece_or_refuse),
    # Biases for queries, keys and values alone (also of 2.5).  Yang et al. 2024, "Qwen2 Technical Report", section 2.2.
    relative(LIKE, "Qwen2", "qwen2", decoder, {"bias": False, "attention_bias": "qkv"}, tokenizer=qwen),
    # Norms of queries and keys, heads of a width of their own.  Yang et al. 2025, "Qwen3 Technical Report", section 2.
    relative(LIKE, "Qwen3", "qwen3", decoder, attention_bias("all"), {"qk_norm": True}, tokenizer=qwen),
    # Their language models inside those for pictures and texts.  Wang et al. 2024, "Qwen2-VL"; Bai et al. 2025, "Qwen2.5-VL
    # Technical Report"; Qwen Team 2025, "Qwen3-VL Technical Report".
    relative(
        LIKE,
        "Qwen2",
        "qwen2_vl_text qwen2_5_vl_text",
        _of_texts,
        {"bias": False, "attention_bias": "qkv"},
        tokenizer=qwen,
    ),
    relative(LIKE, "Qwen3", "qwen3_vl_text", _of_texts, attention_bias("all"), {"qk_norm": True}, tokenizer=qwen),
    # The first: norms that scale by 1 + weight, scaled embeddings, a GELU in the gate.  Gemma Team 2024, "Gemma: Open
    # Models Based on Gemini Research and Technology", section 2.
    relative(LIKE, "Gemma", "gemma", decoder, _gemma, tokenizer=sentencepiece_or_refuse),
    # Also Phi-4 (mini): queries, keys and values in one tensor, the gate in one with its input.  Abdin et al. 2024, "Phi-3
    # Technical Report", section 2.
    replace(
        LIKE,
        name="Phi-3",
        types=("phi3",),
        config=reading(_phi_3, {"bias": False}),
        weights=partial(tensors, template=PHI_3),
        tokenizer=sentencepiece_or_refuse,
    ),
    # LayerNorm, biases, no gate.  Lozhkov et al. 2024, "StarCoder 2 and The Stack v2", section 6.
    relative(
        LIKE,
        "StarCoder2",
        "starcoder2",
        partial(decoder, eps="norm_epsilon"),
        {"norm": "layer_norm", "feedforward": "plain"},
        flags(bias="use_bias"),
        weights=partial(tensors, template=STARCODER_2),
    ),
    # GLM-4: neighbouring numbers of a half of each head turned, the gate in one tensor with its input; those of 2025 also
    # normalise what a sublayer has found.  Team GLM 2024, "ChatGLM: A Family of Large Language Models from GLM-130B to GLM-4
    # All Tools".
    relative(
        LIKE,
        "GLM",
        "glm",
        partial(decoder, part=True),
        attention_bias("qkv"),
        weights=partial(tensors, template=GLM, neighbours=True),
    ),
    relative(
        LIKE,
        "GLM",
        "glm4",
        partial(decoder, part=True),
        attention_bias("qkv"),
        {"norm_order": "sandwich"},
        weights=partial(tensors, template=GLM_4, neighbours=True),
    ),
    # The first: norms that learn nothing.  Groeneveld et al. 2024, "OLMo: Accelerating the Science of Language Models",
    # section 2.1.
    relative(
        LIKE, "OLMo", "olmo", partial(decoder, eps=None), _olmo, attention_bias("all"), made=_norms_that_learn_nothing
    ),
    # Granite Team 2024, "Granite 3.0 Language Models", section 2.
    relative(LIKE, "Granite", "granite", decoder, biases, factors),
    # ByteDance Seed 2025, "Seed-OSS Open-Source Models".
    relative(LIKE, "Seed-OSS", "seed_oss", decoder, _seed_oss),
    # Neighbouring numbers of each head turned, as in Helium.  Baidu 2025, "ERNIE 4.5 Technical Report"; Kyutai 2025,
    # "Helium 1".
    relative(LIKE, "ERNIE 4.5", "ernie4_5", decoder, flags(bias="use_bias"), weights=partial(tensors, neighbours=True)),
    relative(LIKE, "ERNIE 4.5", "helium", decoder, _helium, weights=partial(tensors, neighbours=True)),
    # InternLM Team 2025, "InternLM3".
    relative(LIKE, "InternLM3", "internlm3", decoder, _internlm_3, tokenizer=sentencepiece_or_refuse),
    # Every fourth layer has no positions.  Bakouch et al. 2025, "SmolLM3: smol, multilingual, long-context reasoner"; Yang
    # et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy".
    relative(LIKE, "SmolLM3", "smollm3", _smollm_3, biases),
    # The Code World Model: three layers of four have a window.  FAIR CodeGen team 2025, "CWM: An Open-Weights LLM for
    # Research on Code Generation with World Models", section 3.
    relative(LIKE, "CWM", "cwm", _cwm, flags(bias="mlp_bias"), {"attention_bias": "none"}),
    # An encoder, which looks both ways.  Boizard et al. 2025, "EuroBERT: Scaling Multilingual Encoders for European
    # Languages".
    relative(LIKE, "EuroBERT", "eurobert", _eurobert, weights=partial(tensors, stack="encoder")),
)

"""BERT's relatives that need more than a row in a table.

Source: what stands above each, and the weights published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bert_like import (
    LIKE,
    UNUSED,
    body,
    embeddings,
    head,
    narrow,
    no_unembedding,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Family, Options, relative, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.rotary import all_are_turned, rope
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import WORDPIECE_MARKS, wordpiece_or_refuse
from vizformer.config import ModelConfig
from vizformer.messages import N_

# DistilBERT: BERT with half the layers, no segments, and names of its own.
# Source: Sanh et al. 2019, "DistilBERT, a distilled version of BERT", and the weights published with it.

DISTILBERT = {
    **attention("attention.{}_lin", "q k v out"),
    "sa_layer_norm": ["self_norm"],
    "ffn.lin1": ["feedforward.W_in"],
    "ffn.lin2": ["feedforward.W_out"],
    "output_layer_norm": ["feedforward_norm"],
}


def _distilbert(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    vocab_size = fields.size("vocab_size")
    fields.ignore("is_causal")  # an encoder looks both ways all the same
    has_head = any(name.startswith("vocab_") for name in names) or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("dim"),
        n_heads=fields.size("n_heads"),
        d_ff=fields.size("hidden_dim"),
        n_encoder_layers=fields.size("n_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="learned",
        embedding_norm=True,
        norm_eps=1e-12,
        activation=fields.choice("activation", ACTIVATIONS),
        head="transform" if has_head else "linear",
        tied_unembedding=fields.flag("tie_word_embeddings") or not has_head,
        **fields.marks(vocab_size),
    ), has_head


def _distilbert_weights(config: ModelConfig) -> list[Part]:
    parts = [*embeddings(config), *body(config, DISTILBERT, "transformer.layer.{}")]
    if config.head == "transform":
        parts += [*linear("vocab_transform", "prediction.dense"), *linear("vocab_layer_norm", "prediction.norm")]
        parts += [Part("vocab_projector.bias", ("prediction.logit_bias",))]
    return parts if config.tied_unembedding else [*parts, Part("vocab_projector.weight", ("unembedding.weight",))]


# ALBERT: BERT whose layers share one set of weights, and whose embeddings are narrower than the layers.
# Source: Lan et al. 2019, "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", and the weights
# published with it.

ALBERT = {
    **attention("attention.{}", "query key value dense"),
    "attention.LayerNorm": ["self_norm"],
    "ffn": ["feedforward.W_in"],
    "ffn_output": ["feedforward.W_out"],
    "full_layer_layer_norm": ["feedforward_norm"],
}
GROUP = "encoder.albert_layer_groups.0.albert_layers.0"
HEAD = "predictions"


def _albert(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.only("is_decoder", None, False)
    fields.only("num_hidden_groups", 1)
    fields.only("inner_group_num", 1)
    found, has_head = options(fields, names, HEAD)
    if (n_layers := fields.size("num_hidden_layers")) > 1:
        fields.assume(
            "all {n} layers have the same weights, which the file and the memory hold once; where parameters are "
            "counted, each layer counts",
            n=n_layers,
        )
    return narrow(fields, found, has_head, always=True), has_head


def _albert_weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor: those of the layer go into all of them."""
    parts = embeddings(config)
    parts += linear("encoder.embedding_hidden_mapping_in", "embedding_projection")
    for theirs, (ours,) in ALBERT.items():
        for kind in ("weight", "bias"):
            targets = tuple(f"encoder.layers.{layer}.{ours}.{kind}" for layer in range(config.n_encoder_layers))
            parts.append(Part(f"{GROUP}.{theirs}.{kind}", targets, shared=True))
    return [*parts, *head(config, HEAD, "dense", "LayerNorm")]


# Nomic BERT: BERT with rotary positions, a gated feed-forward layer, and biases in the norms and the head alone.
# Source: Nussbaum et al. 2024, "Nomic Embed: Training a Reproducible Long Context Text Embedder", section 3, and the
# weights published with it.

# What files for the authors' own code call the options, and what `transformers` calls them.
OLDER = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "rotary_emb_base": "rope_theta",
}
# Options that only those files have, with what `transformers` computes anyway.
ONLY = {
    "rotary_emb_fraction": (1, 1.0),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (),
    "rotary_scaling_factor": (),
    "activation_function": ("swiglu", "silu"),
    "prenorm": (False,),
    "parallel_block": (False,),
    "use_rms_norm": (False,),
    "causal": (False,),
    "qkv_proj_bias": (False,),
    "mlp_fc1_bias": (False,),
    "mlp_fc2_bias": (False,),
}
NOMIC_BERT = {
    "attn.Wqkv": [f"self_attention.W_{letter}" for letter in "QKV"],
    "attn.out_proj": ["self_attention.W_O"],
    "norm1": ["self_norm"],
    "mlp.fc11": ["feedforward.W_in"],
    "mlp.fc12": ["feedforward.W_gate"],
    "mlp.fc2": ["feedforward.W_out"],
    "norm2": ["feedforward_norm"],
}


def _nomic_bert(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.only("is_decoder", None, False)
    _older_names(fields)
    found, has_head = options(fields, names)
    all_are_turned(fields)
    width, heads = found["d_model"], found["n_heads"]
    head_dim = fields.size("head_dim", max(1, width // heads))
    return {
        **found,
        "n_encoder_layers": fields.size("num_hidden_layers"),
        "n_decoder_layers": 0,
        "head_dim": None if head_dim * heads == width else head_dim,
        "positions": "rope",
        **rope(fields),
        "feedforward": "gated",
        "bias": False,
    }, has_head


def _older_names(fields: Fields) -> None:
    """Refuses files for the authors' own code, where `transformers`, which reads none of it, would compute otherwise."""
    if "hidden_size" in fields.raw:
        return
    for older, newer in OLDER.items():
        if older in fields.raw and newer not in fields.raw and fields.value(older) != fields.defaults[newer]:
            fields.refuse(older, "`transformers` reads {field} instead: write it under that name", field=newer)
    for name, neutral in ONLY.items():
        if name in fields.raw:
            fields.only(name, None, *neutral)


def _nomic_bert_weights(config: ModelConfig) -> list[Part]:
    no_bias = [theirs for theirs in NOMIC_BERT if not theirs.startswith("norm")]
    return [
        *(part for part in embeddings(config) if "LayerNorm" not in part.source),
        *linear("emb_ln", "embedding_norm"),
        *layers(NOMIC_BERT, "encoder.layers.{}", "encoder.layers.{}", config.n_encoder_layers, no_bias=no_bias),
        *head(config, norm="transform.layer_norm"),
    ]


FAMILIES: tuple[Family, ...] = (
    Family(
        name="DistilBERT",
        types=("distilbert",),
        prefix="distilbert.",
        head="vocab_",
        config=_distilbert,
        weights=_distilbert_weights,
        tokenizer=wordpiece_or_refuse,
        ties=tied_to("embeddings.word_embeddings.weight", head="vocab_projector"),
        unused={
            r"embeddings\.position_ids": N_("the numbers 0, 1, 2, ...: they follow from the positions"),
            r"(pre_classifier|classifier|qa_outputs)\..*": N_("the head of another task"),
        },
        usual=WORDPIECE_MARKS,
    ),
    relative(
        LIKE,
        "ALBERT",
        "albert",
        _albert,
        prefix="albert.",
        head=f"{HEAD}.",
        weights=_albert_weights,
        ties=partial(ties, head=HEAD),
        spare=partial(spare, head=HEAD),
        made=no_unembedding,
        unused={**UNUSED, r"sop_classifier\..*": N_("the head of another task")},
    ),
    relative(
        LIKE,
        "Nomic BERT",
        "nomic_bert",
        _nomic_bert,
        prefix="nomic_bert.",
        weights=_nomic_bert_weights,
        tokenizer=wordpiece_or_refuse,
    ),
)

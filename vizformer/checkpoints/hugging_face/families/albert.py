"""ALBERT: BERT whose layers share one set of weights, and whose embeddings are narrower than the layers.

Source: Lan et al. 2019, "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", and the weights
published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bert_like import USUAL, embeddings, narrow, no_unembedding, options
from vizformer.checkpoints.hugging_face.family import SPARE_BIAS, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_

LAYER = {
    "attention.query": "self_attention.W_Q",
    "attention.key": "self_attention.W_K",
    "attention.value": "self_attention.W_V",
    "attention.dense": "self_attention.W_O",
    "attention.LayerNorm": "self_norm",
    "ffn": "feedforward.W_in",
    "ffn_output": "feedforward.W_out",
    "full_layer_layer_norm": "feedforward_norm",
}
GROUP = "encoder.albert_layer_groups.0.albert_layers.0"
HEAD = "predictions"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    fields.only("is_decoder", None, False)
    fields.only("num_hidden_groups", 1)
    fields.only("inner_group_num", 1)
    found, has_head = options(fields, names, HEAD)
    if (n_layers := fields.size("num_hidden_layers")) > 1:
        fields.assume(
            N_(
                "all {n} layers have the same weights, which the file and the memory hold once; where parameters are "
                "counted, each layer counts",
                n=n_layers,
            )
        )
    return narrow(fields, found, has_head, always=True), has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor: those of the layer go into all of them."""
    parts = embeddings(config)
    parts += linear("encoder.embedding_hidden_mapping_in", "embedding_projection")
    for theirs, ours in LAYER.items():
        for kind in ("weight", "bias"):
            targets = tuple(f"encoder.layers.{layer}.{ours}.{kind}" for layer in range(config.n_encoder_layers))
            parts.append(Part(f"{GROUP}.{theirs}.{kind}", targets, shared=True))
    if config.head == "transform":
        parts += linear(f"{HEAD}.dense", "prediction.dense") + linear(f"{HEAD}.LayerNorm", "prediction.norm")
        bias = f"{HEAD}.bias" if config.tied_unembedding else f"{HEAD}.decoder.bias"
        parts.append(Part(bias, ("prediction.logit_bias",)))
        if not config.tied_unembedding:
            parts.append(Part(f"{HEAD}.decoder.weight", ("unembedding.weight",)))
    return parts


def ties(config: ModelConfig) -> dict[str, str]:
    """Second names under which some files repeat a tensor."""
    if not config.tied_unembedding:
        return {}
    return {f"{HEAD}.decoder.bias": f"{HEAD}.bias", f"{HEAD}.decoder.weight": "embeddings.word_embeddings.weight"}


FAMILY = Family(
    name="ALBERT",
    types=("albert",),
    prefix="albert.",
    head=f"{HEAD}.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    spare=lambda config: {} if config.tied_unembedding else {f"{HEAD}.bias": (f"{HEAD}.decoder.bias", SPARE_BIAS)},
    made=no_unembedding,
    unused={
        r"embeddings\.position_ids": N_("the numbers 0, 1, 2, ...: they follow from the positions"),
        r"pooler\..*": N_("the summary of the first token, used by classifiers only"),
        r"sop_classifier\..*": N_("the head of another task"),
        r"(classifier|qa_outputs)\..*": N_("the head of another task"),
    },
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

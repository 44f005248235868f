"""ALBERT: BERT whose layers share one set of weights, and whose embeddings are narrower than the layers.

Source: Lan et al. 2019, "ALBERT: A Lite BERT for Self-supervised Learning of Language Representations", and the weights
published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bert_like import (
    LIKE,
    UNUSED,
    embeddings,
    head,
    narrow,
    no_unembedding,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, attention, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

LAYER = {
    **attention("attention.{}", "query key value dense"),
    "attention.LayerNorm": ["self_norm"],
    "ffn": ["feedforward.W_in"],
    "ffn_output": ["feedforward.W_out"],
    "full_layer_layer_norm": ["feedforward_norm"],
}
GROUP = "encoder.albert_layer_groups.0.albert_layers.0"
HEAD = "predictions"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
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


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor: those of the layer go into all of them."""
    parts = embeddings(config)
    parts += linear("encoder.embedding_hidden_mapping_in", "embedding_projection")
    for theirs, (ours,) in LAYER.items():
        for kind in ("weight", "bias"):
            targets = tuple(f"encoder.layers.{layer}.{ours}.{kind}" for layer in range(config.n_encoder_layers))
            parts.append(Part(f"{GROUP}.{theirs}.{kind}", targets, shared=True))
    return [*parts, *head(config, HEAD, "dense", "LayerNorm")]


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "ALBERT",
        "albert",
        config,
        prefix="albert.",
        head=f"{HEAD}.",
        weights=weights,
        ties=partial(ties, head=HEAD),
        spare=partial(spare, head=HEAD),
        made=no_unembedding,
        unused={**UNUSED, r"sop_classifier\..*": N_("the head of another task")},
    ),
)

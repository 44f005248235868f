"""Blenderbot: BART with the norms in front of the sublayers, one more at the end of each stack, none after the embeddings.

Source: Roller et al. 2020, "Recipes for Building an Open-Domain Chatbot", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bart_like import UNUSED, both_stacks, start, tensors, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = both_stacks(fields, names, pre_norm=True)
    fields.only("normalize_embedding", None, False)
    fields.only("static_position_embeddings", None, False)
    fields.only("layernorm_variant", None, "prelayernorm")
    fields.ignore("extra_pos_embeddings")  # written by old versions; no forward reads it
    return {
        **options,
        "positions": "learned",
        "stack_inputs": "own",
        "decoder_start_id": start(fields, options["vocab_size"], options["bos_id"], N_("the start mark")),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [
        *tensors(config),
        Part("encoder.embed_positions.weight", ("position_embedding.weight",)),
        Part("decoder.embed_positions.weight", ("decoder_position_embedding.weight",)),
        *linear("encoder.layer_norm", "encoder.final_norm"),
        *linear("decoder.layer_norm", "decoder.final_norm"),
    ]


FAMILY = Family(
    name="Blenderbot",
    types=("blenderbot",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

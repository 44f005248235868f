"""RoFormer: BERT with rotary positions of neighbouring numbers instead of a table.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", and the weights published with
it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bert_like import UNUSED, USUAL, body, embeddings, head, options, spare, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.hugging_face.rotary import turning_neighbours
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_
from vizformer.model.positions import sinusoidal_encoding


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    found, has_head = options(fields, names)
    fields.only("rotary_value", False)  # otherwise the values are turned as well
    if fields.value("embedding_size") not in (None, found["d_model"]):
        fields.refuse("embedding_size", N_("supported are embeddings as wide as hidden_size={n}", n=found["d_model"]))
    return {**found, "positions": "rope", "rope_theta": 10_000.0}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    of_layers = turning_neighbours(body(config), config, {"query": config.n_heads, "key": config.n_heads})
    return [*embeddings(config), *of_layers, *head(config)]


def waves(config: ModelConfig) -> Made:
    """Files hold the sines and cosines of the angles."""
    make = partial(sinusoidal_encoding, config.max_positions, config.d_head, "halves")
    return {"encoder.embed_positions.weight": make}


FAMILY = Family(
    name="RoFormer",
    types=("roformer",),
    prefix="roformer.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    spare=spare,
    computed=waves,
    unused=UNUSED,
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

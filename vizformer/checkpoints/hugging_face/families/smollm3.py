"""SmolLM3: LLaMA's layers, of which every fourth has no positions.

Source: Bakouch et al. 2025, "SmolLM3: smol, multilingual, long-context reasoner", and the weights published with it;
Yang et al. 2025, "Rope to Nope and Back Again: A New Hybrid Attention Strategy".
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, biases, decoder, tensors, ties
from vizformer.checkpoints.hugging_face.rope_layers import listed_layers, turning_in
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    turned = listed_layers(fields, fields.size("num_hidden_layers"))
    # Where the layers are not listed, those that do not turn have the window.
    options, has_head = decoder(fields, names, windowed=lambda layer: layer not in turned)
    return {**options, **turning_in(turned, options), **biases(fields)}, has_head


FAMILY = Family(
    name="SmolLM3",
    types=("smollm3",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)

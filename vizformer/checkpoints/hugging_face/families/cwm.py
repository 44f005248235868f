"""CWM, the Code World Model: LLaMA's layers, of which three out of four have a sliding window.

Source: FAIR CodeGen team 2025, "CWM: An Open-Weights LLM for Research on Code Generation with World Models", section 3,
and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, tensors, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    if fields.raw.get("rope_parameters", ...) is None:  # null stands for what the family has anyway
        del fields.raw["rope_parameters"]
    fields.size("sliding_window")  # there is always one
    options, has_head = decoder(fields, names, windowed=lambda layer: layer % 4 != 0)
    return {**options, "bias": fields.flag("mlp_bias"), "attention_bias": "none"}, has_head


FAMILY = Family(
    name="CWM",
    types=("cwm",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=only_tokenizer_json,
    ties=ties,
    unused=UNUSED,
)

"""Pegasus: the Transformer of 2017 with the norms in front of the sublayers, and one more at the end of each stack.

Source: Zhang et al. 2019, "PEGASUS: Pre-training with Extracted Gap-sentences for Abstractive Summarization", and the
weights published with it.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bart_like import UNUSED, both_stacks, start, tensors, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.missing_parameters import Made
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_
from vizformer.model.positions import sinusoidal_encoding

STACKS = ("encoder", "decoder")


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = both_stacks(fields, names, pre_norm=True)
    fields.only("normalize_embedding", None, False)
    fields.only("static_position_embeddings", None, True)
    fields.ignore("extra_pos_embeddings")  # written by old versions; no forward reads it
    pad = options["pad_id"]
    return {
        **options,
        "positions": "sinusoidal",
        "sinusoids": "halves",
        "decoder_start_id": start(fields, options["vocab_size"], pad, N_("the padding")),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    final = [part for stack in STACKS for part in linear(f"{stack}.layer_norm", f"{stack}.final_norm")]
    return [*tensors(config), *final]


def waves(config: ModelConfig) -> Made:
    """Old files hold the waves of the positions, once for each stack."""
    make = partial(sinusoidal_encoding, config.max_positions, config.d_model, config.sinusoids)
    return dict.fromkeys((f"{stack}.embed_positions.weight" for stack in STACKS), make)


FAMILY = Family(
    name="Pegasus",
    types=("pegasus",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    computed=waves,
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

"""M2M-100 and NLLB: the Transformer with the norms in front of the sublayers; fixed waves counted from the padding's row.

Source: Fan et al. 2020, "Beyond English-Centric Multilingual Machine Translation"; NLLB Team 2022, "No Language Left
Behind"; and the weights published with them.
"""

from collections.abc import Collection
from functools import partial

from vizformer.checkpoints.hugging_face.bart_like import UNUSED, both_stacks, start, tensors, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.missing_parameters import WAVES, Made, fairseq_waves
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_

STACKS = ("encoder", "decoder")
LONGEST = 32_768  # rows of the table of waves


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = both_stacks(fields, names, pre_norm=True)
    if options["pad_id"] is None:
        fields.refuse(
            "pad_token_id", N_("positions are counted from the row after the padding's: it must be a token id")
        )
    fields.assume(WAVES)
    return {
        **options,
        "max_positions": min(options["max_positions"], LONGEST),
        "positions": "learned",
        "decoder_start_id": start(fields, options["vocab_size"], options["eos_id"], N_("the end mark")),
    }, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    final = [part for stack in STACKS for part in linear(f"{stack}.layer_norm", f"{stack}.final_norm")]
    return [*tensors(config), *final]


def made(config: ModelConfig) -> Made:
    """The waves."""
    pad = config.pad_id or 0
    return {"position_embedding.weight": partial(fairseq_waves, config.max_positions, config.d_model, pad, pad + 1)}


FAMILY = Family(
    name="M2M-100",
    types=("m2m_100",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    made=made,
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

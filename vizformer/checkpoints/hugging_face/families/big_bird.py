"""BigBird: BERT, whose texts are looked at in full as long as they are short; longer ones in blocks, which is not followed.

Source: Zaheer et al. 2020, "Big Bird: Transformers for Longer Sequences", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bert_like import UNUSED, USUAL, body, embeddings, head, options, spare, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import N_


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model.

    Source: `transformers`, BigBirdModel.forward: up to (5 + 2 num_random_blocks) block_size tokens are looked at in
    full, whatever attention_type says.
    """
    found, has_head = options(fields, names)
    fields.only("use_bias", True)
    fields.only("attention_type", "original_full", "block_sparse")
    block, random = fields.size("block_size"), fields.size("num_random_blocks")
    limit = (5 + 2 * random) * block
    if fields.value("attention_type") == "block_sparse" and limit < found["max_positions"]:
        fields.refuse(
            "attention_type",
            N_(
                "texts of more than {limit:,} tokens are looked at in blocks only; supported is original_full",
                limit=limit,
            ),
        )
    return {**found, "scaled_embedding": fields.flag("rescale_embeddings")}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    return [*embeddings(config), *body(config), *head(config)]


FAMILY = Family(
    name="BigBird",
    types=("big_bird",),
    prefix="bert.",
    head="cls.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    spare=spare,
    unused=UNUSED,
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

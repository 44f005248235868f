"""GraniteMoE: Granite's layers, with experts in the place of each feed-forward network.

The router's scores are cut to the k largest before their softmax: these weights are the renormalised probabilities.

Source: Granite Team 2024, "Granite 3.0 Language Models", section 2, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.experts_like import as_stored, experts, weights
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import UNUSED, decoder, ties
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    options, has_head = decoder(fields, names)
    return {
        **options,
        **experts(fields, options, names, number="num_local_experts", renormalised=True),
        "bias": False,
        "attention_bias": "all" if fields.flag("attention_bias") else "none",
        "embedding_scale": fields.number("embedding_multiplier"),
        "attention_scale": fields.number("attention_multiplier"),
        "residual_scale": fields.number("residual_multiplier"),
        "logit_scale": 1.0 / fields.number("logits_scaling"),
    }, has_head


FAMILY = Family(
    name="GraniteMoE",
    types=("granitemoe",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    by_names=as_stored,
    unused=UNUSED,
    renamed={
        r"\.block_sparse_moe\.": ".mlp.",
        r"\.mlp\.input_linear\.weight$": ".mlp.experts.gate_up_proj",
        r"\.mlp\.output_linear\.weight$": ".mlp.experts.down_proj",
        r"\.mlp\.router\.(layer\.)?": ".mlp.gate.",
    },
)

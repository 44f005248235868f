"""BertGeneration: BERT's layers without segments, as an encoder or a decoder, with a plain head.

Source: Rothe, Narayan & Severyn 2019, "Leveraging Pre-trained Checkpoints for Sequence Generation Tasks", and the
weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bert_like import UNUSED, body, embeddings, options
from vizformer.checkpoints.hugging_face.family import SPARE_BIAS, Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.config import ModelConfig
from vizformer.messages import Message

HEAD = "lm_head"


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    found, has_head = options(fields, names, HEAD, segments=False)
    has_head = has_head or fields.architecture == "BertGenerationDecoder"
    tied = fields.flag("tie_word_embeddings") or not has_head
    return {**found, "head": "linear", "logit_bias": has_head, "tied_unembedding": tied}, has_head


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    bias = f"{HEAD}.bias" if config.tied_unembedding else f"{HEAD}.decoder.bias"
    return [
        *embeddings(config),
        *body(config),
        *([Part(bias, ("logit_bias",))] if config.logit_bias else []),
        *([] if config.tied_unembedding else [Part(f"{HEAD}.decoder.weight", ("unembedding.weight",))]),
    ]


def ties(config: ModelConfig) -> dict[str, str]:
    """Second names under which some files repeat a tensor."""
    if not config.tied_unembedding:
        return {}
    return {f"{HEAD}.decoder.bias": f"{HEAD}.bias", f"{HEAD}.decoder.weight": "embeddings.word_embeddings.weight"}


def spare(config: ModelConfig) -> dict[str, tuple[str, Message]]:
    """The bias of a head that is not tied, in files that have it under one name only."""
    return {} if config.tied_unembedding else {f"{HEAD}.bias": (f"{HEAD}.decoder.bias", SPARE_BIAS)}


FAMILY = Family(
    name="BertGeneration",
    types=("bert-generation",),
    prefix="bert.",
    head=f"{HEAD}.",
    config=config,
    weights=weights,
    tokenizer=only_tokenizer_json,
    ties=ties,
    spare=spare,
    unused=UNUSED,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

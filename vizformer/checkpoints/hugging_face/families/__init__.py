"""The families of models that open: one short file each, none of which knows another."""

from vizformer.checkpoints.hugging_face.families import (
    bart,
    bert,
    distilbert,
    gemma,
    gpt2,
    gpt_neox,
    llama,
    marian,
    opt,
    phi,
    qwen2,
    qwen3,
    roberta,
    stablelm,
    t5,
)
from vizformer.checkpoints.hugging_face.family import Family

FAMILIES: tuple[Family, ...] = (
    gpt2.FAMILY,
    bert.FAMILY,
    roberta.FAMILY,
    distilbert.FAMILY,
    llama.FAMILY,
    qwen2.FAMILY,
    qwen3.FAMILY,
    gemma.FAMILY,
    gpt_neox.FAMILY,
    phi.FAMILY,
    stablelm.FAMILY,
    opt.FAMILY,
    marian.FAMILY,
    bart.FAMILY,
    t5.FAMILY,
)
BY_TYPE: dict[str, Family] = {model_type: family for family in FAMILIES for model_type in family.defaults}

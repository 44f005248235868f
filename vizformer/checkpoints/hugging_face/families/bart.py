"""BART: BERT's layers with GPT-2's tokens in an encoder-decoder; each stack has a position table and a norm of its own.

mBART is the same with the norms in front of the sublayers, one more behind the last layer, and SentencePiece's tokens.
PLBART and MVP are BART under other names.  Each opens as a decoder alone too, as its class ForCausalLM saves it.

Source: Lewis et al. 2019, "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation,
Translation, and Comprehension"; Liu et al. 2020, "Multilingual Denoising Pre-training for Neural Machine Translation";
Ahmad et al. 2021, "Unified Pre-training for Program Understanding and Generation"; Tang et al. 2022, "MVP: Multi-task
Supervised Pre-training for Natural Language Generation"; and the weights published with them.
"""

from collections.abc import Collection
from dataclasses import replace

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bart_like import UNUSED, both_stacks, start, tensors, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import no_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_

FIRST = 2  # row of the position table at which positions begin
USUAL = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "cls_token": "<s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<mask>",
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    pre_norm = fields.raw.get("model_type") == "mbart"
    alone = fields.architecture.endswith("ForCausalLM")
    options, has_head = both_stacks(fields, names, pre_norm=pre_norm, alone=alone)
    fields.only("normalize_embedding", None, True)
    fields.only("static_position_embeddings", None, False)
    fields.only("extra_pos_embeddings", None, FIRST)
    options |= {"positions": "learned", "embedding_norm": True}
    if alone:
        return options, has_head
    return {
        **options,
        "stack_inputs": "own",
        "decoder_start_id": start(fields, options["vocab_size"], options["eos_id"], N_("the end mark")),
    }, has_head


def config_of_mvp(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The same; what prompts add to keys and values is not supported."""
    fields.only("use_prompt", False)
    fields.ignore("prompt_length", "prompt_mid_dim")
    return config(fields, names)


def weights(config: ModelConfig) -> list[Part]:
    """What becomes of every tensor."""
    stacks = {"encoder": "", "decoder": "decoder_"} if config.n_encoder_layers else {"decoder": ""}
    parts = tensors(config)
    for stack, own in stacks.items():
        parts += [
            Part(f"{stack}.embed_positions.weight", (f"{own}position_embedding.weight",), skip=FIRST),
            *linear(f"{stack}.layernorm_embedding", f"{own}embedding_norm"),
            *(linear(f"{stack}.layer_norm", f"{stack}.final_norm") if config.final_norm else []),
        ]
    return parts


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt; of mBART and PLBART only tokenizer.json, which says the language."""
    kind = folder.object("config.json").get("model_type") if folder.has("config.json") else None
    if kind in ("mbart", "plbart"):
        no_tokenizer(folder, "tokenizer.json")
    return byte_level(folder, USUAL, around=("<s>", "</s>"))


FAMILY = Family(
    name="BART",
    types=("bart", "mbart"),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=ties,
    unused=UNUSED,
    usual=USUAL,
)
PL = replace(FAMILY, name="PLBART", types=("plbart",))
PROMPTED = replace(FAMILY, name="MVP", types=("mvp",), config=config_of_mvp)
FAMILIES: tuple[Family, ...] = (FAMILY, PL, PROMPTED)

"""Marian: the Transformer of 2017 as the OPUS-MT translators have it; the decoder begins with the padding token.

Most have one vocabulary for both languages; where config.json says share_encoder_decoder_embeddings=false, each has its
own.

Source: Junczys-Dowmunt et al. 2018, "Marian: Fast Neural Machine Translation in C++"; Tiedemann & Thottingal 2020,
"OPUS-MT", and the weights published with it.
"""

from collections.abc import Callable, Collection
from functools import partial

from torch import Tensor

from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.hugging_face.bart_like import UNUSED, both_stacks, start, tensors, ties
from vizformer.checkpoints.hugging_face.family import Family, Options
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tokenizers.paired_files import paired
from vizformer.checkpoints.tokenizers.vocabularies import Vocabularies
from vizformer.config import ModelConfig
from vizformer.messages import N_
from vizformer.model.positions import sinusoidal_encoding

USUAL = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of our model."""
    shared = fields.flag("share_encoder_decoder_embeddings")
    options, has_head = both_stacks(fields, names, own_vocabularies=not shared)
    fields.only("normalize_embedding", None, False)
    fields.only("static_position_embeddings", None, True)
    if shared:
        fields.only("decoder_vocab_size", None, options["vocab_size"])
    pad = options["pad_id"]
    return {
        **options,
        "positions": "sinusoidal",
        "sinusoids": "halves",
        "never_pad": _never_pad(fields, pad),
        "decoder_start_id": start(fields, options["vocab_size"], pad, N_("the padding")),
    }, has_head


def _never_pad(fields: Fields, pad: int | None) -> bool:
    """Its usual bad_words_ids: only the padding, whose logit would otherwise sometimes be the highest."""
    banned = fields.value("bad_words_ids")
    if banned in (None, []) or pad is None:
        return False
    if banned != [[pad]]:
        fields.assume(N_("bad_words_ids={value}: generation here leaves out the padding at most", value=shown(banned)))
    return isinstance(banned, list) and [pad] in banned


def waves(config: ModelConfig) -> dict[str, Callable[[], Tensor]]:
    """Old files hold the waves of the positions, once for each stack."""
    names = (f"{stack}.embed_positions.weight" for stack in ("encoder", "decoder"))
    make = partial(sinusoidal_encoding, config.max_positions, config.d_model, config.sinusoids)
    return dict.fromkeys(names, make)


def tokenizer(folder: Folder) -> Vocabularies:
    """source.spm, target.spm, vocab.json and, where targets have a vocabulary of their own, target_vocab.json."""
    return paired(folder, USUAL)


FAMILY = Family(
    name="Marian",
    types=("marian",),
    prefix="model.",
    head="lm_head.",
    config=config,
    weights=tensors,
    tokenizer=tokenizer,
    ties=ties,
    computed=waves,
    unused=UNUSED,
    usual=USUAL,
)
FAMILIES: tuple[Family, ...] = (FAMILY,)

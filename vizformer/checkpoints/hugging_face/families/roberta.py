"""RoBERTa: BERT's layers, byte-level tokens, a head with names of its own; positions start after the padding's.

XLM-RoBERTa and CamemBERT are the same with SentencePiece's tokens, data2vec under another name; XLM-RoBERTa-XL and
RoBERTa-PreLayerNorm have the norms in front of the sublayers, and one more at the end.  MPNet has no segments, BERT's
kind of tokens, and one table of biases for distances, which all layers share.  Longformer has a window to both sides; the
tokens that see all others, which a caller names there, are none for a text alone.

Source: Liu et al. 2019, "RoBERTa: A Robustly Optimized BERT Pretraining Approach"; Conneau et al. 2019, "Unsupervised
Cross-lingual Representation Learning at Scale"; Martin et al. 2019, "CamemBERT"; Baevski et al. 2022, "data2vec"; Goyal
et al. 2021, "Larger-Scale Transformers for Multilingual Masked Language Modeling"; Ott et al. 2019, "fairseq"; Song et
al. 2020, "MPNet: Masked and Permuted Pre-training for Language Understanding"; Beltagy et al. 2020, "Longformer: The
Long-Document Transformer", section 3.1; and the weights published with them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.hugging_face.bert_like import (
    LAYER,
    LINEAR,
    UNUSED,
    body,
    embeddings,
    head,
    name,
    options,
    spare,
    ties,
)
from vizformer.checkpoints.hugging_face.family import Family, Options, relative
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import Part, attention, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.vocabularies import ROBERTA_MARKS, byte_level, wordpiece_or_refuse
from vizformer.config import ModelConfig
from vizformer.messages import N_

PRE_NORM: Options = {"norm_order": "pre", "final_norm": True}


def config(fields: Fields, names: Collection[str], *, segments: bool = True) -> tuple[Options, bool]:
    """The options of our model: the rows of the position table up to the padding's are left out."""
    found, has_head = options(fields, names, "lm_head.", segments=segments)
    pad, rows = found["pad_id"], found["max_positions"]
    if pad is None or pad + 1 >= rows:
        fields.refuse(
            "pad_token_id",
            "positions are counted from the row after the padding's: it must be a token "
            "id below max_position_embeddings - 1",
        )
        pad, rows = 0, 2
    fields.assume(
        "positions count from row {row} of the table, as long as token {id} (the padding) is not in the text",
        row=pad + 1,
        id=pad,
    )
    if has_head:
        fields.only("hidden_act", "gelu")  # the head's own activation is always this one
    return {**found, "max_positions": rows - pad - 1, "pad_id": pad}, has_head


def weights(config: ModelConfig, template: Mapping[str, Sequence[str]] = LAYER, final: str = "") -> list[Part]:
    """What becomes of every tensor; `template` and `final` are what modules of a layer and the last norm are called."""
    parts = [
        *(
            replace(part, skip=(config.pad_id or 0) + 1) if "position" in part.source else part
            for part in embeddings(config)
        ),
        *body(config, template),
        *(linear(final, f"{name(config)}.final_norm") if final else []),
    ]
    return [*parts, *head(config, "lm_head", "dense", "layer_norm")]


def tokenizer(folder: Folder) -> Backend:
    """vocab.json and merges.txt; the relatives whose ids are not those of their pieces (XLM-R, CamemBERT) have neither."""
    kind = folder.object("config.json").get("model_type") if folder.has("config.json") else None
    if kind in ("xlm-roberta", "xlm-roberta-xl", "camembert"):
        only_tokenizer_json(folder)
    return byte_level(folder, ROBERTA_MARKS, around=("<s>", "</s>"))


MPNET_MARKS = {**ROBERTA_MARKS, "unk_token": "[UNK]"}
BUCKETS, FURTHEST = 32, 128  # of MPNet: its code takes no others, whatever a config says
MPNET: Mapping[str, Sequence[str]] = {
    **attention("attention.attn.{}", "q k v"),
    "attention.attn.o": ["self_attention.W_O"],
    "attention.LayerNorm": ["self_norm"],
    **{theirs: ours for theirs, ours in LAYER.items() if not theirs.startswith("attention.")},
}


def _mpnet(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    fields.only("is_decoder", None, False)
    fields.only("pad_token_id", 1)  # positions are counted from row 2, whatever it says
    fields.only("relative_attention_num_buckets", BUCKETS)
    found, has_head = config(fields, names, segments=False)
    return {**found, "relative_bias": True, "relative_buckets": BUCKETS, "relative_max_distance": FURTHEST}, has_head


def _longformer(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    found, has_head = config(fields, names)
    fields.only("is_decoder", None, False)
    fields.ignore("onnx_export")
    said, depth = fields.value("attention_window"), fields.size("num_hidden_layers")
    sizes = said if isinstance(said, list) and len(said) == depth else [said]
    if any(type(size) is not int or size < 4 or size % 2 or size != sizes[0] for size in sizes):
        fields.refuse("attention_window", "supported is one even number from 4 on, the same in all layers")
        return found, has_head
    half = sizes[0] // 2
    if half + 1 >= found["max_positions"]:
        return found, has_head
    fields.assume(
        "no token sees the whole text: `transformers` gives global attention only to tokens that a caller names"
    )
    return {**found, "sliding_window": half + 1}, has_head


def _tensors_of_mpnet(config: ModelConfig) -> list[Part]:
    return [*weights(config, MPNET), Part("encoder.relative_attention_bias.weight", ("encoder.relative_bias.weight",))]


FAMILY = Family(
    name="RoBERTa",
    types=("roberta", "xlm-roberta", "camembert"),
    prefix="roberta.",
    head="lm_head.",
    config=config,
    weights=weights,
    tokenizer=tokenizer,
    ties=partial(ties, head="lm_head"),
    spare=partial(spare, head="lm_head"),
    unused=UNUSED,
    usual=ROBERTA_MARKS,
)
FAMILIES: tuple[Family, ...] = (
    FAMILY,
    relative(
        FAMILY,
        "MPNet",
        "mpnet",
        _mpnet,
        prefix="mpnet.",
        weights=_tensors_of_mpnet,
        tokenizer=partial(wordpiece_or_refuse, usual=MPNET_MARKS),
        usual=MPNET_MARKS,
    ),
    relative(
        FAMILY,
        "Longformer",
        "longformer",
        _longformer,
        prefix="longformer.",
        unused={
            **UNUSED,
            r"encoder\.layer\.\d+\.attention\.self\.(query|key|value)_global\..*": N_(
                "of tokens that see the whole text, which a caller names; here there are none"
            ),
        },
    ),
    relative(FAMILY, "data2vec", "data2vec-text", prefix="data2vec_text."),
    relative(
        FAMILY,
        "RoBERTa-PreLayerNorm",
        "roberta-prelayernorm",
        config,
        PRE_NORM,
        prefix="roberta_prelayernorm.",
        weights=partial(
            weights,
            template={**LINEAR, "attention.LayerNorm": ["self_norm"], "intermediate.LayerNorm": ["feedforward_norm"]},
            final="LayerNorm",
        ),
    ),
    relative(
        FAMILY,
        "XLM-RoBERTa-XL",
        "xlm-roberta-xl",
        config,
        PRE_NORM,
        {"embedding_norm": False},
        weights=partial(
            weights,
            template={**LINEAR, "attention.self_attn_layer_norm": ["self_norm"], "LayerNorm": ["feedforward_norm"]},
            final="encoder.LayerNorm",
        ),
    ),
)

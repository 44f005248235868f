"""BERT and what is built like it: an encoder, post-norm, positions and segments, and a head that fills in masked tokens.

Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers", and what stands above each row, with the
weights published with it.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from vizformer.checkpoints.hugging_face.bert_like import (
    LIKE,
    LINEAR,
    RENAMED,
    options,
    tensors,
)
from vizformer.checkpoints.hugging_face.family import Export, Family, only, reading, relative, said
from vizformer.checkpoints.tokenizers.vocabularies import wordpiece_or_refuse
from vizformer.config import ModelConfig

FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "num_hidden_layers": "n_encoder_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "d_ff",
    "hidden_act": "activation",
    "max_position_embeddings": "max_positions",
    "type_vocab_size": "n_segments",
    "layer_norm_eps": "norm_eps",
    "tie_word_embeddings": "tied_unembedding",
    "pad_token_id": "pad_id",
}


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    kind = "BertForMaskedLM" if has_head else "BertModel"
    return {"architectures": [kind], **said(FIELDS, config), "position_embedding_type": "absolute"}


FAMILIES: tuple[Family, ...] = (
    relative(
        LIKE,
        "BERT",
        "bert",
        tokenizer=wordpiece_or_refuse,
        renamed=RENAMED,
        exports=(
            Export(
                "bert",
                dict(
                    architecture=["encoder-only"],
                    positions=["learned"],
                    embedding_norm=[True],
                    n_segments=range(1, 2**31),
                ),
                (*FIELDS.values(), "bos_id", "eos_id", "head"),
                export,
            ),
        ),
    ),
    # 1 and 2.  Sun et al. 2019, "ERNIE: Enhanced Representation through Knowledge Integration".
    replace(
        LIKE,
        name="ERNIE",
        types=("ernie",),
        prefix="ernie.",
        config=reading(options, only("task_type_vocab_size", use_task_id=False)),  # one more table
        tokenizer=wordpiece_or_refuse,
        renamed=RENAMED,
    ),
    # The norms in front of the sublayers, and one more at the end.  Shoeybi et al. 2019, "Megatron-LM: Training
    # Multi-Billion Parameter Language Models Using Model Parallelism", section 5.3.
    relative(
        LIKE,
        "Megatron-BERT",
        "megatron-bert",
        options,
        {"norm_order": "pre", "final_norm": True, "embedding_norm": False},
        weights=partial(
            tensors, template={**LINEAR, "attention.ln": ["self_norm"], "ln": ["feedforward_norm"]}, final="encoder.ln"
        ),
        tokenizer=wordpiece_or_refuse,
    ),
)

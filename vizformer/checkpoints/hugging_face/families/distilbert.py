"""DistilBERT: BERT with half the layers, no segments, and names of its own.

Source: Sanh et al. 2019, "DistilBERT, a distilled version of BERT", and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.bert_like import (
    body,
    embeddings,
)
from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part, attention, linear
from vizformer.checkpoints.tokenizers.vocabularies import WORDPIECE_MARKS, wordpiece_or_refuse
from vizformer.config import ModelConfig
from vizformer.messages import N_

LAYER = {
    **attention("attention.{}_lin", "q k v out"),
    "sa_layer_norm": ["self_norm"],
    "ffn.lin1": ["feedforward.W_in"],
    "ffn.lin2": ["feedforward.W_out"],
    "output_layer_norm": ["feedforward_norm"],
}


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    vocab_size = fields.size("vocab_size")
    fields.ignore("is_causal")  # an encoder looks both ways all the same
    has_head = any(name.startswith("vocab_") for name in names) or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("dim"),
        n_heads=fields.size("n_heads"),
        d_ff=fields.size("hidden_dim"),
        n_encoder_layers=fields.size("n_layers"),
        max_positions=fields.size("max_position_embeddings"),
        positions="learned",
        embedding_norm=True,
        norm_eps=1e-12,
        activation=fields.choice("activation", ACTIVATIONS),
        head="transform" if has_head else "linear",
        tied_unembedding=fields.flag("tie_word_embeddings") or not has_head,
        **fields.marks(vocab_size),
    ), has_head


def weights(config: ModelConfig) -> list[Part]:
    parts = [*embeddings(config), *body(config, LAYER, "transformer.layer.{}")]
    if config.head == "transform":
        parts += [*linear("vocab_transform", "prediction.dense"), *linear("vocab_layer_norm", "prediction.norm")]
        parts += [Part("vocab_projector.bias", ("prediction.logit_bias",))]
    return parts if config.tied_unembedding else [*parts, Part("vocab_projector.weight", ("unembedding.weight",))]


FAMILIES: tuple[Family, ...] = (
    Family(
        name="DistilBERT",
        types=("distilbert",),
        prefix="distilbert.",
        head="vocab_",
        config=config,
        weights=weights,
        tokenizer=wordpiece_or_refuse,
        ties=tied_to("embeddings.word_embeddings.weight", head="vocab_projector"),
        unused={
            r"embeddings\.position_ids": N_("the numbers 0, 1, 2, ...: they follow from the positions"),
            r"(pre_classifier|classifier|qa_outputs)\..*": N_("the head of another task"),
        },
        usual=WORDPIECE_MARKS,
    ),
)

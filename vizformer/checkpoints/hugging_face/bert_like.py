"""What BERT and its relatives have in common: encoders, or decoders of the same layers, and a head with a transform."""

from collections.abc import Collection, Mapping, Sequence

from vizformer.checkpoints.hugging_face.family import SPARE_BIAS, Family, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part, attention, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import WORDPIECE_MARKS
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message

LAYER: Mapping[str, Sequence[str]] = {
    **attention("attention.self.{}", "query key value"),
    "attention.output.dense": ["self_attention.W_O"],
    "attention.output.LayerNorm": ["self_norm"],
    "intermediate.dense": ["feedforward.W_in"],
    "output.dense": ["feedforward.W_out"],
    "output.LayerNorm": ["feedforward_norm"],
}
HEAD = "cls.predictions"
UNUSED: Mapping[str, Message] = {
    r"embeddings\.position_ids": N_("the numbers 0, 1, 2, ...: they follow from the positions"),
    r"pooler\..*": N_("the pooler, a summary of the first token that only classifiers use"),
    r"cls\.seq_relationship\..*": N_("the head for next-sentence prediction"),
    r"(classifier|qa_outputs)\..*": N_("the head of another task"),
}
RENAMED: Mapping[str, str] = {r"LayerNorm\.gamma$": "LayerNorm.weight", r"LayerNorm\.beta$": "LayerNorm.bias"}
LINEAR = {theirs: ours for theirs, ours in LAYER.items() if not theirs.endswith("LayerNorm")}


def stack(fields: Fields) -> Options:
    """The layers: an encoder's, or those of a decoder where is_decoder says so."""
    said = fields.value("is_decoder")
    if said not in (None, False, True):
        fields.refuse("is_decoder", "it must be true or false")
    if said:
        fields.only("is_causal", None, True)
    else:
        fields.ignore("is_causal")  # an encoder looks both ways all the same
    return {"n_decoder_layers" if said else "n_encoder_layers": fields.size("num_hidden_layers")}


def options(fields: Fields, names: Collection[str], head: str = HEAD, *, segments: bool = True) -> tuple[Options, bool]:
    """The options that all of them have, and whether there is a head for tokens; a family adds what is its own.

    `head` is with what the names of the head's tensors begin.
    """
    vocab_size = fields.size("vocab_size")
    has_head = any(name.startswith(head) for name in names)
    if says_head(fields.architecture) and not has_head:  # as sentence-transformers saves a body
        fields.assume(
            "config.json names {name}, but the weights hold no tensor of its head: they are read without one",
            name=fields.architecture,
        )
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("hidden_size"),
        n_heads=fields.size("num_attention_heads"),
        d_ff=fields.size("intermediate_size"),
        **stack(fields),
        max_positions=fields.size("max_position_embeddings"),
        positions="learned",
        n_segments=fields.size("type_vocab_size") if segments else 0,
        embedding_norm=True,
        norm_eps=fields.number("layer_norm_eps"),
        activation=fields.choice("hidden_act", ACTIVATIONS),
        head="transform" if has_head else "linear",
        tied_unembedding=fields.flag("tie_word_embeddings") or not has_head,
        **fields.marks(vocab_size),
    ), has_head


def name(config: ModelConfig) -> str:
    """The name of the only stack: "encoder" or "decoder"."""
    return "decoder" if config.n_decoder_layers else "encoder"


def body(
    config: ModelConfig, template: Mapping[str, Sequence[str]] = LAYER, source: str = "encoder.layer.{}"
) -> list[Part]:
    """The mapping of the tensors of the layers; `template` and `source` are their names in the file."""
    no_bias = () if config.qkv_bias else [theirs for theirs, ours in template.items() if ours[0][-3:] in _QKV]
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    return layers(template, source, f"{name(config)}.layers.{{}}", n_layers, no_bias=no_bias)


_QKV = ("W_Q", "W_K", "W_V")


def embeddings(config: ModelConfig) -> list[Part]:
    segments = [Part("embeddings.token_type_embeddings.weight", ("segment_embedding.weight",))]
    return [
        Part("embeddings.word_embeddings.weight", ("embedding.weight",)),
        Part("embeddings.position_embeddings.weight", ("position_embedding.weight",)),
        *(segments if config.n_segments else []),
        *(linear("embeddings.LayerNorm", "embedding_norm") if config.embedding_norm else []),
    ]


def head(
    config: ModelConfig, name: str = HEAD, dense: str = "transform.dense", norm: str = "transform.LayerNorm"
) -> list[Part]:
    """What becomes of the head's tensors; `name`, `dense` and `norm` are what it, its layer and its norm are called."""
    parts: list[Part] = []
    if config.head == "transform":
        parts += linear(f"{name}.{dense}", "prediction.dense") + linear(f"{name}.{norm}", "prediction.norm")
        bias = f"{name}.bias" if config.tied_unembedding else f"{name}.decoder.bias"
        parts += [Part(bias, ("prediction.logit_bias",))]
    return parts if config.tied_unembedding else [*parts, Part(f"{name}.decoder.weight", ("unembedding.weight",))]


def tensors(config: ModelConfig, template: Mapping[str, Sequence[str]] = LAYER, final: str = "") -> list[Part]:
    """What becomes of every tensor; `template` and `final` are what modules of a layer and the last norm are called."""
    norm = linear(final, f"{name(config)}.final_norm") if final else []
    return [*embeddings(config), *body(config, template), *norm, *head(config)]


def ties(config: ModelConfig, head: str = HEAD) -> dict[str, str]:
    if not config.tied_unembedding:
        return {}
    return {f"{head}.decoder.bias": f"{head}.bias", f"{head}.decoder.weight": "embeddings.word_embeddings.weight"}


def spare(config: ModelConfig, head: str = HEAD) -> dict[str, tuple[str, Message]]:
    """The bias of a head that is not tied, in files that have it under one name only."""
    return {} if config.tied_unembedding else {f"{head}.bias": (f"{head}.decoder.bias", SPARE_BIAS)}


LIKE = Family(
    name="",
    types=(),
    prefix="bert.",
    head="cls.",
    config=options,
    weights=tensors,
    ties=ties,
    spare=spare,
    unused=UNUSED,
    usual=WORDPIECE_MARKS,
)  # what the relatives replace

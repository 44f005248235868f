"""ModernBERT: an encoder whose layers mostly look at a neighbourhood, with rotary positions and gated networks.

Two layers of three have a sliding window that reaches to both sides, and rotary positions of a base of their own; the others
see everything.  Nothing has a bias but the logits, and the attention of the first layer has no norm before it.

Source: Warner et al. 2024, "Smarter, Better, Faster, Longer: A Modern Bidirectional Encoder for Fast, Memory Efficient, and
Long Context Finetuning and Inference", section 2.1, and the weights published with it.
"""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Family, Options, reading, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.llama_like import biases
from vizformer.checkpoints.hugging_face.missing_parameters import NO_NORM_BIASES, Made, zeros
from vizformer.checkpoints.hugging_face.rotary import rope_of_layer_types
from vizformer.checkpoints.hugging_face.sliding_window import windowed_layers
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.checkpoints.tokenizers.refusals import only_tokenizer_json
from vizformer.checkpoints.tokenizers.vocabularies import WORDPIECE_MARKS
from vizformer.config import ModelConfig
from vizformer.messages import N_


def config(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    vocab_size, longest = fields.size("vocab_size"), fields.size("max_position_embeddings")
    depth, has_head = fields.size("num_hidden_layers"), says_head(fields.architecture) or "decoder.bias" in names
    for name in ("norm_bias", "classifier_bias"):
        fields.only(name, False)
    fields.only("decoder_bias", True)
    fields.only("rope_scaling", None)
    activation = fields.choice("hidden_activation", ACTIVATIONS)
    of_head = fields.value("classifier_activation")
    if has_head and ACTIVATIONS.get(str(of_head)) != activation:
        fields.refuse("classifier_activation", "supported is the same as hidden_activation")
    every = fields.size("global_attn_every_n_layers")
    local = windowed_layers(fields, depth, lambda layer: layer % every != 0)
    fields.assume(NO_NORM_BIASES)
    tied = fields.flag("tie_word_embeddings")
    return {
        "vocab_size": vocab_size,
        "d_model": fields.size("hidden_size"),
        "n_heads": fields.size("num_attention_heads"),
        "d_ff": fields.size("intermediate_size"),
        "n_encoder_layers": depth,
        "max_positions": longest,
        "positions": "rope",
        **rope_of_layer_types(fields, local, old_theta="global_rope_theta", old_local="local_rope_theta"),
        **_window(fields, local, depth, longest),
        "embedding_norm": True,
        "norm_order": "pre",
        "first_norm": False,
        "final_norm": True,
        "norm_eps": fields.number("norm_eps"),
        "activation": activation,
        "feedforward": "gated",
        "head": "transform" if has_head else "linear",
        "tied_unembedding": tied or not has_head,
        "dropout": 0.0,
        **fields.marks(vocab_size),
    }, has_head


def _window(fields: Fields, layers: Collection[int], depth: int, longest: int) -> Options:
    """A query sees the keys up to local_attention / 2 away, on both sides; a sliding_window says that half itself."""
    half = fields.size("local_attention") // 2
    if fields.raw.get("sliding_window") is not None:
        half = fields.size("sliding_window")
    if not layers or half + 1 >= longest:
        return {}
    return {"sliding_window": half + 1, "sliding_layers": None if len(layers) == depth else tuple(layers)}


def weights(config: ModelConfig) -> list[Part]:
    parts = [
        Part("embeddings.tok_embeddings.weight", ("embedding.weight",)),
        *linear("embeddings.norm", "embedding_norm", bias=False),
        *linear("final_norm", "encoder.final_norm", bias=False),
    ]
    for index in range(config.n_encoder_layers):
        theirs, ours = f"layers.{index}", f"encoder.layers.{index}"
        packed = [f"{ours}.self_attention.W_{letter}" for letter in "QKV"]
        parts += linear(f"{theirs}.attn.Wqkv", *packed, bias=config.qkv_bias)
        parts += linear(f"{theirs}.attn.Wo", f"{ours}.self_attention.W_O", bias=config.out_bias)
        parts += linear(f"{theirs}.attn_norm", f"{ours}.self_norm", bias=False) if index else []
        both = (f"{ours}.feedforward.W_gate", f"{ours}.feedforward.W_in")
        parts += linear(f"{theirs}.mlp.Wi", *both, bias=config.bias)
        parts += linear(f"{theirs}.mlp.Wo", f"{ours}.feedforward.W_out", bias=config.bias)
        parts += linear(f"{theirs}.mlp_norm", f"{ours}.feedforward_norm", bias=False)
    if config.head == "transform":
        parts += linear("head.dense", "prediction.dense", bias=False)
        parts += linear("head.norm", "prediction.norm", bias=False)
        parts.append(Part("decoder.bias", ("prediction.logit_bias",)))
    return parts if config.tied_unembedding else [*parts, Part("decoder.weight", ("unembedding.weight",))]


def made(config: ModelConfig) -> Made:
    """The biases that norms and the head's layer do not have."""
    names = ["embedding_norm", "encoder.final_norm"]
    for index in range(config.n_encoder_layers):
        names += [f"encoder.layers.{index}.{kind}" for kind in ("self_norm", "feedforward_norm")[0 if index else 1 :]]
    if config.head == "transform":
        names += ["prediction.norm", "prediction.dense"]
    return zeros((f"{name}.bias" for name in names), config.d_model)


FAMILIES: tuple[Family, ...] = (
    Family(
        name="ModernBERT",
        types=("modernbert",),
        prefix="model.",
        head="head.",
        config=reading(config, biases),
        weights=weights,
        tokenizer=only_tokenizer_json,
        ties=tied_to("embeddings.tok_embeddings.weight", head="decoder"),
        made=made,
        unused={r"(head|classifier|decoder)\..*": N_("the head of another task")},
        usual=WORDPIECE_MARKS,
    ),
)

"""What LLaMA and its relatives have in common: the names of fields and tensors, and the way back to config.json."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from vizformer.checkpoints.hugging_face.family import Family, Options, said, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.gpt_like import head
from vizformer.checkpoints.hugging_face.rotary import all_are_turned, rope
from vizformer.checkpoints.hugging_face.sliding_window import window
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, attention, layers, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

ATTENTION = attention("self_attn.{}_proj", "q k v")
OUT = {"self_attn.o_proj": ["self_attention.W_O"]}
FEEDFORWARD = {
    "mlp.gate_proj": ["feedforward.W_gate"],
    "mlp.up_proj": ["feedforward.W_in"],
    "mlp.down_proj": ["feedforward.W_out"],
}
NORMS = {"input_layernorm": ["self_norm"], "post_attention_layernorm": ["feedforward_norm"]}
QK_NORMS = {"self_attn.q_norm": ["self_attention.q_norm"], "self_attn.k_norm": ["self_attention.k_norm"]}
UNUSED = {
    r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq": N_(
        "the angles of the rotary positions: they follow from rope_theta"
    ),
    r"(score|classifier|qa_outputs)\..*": N_("the head of another task"),
}


def decoder(
    fields: Fields,
    names: Collection[str],
    *,
    eps: str = "rms_norm_eps",
) -> tuple[Options, bool]:
    """The options that all of them have, and whether there is a head for tokens; a family adds what is its own.

    `eps` is the field of the norms' epsilon.
    """
    vocab_size, width, heads = (fields.size(n) for n in ("vocab_size", "hidden_size", "num_attention_heads"))
    head_dim = _head_dim(fields, width, heads)
    all_are_turned(fields)
    tied = fields.flag("tie_word_embeddings")
    n_layers, longest = fields.size("num_hidden_layers"), fields.size("max_position_embeddings")
    has_head = tied or "lm_head.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=width,
        n_heads=heads,
        head_dim=head_dim,
        n_kv_heads=None if (n := fields.size("num_key_value_heads", otherwise=heads)) == heads else n,
        d_ff=fields.size("intermediate_size"),
        n_decoder_layers=n_layers,
        max_positions=longest,
        positions="rope",
        **rope(fields),
        **window(fields, n_layers, longest),
        norm_order="pre",
        norm="rms_norm",
        final_norm=True,
        norm_eps=fields.number(eps),
        feedforward="gated",
        activation=fields.choice("hidden_act", ACTIVATIONS),
        tied_unembedding=tied or not has_head,
        dropout=0.0,
        **fields.marks(vocab_size),
    ), has_head


def biases(fields: Fields, options: Options) -> Options:
    """What attention_bias and mlp_bias say, of families that have both."""
    attention, bias = fields.flag("attention_bias"), fields.flag("mlp_bias")
    return {"bias": bias, "attention_bias": "same" if attention is bias else "all" if attention else "none"}


def attention_bias(ours: str, name: str = "attention_bias") -> Callable[[Fields, Options], Options]:
    """Reads a flag of families whose feed-forward networks have no biases: whether attention has those of `ours`."""
    return lambda fields, options: {"bias": False, "attention_bias": ours if fields.flag(name) else "none"}


def _head_dim(fields: Fields, width: int, heads: int) -> int | None:
    if fields.value("head_dim") is None:
        return None
    head_dim = fields.size("head_dim")
    return None if head_dim * heads == width else head_dim


def tensors(
    config: ModelConfig,
    template: Mapping[str, Sequence[str]] | None = None,
) -> list[Part]:
    """What becomes of every tensor; which biases and norms there are, the options say.

    `template` stands for the modules of a layer where they are others: their names -> ours.
    """
    if template is None:
        template = {**NORMS, **ATTENTION, **OUT, **FEEDFORWARD, **(QK_NORMS if config.qk_norm else {})}
    return [
        Part("embed_tokens.weight", ("embedding.weight",)),
        *layers(
            template,
            "layers.{}",
            "decoder.layers.{}",
            config.n_decoder_layers,
            no_bias=[theirs for theirs, ours in template.items() if not _has_bias(config, ours[0])],
        ),
        *linear("norm", "decoder.final_norm", bias=config.norm == "layer_norm"),
        *head(config),
    ]


def _has_bias(config: ModelConfig, ours: str) -> bool:
    if ours.endswith("norm"):
        return config.norm == "layer_norm"
    if ours.startswith("feedforward."):
        return config.bias
    if not ours.startswith("self_attention."):
        return False
    return config.out_bias if ours.endswith("W_O") else config.qkv_bias


LIKE = Family(
    name="",
    types=(),
    prefix="model.",
    head="lm_head.",
    config=decoder,
    weights=tensors,
    ties=tied_to("embed_tokens.weight"),
    unused=UNUSED,
)  # what the relatives replace


FITS: dict[str, Collection[Any]] = dict(
    architecture=["decoder-only"],
    positions=["rope"],
    rope_scaling=["none", "linear", "llama3"],
    norm_order=["pre"],
    norm=["rms_norm"],
    final_norm=[True],
    feedforward=["gated"],
)
FIELDS = {
    "vocab_size": "vocab_size",
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "num_hidden_layers": "n_decoder_layers",
    "num_attention_heads": "n_heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "d_head",
    "hidden_act": "activation",
    "max_position_embeddings": "max_positions",
    "rms_norm_eps": "norm_eps",
    "rope_theta": "rope_theta",
    "attention_bias": "qkv_bias",
    "mlp_bias": "bias",
    "tie_word_embeddings": "tied_unembedding",
    "bos_token_id": "bos_id",
    "eos_token_id": "eos_id",
    "pad_token_id": "pad_id",
}
_SCALING = ("rope_scaling", "rope_factor", "rope_low_turns", "rope_high_turns", "rope_trained_positions")
WRITTEN = (*FIELDS.values(), "n_kv_heads", "head_dim", *_SCALING)


def export(config: ModelConfig, has_head: bool) -> dict[str, Any]:
    """config.json, as both `transformers` 4 and 5 read it."""
    return {
        "architectures": ["LlamaForCausalLM" if has_head else "LlamaModel"],
        **said(FIELDS, config),
        "tie_word_embeddings": config.tied_unembedding and has_head,
        "rope_scaling": _scaling(config),
    }


def _scaling(config: ModelConfig) -> dict[str, Any] | None:
    if config.rope_scaling == "none":
        return None
    said: dict[str, Any] = {"rope_type": config.rope_scaling, "factor": config.rope_factor}
    if config.rope_scaling == "llama3":
        said |= {
            "low_freq_factor": config.rope_low_turns,
            "high_freq_factor": config.rope_high_turns,
            "original_max_position_embeddings": config.rope_trained_positions,
        }
    return said

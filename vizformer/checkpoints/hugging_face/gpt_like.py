"""What decoders in the manner of GPT-2 have in common, whatever their fields and tensors are called."""

from collections.abc import Collection

from vizformer.checkpoints.hugging_face.family import Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_

UNUSED = {
    r"(h|layers)\.\d+\.(attn|attention|self_attention)\.(attention\.)?(masked_)?bias": N_(
        "the causal mask: it follows from the positions"
    ),
    r"(score|classifier|multiple_choice_head|qa_outputs)\..*": N_("the head of another task"),
}
ONE_NORM = N_("attention and feed-forward read one norm: it stands twice in the model here")


def decoder(
    fields: Fields,
    names: Collection[str],
    width: str = "hidden_size",
    heads: str = "num_attention_heads",
    layers: str = "num_hidden_layers",
    longest: str | None = "max_position_embeddings",
    *,
    head: str = "lm_head",
) -> tuple[Options, bool]:
    """The options that all of them have, and whether there is a head for tokens; a family adds what is its own.

    The arguments are names of fields; `head` is that of the output layer's tensors.
    """
    vocab_size = fields.size("vocab_size")
    tied = fields.flag("tie_word_embeddings")
    has_head = tied or f"{head}.weight" in names or says_head(fields.architecture)
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size(width),
        n_heads=fields.size(heads),
        n_decoder_layers=fields.size(layers),
        **({} if longest is None else {"max_positions": fields.size(longest)}),
        norm_order="pre",
        final_norm=True,
        tied_unembedding=tied or not has_head,
        logit_bias=f"{head}.bias" in names,
        dropout=0.0,
        bos_id=fields.token("bos_token_id", vocab_size),
        eos_id=fields.token("eos_token_id", vocab_size),
        pad_id=fields.token("pad_token_id", vocab_size),
    ), has_head


def side_by_side(fields: Fields, names: Collection[str]) -> tuple[Options, bool]:
    """The options of GPT-J and what is built like it: parallel layers behind one norm, a part of each head turned."""
    options, has_head = decoder(fields, names, "n_embd", "n_head", "n_layer", "n_positions")
    d_head = max(1, options["d_model"] // options["n_heads"])
    fields.assume(ONE_NORM)
    turned = fields.size("rotary_dim")
    return {
        **options,
        "d_ff": fields.size("n_inner", 4 * options["d_model"]),
        "positions": "rope",
        "rope_dims": None if turned == d_head else turned,
        "residual": "parallel",
        "norm_eps": fields.number("layer_norm_epsilon"),
        "activation": fields.choice("activation_function", ACTIVATIONS),
        "attention_bias": "none",
    }, has_head


def head(config: ModelConfig, name: str = "lm_head") -> list[Part]:
    """The output layer, where it is not tied, and its bias, where it has one."""
    weight = [] if config.tied_unembedding else linear(name, "unembedding", bias=False)
    return [*weight, *([Part(f"{name}.bias", ("logit_bias",))] if config.logit_bias else [])]

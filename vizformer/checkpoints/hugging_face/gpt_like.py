"""What decoders in the manner of GPT-2 have in common, whatever their fields and tensors are called."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Options, says_head, tied_to
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.hugging_face.rotary import turning_neighbours
from vizformer.checkpoints.tensors.activations import ACTIVATIONS
from vizformer.checkpoints.tensors.tensor_map import Part, layers, linear
from vizformer.checkpoints.tokenizers.vocabularies import byte_level
from vizformer.config import ModelConfig
from vizformer.messages import N_

UNUSED = {
    r"(h|layers)\.\d+\.(attn|attention|self_attention)\.(attention\.)?(masked_)?bias": N_(
        "the causal mask: it follows from the positions"
    ),
    r"(score|classifier|multiple_choice_head|qa_outputs)\..*": N_("the head of another task"),
}
NEOX_FUSED = "attention.query_key_value"
NEOX_LAYER = {
    "input_layernorm": ["self_norm"],
    NEOX_FUSED: [f"self_attention.W_{letter}" for letter in "QKV"],
    "attention.dense": ["self_attention.W_O"],
    "post_attention_layernorm": ["feedforward_norm"],
    "mlp.dense_h_to_4h": ["feedforward.W_in"],
    "mlp.dense_4h_to_h": ["feedforward.W_out"],
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
        **fields.marks(vocab_size),
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


def tensors(
    config: ModelConfig,
    template: Mapping[str, Sequence[str]],
    table: str = "wte",
    positions: str = "",
    layer: str = "h.{}",
    final: str = "ln_f",
    *,
    output: str = "lm_head",
    skip: int = 0,
    fused: str = "",
    no_bias: Sequence[str] = (),
    transposed: Sequence[str] = (),
    neighbours: bool = False,
) -> list[Part]:
    """What becomes of every tensor.

    `table`, `positions`, `final` and `output` are what tables, last norm and output layer are called, `layer` is with what
    the names of the modules in `template` begin.  The rows of `fused` alternate head by head, where heads have keys of their
    own; `neighbours` says that rotary positions turn neighbouring numbers; the others are as in `Part` and `layers`.
    """
    heads = {fused: 0 if config.n_kv_heads == 1 else config.n_heads}
    name = "decoder.layers.{}"
    of_layers = layers(
        template, layer, name, config.n_decoder_layers, no_bias=no_bias, transposed=transposed, heads=heads
    )
    if neighbours:
        of_layers = turning_neighbours(of_layers, config, {"q_proj": config.n_heads, "k_proj": config.n_heads})
    return [
        Part(f"{table}.weight", ("embedding.weight",)),
        *([Part(f"{positions}.weight", ("position_embedding.weight",), skip=skip)] if positions else []),
        *(linear(f"{table}_layernorm", "embedding_norm") if config.embedding_norm else []),
        *of_layers,
        *(linear(final, "decoder.final_norm") if config.final_norm else []),
        *head(config, output),
    ]


# vocab.json and merges.txt, with one mark for beginning, end and what is unknown; and as GPT-NeoX reads them, with letters
# in their composed form (NFC).
byte_level_texts = partial(byte_level, usual=dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"))
_OF_NEOX = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|padding|>"}
composed_texts = partial(byte_level, usual=_OF_NEOX, composed=True)
LIKE = Family(
    name="",
    types=(),
    prefix="transformer.",
    head="lm_head.",
    config=decoder,
    weights=partial(tensors, template={}),
    ties=tied_to("wte.weight"),
    unused=UNUSED,
)  # what the relatives replace

"""What BART and Marian have in common: the names of fields and tensors, post-norm layers, a bias of the logits."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from vizformer.checkpoints.hugging_face.family import Family, Made, Options, says_head
from vizformer.checkpoints.hugging_face.fields import Fields
from vizformer.checkpoints.tensors.tensor_map import ACTIVATIONS, Part, attention, layers, linear
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message
from vizformer.model.positions import sinusoidal_encoding

BIAS = "final_logits_bias"
SELF: Mapping[str, Sequence[str]] = {
    **attention("self_attn.{}_proj", "q k v out"),
    "self_attn_layer_norm": ["self_norm"],
    "fc1": ["feedforward.W_in"],
    "fc2": ["feedforward.W_out"],
    "final_layer_norm": ["feedforward_norm"],
}
CROSS: Mapping[str, Sequence[str]] = {
    "encoder_attn.q_proj": ["cross_attention.W_Q"],
    "encoder_attn.k_proj": ["cross_attention.W_K"],
    "encoder_attn.v_proj": ["cross_attention.W_V"],
    "encoder_attn.out_proj": ["cross_attention.W_O"],
    "encoder_attn_layer_norm": ["cross_norm"],
}
UNUSED: Mapping[str, Message] = {
    r"(encoder|decoder)\.version": N_("a version number that the training program left"),
    r"decoder\.layers\.\d+\.encoder_attn(_layer_norm)?\..*": N_("cross-attention, although the model has no encoder"),
    r"(classification_head|qa_outputs)\..*": N_("the head of another task"),
}


def both_stacks(
    fields: Fields,
    names: Collection[str],
    *,
    own_vocabularies: bool = False,
    pre_norm: bool = False,
    alone: bool = False,
) -> tuple[Options, bool]:
    """The options that both have, and whether there is a head for tokens; a family adds what is its own.

    With `own_vocabularies` each stack has ids and a table of embeddings of its own (Marian); `pre_norm` is how its
    layers are (mBART), and `alone` whether there is only the decoder (BartForCausalLM).
    """
    fields.only("is_encoder_decoder", not alone)
    for name in ("normalize_before", "add_final_layer_norm"):  # in old files, always so
        fields.only(name, None, pre_norm)
    fields.only("add_bias_logits", None, False)
    vocab_size = fields.size("vocab_size")
    own: Options = {}
    if alone:
        fields.ignore("is_decoder")  # the class sets it
        own["tied_unembedding"] = fields.flag("tie_word_embeddings")
    elif own_vocabularies:
        own["source_vocab_size"] = vocab_size
        own["tied_unembedding"] = fields.flag("tie_word_embeddings") or "lm_head.weight" not in names
        vocab_size = fields.size("decoder_vocab_size", vocab_size)
    else:
        fields.only("tie_word_embeddings", True)  # otherwise each stack has embeddings of its own
    layers, heads, width = (fields.size(f"encoder_{name}") for name in ("layers", "attention_heads", "ffn_dim"))
    if alone:
        layers, heads, width = 0, fields.size("decoder_attention_heads"), fields.size("decoder_ffn_dim")
    fields.only("decoder_attention_heads", heads)  # one number serves both stacks here
    fields.only("decoder_ffn_dim", width)
    has_head = "lm_head.weight" in names or BIAS in names or says_head(fields.architecture)
    pad, eos = (fields.token(name, vocab_size) for name in ("pad_token_id", "eos_token_id"))
    return dict(
        vocab_size=vocab_size,
        d_model=fields.size("d_model"),
        n_heads=heads,
        d_ff=width,
        n_encoder_layers=layers,
        n_decoder_layers=fields.size("decoder_layers"),
        max_positions=fields.size("max_position_embeddings"),
        activation=fields.choice("activation_function", ACTIVATIONS),
        scaled_embedding=fields.flag("scale_embedding"),
        logit_bias=BIAS in names,
        pad_id=pad,
        eos_id=eos,
        norm_order="pre" if pre_norm else "post",
        final_norm=pre_norm,
        bos_id=fields.token("bos_token_id", vocab_size),
        forced_bos_id=None if alone else fields.token("forced_bos_token_id", vocab_size, generated=True),
        **own,
    ), has_head


def start(fields: Fields, vocab_size: int, usual: int | None, called: Message) -> int | None:
    """The start token of the decoder; `usual`, where no file gives one, is the token that is named `called`."""
    said = fields.token("decoder_start_token_id", vocab_size, generated=True)
    if said is not None:
        return said
    if usual is None:
        fields.refuse("decoder_start_token_id", "the start token of the decoder must be a token id")
    else:
        fields.assume(
            "no file gives the start token of the decoder (decoder_start_token_id): taken as {token}, {id}",
            token=called,
            id=usual,
        )
    return usual


def tensors(config: ModelConfig) -> list[Part]:
    """The mapping of the tensors that BART and Marian have in common."""
    cross = CROSS if config.n_encoder_layers else {}
    parts = [
        *_tables(config),
        *layers(SELF, "encoder.layers.{}", "encoder.layers.{}", config.n_encoder_layers),
        *layers({**SELF, **cross}, "decoder.layers.{}", "decoder.layers.{}", config.n_decoder_layers),
    ]
    return [*parts, Part(BIAS, ("logit_bias",), row=True)] if config.logit_bias else parts


def _tables(config: ModelConfig) -> list[Part]:
    """The mapping of the embeddings: one shared table, or one for each stack and an output layer unless it is tied."""
    if config.source_vocab_size is None and config.n_encoder_layers:
        return [Part("shared.weight", ("embedding.weight",))]
    return [
        *([Part("encoder.embed_tokens.weight", ("source_embedding.weight",))] if config.n_encoder_layers else []),
        Part("decoder.embed_tokens.weight", ("embedding.weight",)),
        *([] if config.tied_unembedding else [Part("lm_head.weight", ("unembedding.weight",))]),
    ]


def tensors_of_both(config: ModelConfig) -> list[Part]:
    """The mapping of `tensors`, with position tables, embedding norms and final norms of both stacks where they exist."""
    stacks = {"encoder": "", "decoder": "decoder_"}
    parts = tensors(config)
    if config.stack_inputs == "own":
        parts += [
            Part(f"{stack}.embed_positions.weight", (f"{own}position_embedding.weight",))
            for stack, own in stacks.items()
        ]
    for stack, own in stacks.items():
        parts += linear(f"{stack}.layernorm_embedding", f"{own}embedding_norm") if config.embedding_norm else []
        parts += linear(f"{stack}.layer_norm", f"{stack}.final_norm") if config.final_norm else []
    return parts


def waves(config: ModelConfig) -> Made:
    """Old files hold the waves of the positions, once for each stack."""
    make = partial(sinusoidal_encoding, config.max_positions, config.d_model, config.sinusoids)
    return dict.fromkeys((f"{stack}.embed_positions.weight" for stack in ("encoder", "decoder")), make)


def ties(config: ModelConfig) -> dict[str, str]:
    if config.source_vocab_size is not None or not config.n_encoder_layers:
        return {"lm_head.weight": "decoder.embed_tokens.weight"} if config.tied_unembedding else {}
    again = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    return dict.fromkeys(again, "shared.weight")


LIKE = Family(
    name="",
    types=(),
    prefix="model.",
    head="lm_head.",
    config=both_stacks,
    weights=tensors_of_both,
    ties=ties,
    unused=UNUSED,
)  # what the relatives replace

"""What the options of a model may be, each and together, and what is said where they are not."""

from typing import Literal, get_args, get_origin, get_type_hints

from vizformer.messages import N_, Message
from vizformer.options import Options
from vizformer.position_rules import are_layers, of_distances, of_positions, of_windows

_AT_LEAST_1 = (
    "vocab_size", "source_vocab_size", "d_model", "embedding_dim", "n_heads", "head_dim", "d_ff", "max_positions",
    "rope_trained_positions", "sliding_window", "n_experts", "experts_per_token", "d_expert", "d_shared_expert",
)  # fmt: skip
_NOT_NEGATIVE = ("n_encoder_layers", "n_decoder_layers", "n_segments")
_ABOVE_0 = (
    "rope_factor", "rope_low_turns", "attention_scale", "score_cap", "logit_cap", "logit_scale", "embedding_scale",
    "residual_scale",
)  # fmt: skip
_ABOVE_1 = ("rope_theta", "rope_local_theta")


def wrong_types(config: Options) -> list[Message]:
    """Every option whose value is of another type than the table says, or none of those to choose from."""
    problems = []
    for name, hint in get_type_hints(type(config)).items():
        value = getattr(config, name)
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                problems.append(
                    N_(
                        "{name}={value!r}: choose one of {options}",
                        name=name,
                        value=value,
                        options=", ".join(map(repr, get_args(hint))),
                    )
                )
            continue
        allowed = get_args(hint) or (hint,)
        if any(get_origin(kind) is tuple for kind in allowed):
            if not (value is None or (isinstance(value, tuple) and all(type(item) is int for item in value))):
                problems.append(N_("{name}={value!r}: must be a list of int or nothing", name=name, value=value))
            continue
        legal = type(value) in allowed or (float in allowed and type(value) is int)
        if not legal:
            names = " or ".join("nothing" if t is type(None) else t.__name__ for t in allowed)
            problems.append(N_("{name}={value!r}: must be {names}", name=name, value=value, names=names))
    return problems


def broken_rules(c: Options) -> list[Message]:
    """Every rule that the options break: the value, the rule, the way out."""
    return [
        *_of_stacks(c),
        *_of_norms(c),
        *of_positions(c),
        *of_windows(c),
        *of_distances(c),
        *_of_experts(c),
        *_of_tables(c),
        *_of_ids(c),
        *_of_each(c),
    ]


def _of_stacks(c: Options) -> list[Message]:
    """What the stacks, the heads and their scores break."""
    problems = []
    if c.n_encoder_layers == c.n_decoder_layers == 0:
        problems.append(N_("both stacks have 0 layers: give n_encoder_layers, n_decoder_layers or both"))
    if c.n_heads >= 1 and c.head_dim is None and c.d_model % c.n_heads:
        divisors = ", ".join(str(h) for h in range(1, min(c.d_model, 64) + 1) if c.d_model % h == 0)
        problems.append(
            N_(
                "d_model={d_model} is not divisible by n_heads={n_heads}: choose n_heads from {divisors}",
                d_model=c.d_model,
                n_heads=c.n_heads,
                divisors=divisors,
            )
        )
    if c.n_kv_heads is not None and (c.n_kv_heads < 1 or c.n_heads % c.n_kv_heads):
        divisors = ", ".join(str(h) for h in range(1, min(c.n_heads, 64) + 1) if c.n_heads % h == 0)
        problems.append(
            N_(
                "n_heads={n_heads} is not a multiple of n_kv_heads={n_kv_heads}: choose n_kv_heads from {divisors}",
                n_heads=c.n_heads,
                n_kv_heads=c.n_kv_heads,
                divisors=divisors,
            )
        )
    if c.score_cap is not None and (c.positions in ("alibi", "relative") or c.architecture == "encoder-decoder"):
        problems.append(
            N_(
                "score_cap={value}: only one stack alone has it, and none whose positions are told to the scores; leave "
                "it out",
                value=c.score_cap,
            )
        )
    return problems


def _of_norms(c: Options) -> list[Message]:
    """What the options of norms, and of where they stand, break."""
    problems = []
    if c.norm_offset and c.norm != "rms_norm":
        problems.append(
            N_("norm_offset=True: this is an option of norm='rms_norm', with {norm!r} leave it out", norm=c.norm)
        )
    if c.qk_norm_over == "all" and not c.qk_norm:
        problems.append(N_("qk_norm_over='all' without qk_norm: give both, or leave it out"))
    if c.norm == "deviation_norm" and 1 in (c.d_model, c.d_head if c.qk_norm and c.n_heads >= 1 else 0):
        problems.append(N_("norm='deviation_norm': one number has no deviation, make the rows wider"))
    if c.residual == "parallel" and (c.norm_order != "pre" or c.architecture == "encoder-decoder"):
        problems.append(
            N_(
                "residual='parallel': attention and feed-forward read the same input, which needs norm_order='pre' and "
                "a model without cross-attention; otherwise take 'sequential'"
            )
        )
    if not c.first_norm and (
        c.norm_order != "pre" or not c.embedding_norm or c.residual == "parallel" or c.architecture == "encoder-decoder"
    ):
        problems.append(
            N_(
                "first_norm=False: only one stack alone with norm_order='pre', embedding_norm=True and "
                "residual='sequential' can do without it; take True"
            )
        )
    if not c.last_norm and (c.norm_order != "post" or c.final_norm):
        problems.append(N_("last_norm=False: this is an option of norm_order='post' without final_norm; take True"))
    return problems


def _of_tables(c: Options) -> list[Message]:
    """What the options of the embedding and of the logits break."""
    problems = []
    if c.source_vocab_size is not None and c.architecture != "encoder-decoder":
        problems.append(
            N_(
                "source_vocab_size={value}: there is one stack only, which reads vocab_size ids; leave it out",
                value=c.source_vocab_size,
            )
        )
    summed = c.embedding_projection != "tokens"
    if c.embedding_dim is not None and (
        c.architecture == "encoder-decoder" or (summed and (not c.embedding_norm or c.positions == "sinusoidal"))
    ):
        problems.append(
            N_(
                "embedding_dim={value}: only one stack alone has it, with embedding_norm=True and without waves unless "
                "embedding_projection='tokens'; leave it out",
                value=c.embedding_dim,
            )
        )
    if c.embedding_dim is not None and c.head == "linear" and c.tied_unembedding:
        problems.append(
            N_(
                "embedding_dim={value}: the last row is not as wide as the rows of the table, take head='transform', "
                "head='projection' or tied_unembedding=False",
                value=c.embedding_dim,
            )
        )
    if c.embedding_dim is None:
        problems += [
            N_("{name}={value!r} without embedding_dim: give both, or leave it out", name=name, value=value)
            for name, value in (
                ("embedding_projection", "sum"),
                ("embedding_projection", "tokens"),
                ("head", "projection"),
            )
            if getattr(c, name) == value
        ]
    if c.stack_inputs == "own" and c.architecture != "encoder-decoder":
        problems.append(N_("stack_inputs='own': there is one stack only, take 'shared'"))
    if c.decoder_positions_after_norm and (c.stack_inputs != "own" or not c.embedding_norm or c.positions != "learned"):
        problems.append(
            N_(
                "decoder_positions_after_norm=True: this is an option of positions='learned', stack_inputs='own' and "
                "embedding_norm=True, leave it out"
            )
        )
    if c.logit_bias and c.head == "transform":
        problems.append(N_("logit_bias=True: head='transform' has one of its own, leave it out"))
    return problems


def _of_ids(c: Options) -> list[Message]:
    """What the ids of the marks break."""
    problems = []
    if c.never_pad and c.pad_id is None:
        problems.append(N_("never_pad=True: there is no padding to leave out, give pad_id"))
    for name in ("pad_id", "bos_id", "eos_id", "mask_id", "decoder_start_id", "forced_bos_id"):
        value = getattr(c, name)
        if value is not None and not 0 <= value < c.vocab_size:
            problems.append(
                N_("{name}={value}: must be a token id, 0 to {last}", name=name, value=value, last=c.vocab_size - 1)
            )
    return problems


def _of_experts(c: Options) -> list[Message]:
    """What the options of a mixture of experts break."""
    if c.n_experts is None:
        return [
            N_("{name} without n_experts: give both, or leave it out", name=name)
            for name in ("d_expert", "d_shared_expert", "expert_layers")
            if getattr(c, name) is not None
        ]
    problems = []
    if c.experts_per_token > c.n_experts:
        problems.append(
            N_(
                "experts_per_token={value}: must not be above n_experts={n_experts}",
                value=c.experts_per_token,
                n_experts=c.n_experts,
            )
        )
    if c.expert_layers is not None:
        if c.architecture == "encoder-decoder":
            problems.append(N_("expert_layers: only one stack alone has such layers, leave it out"))
        elif not are_layers(list(c.expert_layers), c.n_encoder_layers + c.n_decoder_layers):
            problems.append(
                N_(
                    "expert_layers={value}: must be numbers of layers in order, from 0 to {last}; leave it out where all "
                    "have experts, and n_experts where none has",
                    value=str(list(c.expert_layers)),
                    last=c.n_encoder_layers + c.n_decoder_layers - 1,
                )
            )
    return problems


def _of_each(c: Options) -> list[Message]:
    """What each number breaks by itself, where there is one."""

    def values(names: tuple[str, ...]) -> list[tuple[str, float]]:
        return [(name, value) for name in names if (value := getattr(c, name)) is not None]

    problems = [
        *(N_("{name}={value}: must be at least 1", name=n, value=v) for n, v in values(_AT_LEAST_1) if v < 1),
        *(N_("{name}={value}: must not be negative", name=n, value=v) for n, v in values(_NOT_NEGATIVE) if v < 0),
        *(
            N_("{name}={value}: must be above 0", name=n, value=v)
            for n, v in values(_ABOVE_0)
            if not 0 < v < float("inf")
        ),
        *(
            N_("{name}={value}: must be above 1", name=n, value=v)
            for n, v in values(_ABOVE_1)
            if not 1 < v < float("inf")
        ),
    ]
    if not 0 <= c.dropout < 1:
        problems.append(N_("dropout={value}: must be at least 0 and below 1", value=c.dropout))
    if not 0 < c.norm_eps < 1:
        problems.append(N_("norm_eps={value}: must be above 0 and below 1", value=c.norm_eps))
    return problems

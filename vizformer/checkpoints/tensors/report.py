"""How a checkpoint was read: what it is, what became of every tensor, and what had to be assumed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from vizformer.checkpoints.tensors.questions import Question, Value
from vizformer.checkpoints.tensors.role_mapping import RoleMapping
from vizformer.config import ModelConfig
from vizformer.messages import N_, Message, ranges

Fate = Literal["used", "tied", "unused", "missing", "wrong shape"]
Format = Literal["vizformer", "hugging-face", "state-dict", "gguf"]

_WRITTEN: dict[Format, str] = {
    "vizformer": "VizFormer's own format",
    "hugging-face": "Hugging Face layout",
    "state-dict": "bare weights",
    "gguf": "GGUF",
}
UNDER_ASSUMPTIONS = N_(
    "The weights alone do not say how the model is built: what is shown of it is consistent under these assumptions."
)
_COMPONENTS = (
    ("embedding.", "token embedding"),
    ("source_embedding.", "token embedding"),
    ("position_embedding.", "position embedding"),
    ("decoder_position_embedding.", "position embedding"),
    ("relative_bias.", "position bias"),
    ("distances.", "vectors of distances"),
    ("_attention.relative.", "vectors of distances"),
    ("segment_embedding.", "segment embedding"),
    ("embedding_projection.", "token embedding"),
    ("prediction.", "head"),
    ("unembedding_projection.", "unembedding"),
    ("logit_bias", "unembedding"),
    ("unembedding.", "unembedding"),
    ("norm.", "norms"),
    ("_attention.", "attention"),
    ("feedforward.", "feed-forward"),
)
_ANYWHERE = ("norm.", "feedforward.", "relative_bias.", "distances.")  # in a name, not only where it begins


@dataclass(frozen=True)
class TensorFate:
    """One tensor of the file, or one that the model needs and the file lacks.

    Attributes:
        name: as in the file.
        file: which one; empty where it is missing.
        shape, dtype: as stored (as needed, where it is missing).
        fate: "used"; "tied": repeats a tensor that is used; "unused"; "missing"; "wrong shape".
        becomes: our parameters, where it is used.
        note: why it is not used, or what is wrong.
        reordered: its rows are brought into another order, so that it is copied whatever its dtype.
    """

    name: str
    file: str
    shape: tuple[int, ...]
    dtype: str
    fate: Fate
    becomes: tuple[str, ...] = ()
    note: Message | None = None
    reordered: bool = False


@dataclass(frozen=True)
class Report:
    """What was found in a folder.

    Attributes:
        name: of the folder.
        format: who wrote it; "state-dict" is bare weights, whose assumptions decide what the model is.
        family: "GPT-2", ...; "VizFormer" for our own format.
        declared: the class that config.json names, e.g. "GPT2LMHeadModel"; may be empty.
        config: the options of our model.
        has_head: whether the weights predict tokens; if not, the logits are computed with the embedding table and
            mean nothing.
        files: bytes of every file of weights.
        tensors: the fate of every tensor.
        parameters: how many numbers our model has, by component; shared ones count once.
        assumptions: what the files do not say, and how it was taken.
        problems: what keeps the model from opening; empty if it opens.
        questions, answers: of bare weights, what they do not say and how it was taken.
        mapping: which tensor plays which role, where somebody said so by hand.
    """

    name: str
    format: Format
    family: str
    declared: str
    config: ModelConfig
    has_head: bool
    files: Mapping[str, int]
    tensors: tuple[TensorFate, ...]
    parameters: Mapping[str, int]
    assumptions: tuple[Message, ...] = ()
    problems: tuple[Message, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: Mapping[str, Value] = field(default_factory=dict)
    mapping: RoleMapping | None = None

    @property
    def n_parameters(self) -> int:
        return sum(self.parameters.values())

    @property
    def n_bytes(self) -> int:
        return sum(self.files.values())

    @property
    def dtypes(self) -> dict[str, int]:
        """How many tensors of the file are stored in each dtype, the most frequent first."""
        return dict(Counter(t.dtype for t in self.tensors if t.fate != "missing").most_common())

    def with_fate(self, fate: Fate) -> tuple[TensorFate, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.fate == fate)


def parameters_by_component(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, int]:
    """Numbers per component, from the names and shapes of our parameters."""
    counts: Counter[str] = Counter()
    for name, shape in shapes:
        size = 1
        for length in shape:
            size *= length
        counts[next((label for part, label in _COMPONENTS if _is_in(part, name)), "other")] += size
    return {label: counts[label] for __, label in _COMPONENTS if label in counts} | (
        {"other": counts["other"]} if counts["other"] else {}
    )


def _is_in(part: str, name: str) -> bool:
    return part in name if part[0] == "_" or part in _ANYWHERE else name.startswith(part)


def details(config: ModelConfig) -> list[Message]:
    """What a model has that most of its kind have not."""
    found: list[tuple[bool, Message]] = [
        (
            config.attention_bias != "same" and config.qkv_bias and not config.out_bias,
            N_("attention: queries, keys and values have biases, the output has none"),
        ),
        (
            config.qkv_bias and config.out_bias and not config.bias,
            N_("attention has biases, the feed-forward layers have none"),
        ),
        (config.bias and not config.qkv_bias, N_("the feed-forward layers have biases, attention has none")),
        (
            config.sliding_window is not None and config.architecture == "encoder-only",
            N_(
                "sliding window (layers: {layers}): a query sees only the tokens up to {reach} places away, on both sides",
                layers=ranges(sorted(config.windowed_layers)),
                reach=f"{(config.sliding_window or 1) - 1:,}",
            ),
        ),
        (not config.first_norm, N_("the attention of the first layer has no norm before it")),
        (
            config.sliding_window is not None and len(config.windowed_layers) == config.n_decoder_layers,
            N_(
                "sliding window: a query sees only the latest {window} tokens, itself included",
                window=f"{config.sliding_window or 0:,}",
            ),
        ),
        (
            0 < len(config.windowed_layers) < config.n_decoder_layers,
            N_(
                "sliding window (layers: {layers}): a query sees only the latest {window} tokens, itself included; in the "
                "other layers all before it",
                layers=ranges(sorted(config.windowed_layers)),
                window=f"{config.sliding_window or 0:,}",
            ),
        ),
        (config.qk_norm and config.qk_norm_over == "head", N_("queries and keys are normalised")),
        (config.qk_norm and config.qk_norm_over == "all", N_("queries and keys are normalised, all heads together")),
        (
            config.n_experts is not None,
            N_(
                "mixture of experts (layers: {layers}): each token goes through {k} of {n} feed-forward networks of width "
                "{width}",
                layers=ranges(
                    range(config.n_encoder_layers + config.n_decoder_layers)
                    if config.expert_layers is None
                    else config.expert_layers
                ),
                k=config.experts_per_token,
                n=config.n_experts or 0,
                width=f"{config.expert_width:,}",
            ),
        ),
        (
            config.d_shared_expert is not None,
            N_("all tokens go through a shared expert of width {width}", width=f"{config.d_shared_expert or 0:,}"),
        ),
        (
            config.n_experts is not None and config.expert_weights == "probabilities",
            N_("the weights of the chosen experts are not brought to the sum 1"),
        ),
        (
            config.idle_parameters > 0,
            N_("{n} parameters belong to experts that a token does not go through", n=f"{config.idle_parameters:,}"),
        ),
        (config.norm_offset, N_("norms scale by 1 + weight")),
        (config.residual == "parallel", N_("attention and feed-forward read the same input, side by side")),
        (config.scaled_embedding, N_("embeddings are multiplied by √d_model")),
        (config.embedding_scale != 1, N_("embeddings are multiplied by {scale}", scale=f"{config.embedding_scale:g}")),
        (
            config.residual_scale != 1,
            N_("what a sublayer has found is multiplied by {scale}", scale=f"{config.residual_scale:g}"),
        ),
        (
            config.rope_dims is not None,
            N_("the first {n} of a head's {d_head} numbers are turned", n=config.rope_dims, d_head=config.d_head),
        ),
        (
            config.rope_layers is not None,
            N_("only these layers know positions (layers: {layers})", layers=ranges(config.rope_layers or ())),
        ),
        (
            config.rope_local_layers is not None,
            N_(
                "rotary positions turn by another base, θ = {theta} (layers: {layers})",
                theta=f"{config.rope_local_theta or 0:,g}",
                layers=ranges(config.rope_local_layers or ()),
            ),
        ),
        (
            config.positions == "rope" and config.rope_scaling != "none",
            N_(
                "rotary positions slowed down for longer texts ({kind}, factor {factor})",
                kind=config.rope_scaling,
                factor=f"{config.rope_factor:g}",
            ),
        ),
        (
            config.positions == "sinusoidal" and config.sinusoids == "halves",
            N_("all sines of the positions before all cosines"),
        ),
        (
            config.decoder_positions_after_norm,
            N_("the decoder's positions are added after the norm of its embeddings"),
        ),
        (config.stack_inputs == "own", N_("encoder and decoder have a position table and an embedding norm each")),
        (
            config.disentangled_furthest is not None,
            N_(
                "far distances share vectors: {n} to either side, up to {furthest} tokens away",
                n=config.disentangled_span,
                furthest=config.disentangled_furthest or 0,
            ),
        ),
        (config.disentangled_norm, N_("the vectors of distances go through a norm")),
        (config.disentangled_shared, N_("the matrices of queries and keys serve the vectors of distances too")),
        (
            config.attention_scale is not None,
            N_("scores are dot products times {scale}, not over √d_head", scale=f"{config.attention_scale or 0:g}"),
        ),
        (
            config.embedding_projection == "tokens",
            N_(
                "rows of the table of token embeddings have {n} numbers; a matrix brings them to the width of the layers "
                "before positions are added",
                n=config.embedding_dim or 0,
            ),
        ),
        (
            config.head == "projection",
            N_("a matrix brings the last row to {n} numbers before the unembedding", n=config.embedding_dim or 0),
        ),
        (
            config.embedding_dim is not None and config.embedding_projection != "tokens",
            N_(
                "rows of the tables of embeddings have {n} numbers; a dense layer brings them to the width of the layers",
                n=config.embedding_dim or 0,
            ),
        ),
        (config.embedding_projection == "sum", N_("the norm of the embeddings comes after that layer")),
        (
            config.logit_scale != 1,
            N_("the last row is multiplied by {scale} before the unembedding", scale=f"{config.logit_scale:.4g}"),
        ),
        (
            config.score_cap is not None,
            N_("scores are bent by a soft cap, {cap} · tanh(score / {cap})", cap=f"{config.score_cap or 0:g}"),
        ),
        (
            config.logit_cap is not None,
            N_("logits are bent by a soft cap, {cap} · tanh(logit / {cap})", cap=f"{config.logit_cap or 0:g}"),
        ),
        (config.logit_bias, N_("logits have a bias for every token")),
        (config.never_pad, N_("the padding is never generated")),
    ]
    return [message for holds, message in found if holds]


def describe(report: Report, translate: Callable[[Message], str] = str, *, every_tensor: bool = False) -> str:
    """The report in plain words, for a terminal."""
    config = report.config
    written = _WRITTEN[report.format]
    declared = f", written as {report.declared}" if report.declared else ""
    article = "an" if report.family.startswith(tuple("AEIO")) else "a"
    lines = [
        f"{report.name}: {article} {report.family} model ({config.architecture}{declared}; {written})",
        "",
        *_table(
            [
                ("layers", str(config.n_encoder_layers + config.n_decoder_layers)),
                (
                    "width",
                    f"{config.d_model:,} (feed-forward {_inner_width(config)}, {config.feedforward}, {config.activation})",
                ),
                (
                    "heads",
                    f"{config.n_heads} of width {config.d_head}"
                    + (f"; {config.kv_heads} key/value heads" if config.kv_heads != config.n_heads else ""),
                ),
                ("norms", f"{config.norm_order}-{config.norm}, eps {config.norm_eps:g}"),
                ("positions", f"{_positions(config)}, up to {config.max_positions:,} tokens"),
                (
                    "vocabulary",
                    f"{config.vocab_size:,} tokens"
                    if config.source_vocab_size is None
                    else f"{config.source_vocab_size:,} tokens in the source, {config.vocab_size:,} in the target",
                ),
                *(("also", translate(message)) for message in details(config)),
                (
                    "head",
                    "yes" if report.has_head else "none: its logits mean nothing, look at attention and the stream",
                ),
                ("stored as", ", ".join(f"{dtype} ({n})" for dtype, n in report.dtypes.items())),
                ("files", ", ".join(f"{name} ({size:,} bytes)" for name, size in report.files.items())),
            ]
        ),
        "",
        f"Parameters: {report.n_parameters:,}",
        *_table([(label, f"{n:,}") for label, n in report.parameters.items()]),
        "",
        "Tensors: " + ", ".join(f"{n} {fate}" for fate, n in Counter(t.fate for t in report.tensors).items()),
        *(_tensor_line(t, translate) for t in report.tensors if every_tensor or t.fate != "used"),
    ]
    for title, messages in (("Assumed", report.assumptions), ("Problems: it does not open", report.problems)):
        if messages:
            lines += ["", f"{title}:", *(f"  - {translate(message)}" for message in messages)]
    if report.format == "state-dict":
        lines += ["", translate(UNDER_ASSUMPTIONS)]
    return "\n".join(lines)


def _positions(config: ModelConfig) -> str:
    """What tells the model of places."""
    if config.disentangled == "none":
        return config.positions
    terms = "c2p and p2c" if config.disentangled == "both" else config.disentangled
    told = f"{terms} terms of the scores"
    return told if config.positions == "none" else f"{config.positions}, and {told}"


def _inner_width(config: ModelConfig) -> str:
    if config.n_experts is None:
        return f"{config.d_ff:,}"
    return f"{config.n_experts} experts of {config.expert_width:,}"


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(label) for label, __ in rows), default=0)
    return [f"  {label:<{width}}  {value}" for label, value in rows]


def _tensor_line(tensor: TensorFate, translate: Callable[[Message], str]) -> str:
    shape = " x ".join(map(str, tensor.shape)) or "one number"
    became = f" -> {', '.join(tensor.becomes)}" if tensor.becomes else ""
    note = f" ({translate(tensor.note)})" if tensor.note else ""
    dtype = f" {tensor.dtype}" if tensor.dtype else ""
    name = tensor.name if tensor.name.isprintable() else ascii(tensor.name)
    return f"  {tensor.fate}: {name} [{shape}]{dtype}{became}{note}"

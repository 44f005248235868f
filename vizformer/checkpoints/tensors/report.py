"""How a checkpoint was read: what it is, what became of every tensor, and what had to be assumed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from vizformer.checkpoints.tensors.questions import Question, Taken, Value
from vizformer.config import ModelConfig, ModelShape
from vizformer.messages import N_, Message
from vizformer.text.pieces import called

Fate = Literal["used", "tied", "unused", "missing", "wrong shape"]
Format = Literal["vizformer", "hugging-face", "transformers", "state-dict"]

_WRITTEN: dict[Format, str] = {
    "vizformer": "VizFormer's own format",
    "hugging-face": "Hugging Face layout",
    "transformers": "Hugging Face layout, computed by transformers",
    "state-dict": "bare weights",
}
UNDER_ASSUMPTIONS = N_(
    "The weights alone do not say how the model is built: what is shown of it is consistent under these assumptions."
)
NO_HEAD = N_(
    "the file has no output layer that predicts tokens: logits are computed with the embedding table and mean nothing"
)
_COMPONENTS = (
    ("embedding.", "token embedding"),
    ("source_embedding.", "token embedding"),
    ("position_embedding.", "position embedding"),
    ("decoder_position_embedding.", "position embedding"),
    ("relative_bias.", "position bias"),
    ("segment_embedding.", "segment embedding"),
    ("prediction.", "head"),
    ("logit_bias", "unembedding"),
    ("unembedding.", "unembedding"),
    ("norm.", "norms"),
    ("_attention.", "attention"),
    ("feedforward.", "feed-forward"),
)
_ANYWHERE = ("norm.", "feedforward.", "relative_bias.")  # in a name, not only where it begins


@dataclass(frozen=True)
class TensorFate:
    """One tensor of the file, or one that the model needs and the file lacks.

    Attributes:
        file: which one; empty where it is missing.
        shape, dtype: as stored (as needed, where it is missing).
        fate: "used"; "tied": repeats a tensor that is used; "unused"; "missing"; "wrong shape".
        becomes: our parameters, where it is used.
        note: why it is not used, or what is wrong.
        reordered: its rows are brought into another order, or it is put together, so that it is copied whatever its dtype.
    """

    name: str
    file: str
    shape: tuple[int, ...]
    dtype: str
    fate: Fate
    becomes: tuple[str, ...] = ()
    note: Message | None = None
    reordered: bool = False


@dataclass(frozen=True, repr=False)
class Report:
    """The report on the model in a folder.

    Attributes:
        format: who wrote it; "transformers": its own code computes it, and is recorded; "state-dict" is bare weights, whose
            assumptions decide what the model is.
        family: "GPT-2", ...; "VizFormer" for our own format.
        declared: the class that config.json names, e.g. "GPT2LMHeadModel"; may be empty.
        config: the options of our Transformer; None of a model that its own code computes.
        has_head: whether the weights predict tokens; if not, the logits are computed with the embedding table and
            mean nothing.
        files: bytes of every file of weights.
        parameters: how many numbers our model has, by component; shared ones count once.
        assumptions: what the files do not say, and how it was taken.
        problems: what keeps the model from opening; empty if it opens.
        questions, answers: of bare weights, what they do not say and how it was taken.
        taken: whose each of the answers is.
        scripts: which share of the tokens is in which script (`text.pieces.scripts_of`), where it was looked for.
        recorded_shape: of a model that its own code computes: as config.json says it or, once it is open, as it is.
        buffers: bytes of its tables beside the parameters.
    """

    name: str
    format: Format
    family: str
    declared: str
    config: ModelConfig | None
    has_head: bool
    files: Mapping[str, int]
    tensors: tuple[TensorFate, ...]
    parameters: Mapping[str, int]
    assumptions: tuple[Message, ...] = ()
    problems: tuple[Message, ...] = ()
    questions: tuple[Question, ...] = ()
    answers: Mapping[str, Value] = field(default_factory=dict)
    taken: Mapping[str, Taken] = field(default_factory=dict)
    scripts: Mapping[str, float] = field(default_factory=dict)
    recorded_shape: ModelShape | None = None
    buffers: int = 0

    @property
    def shape(self) -> ModelShape:
        """The sizes of the model, and its marks."""
        found = self.recorded_shape if self.config is None else self.config.shape
        assert found is not None
        return found

    @property
    def open_questions(self) -> tuple[Question, ...]:
        """What nobody answered: the usual answer was taken, and the weights fit the others as well."""
        return tuple(question for question in self.questions if self.taken.get(question.name) == "usual")

    @property
    def assumed(self) -> dict[str, Value]:
        """The answers that the files do not decide, and on which numbers hang: counts and marks are none."""
        assumed = [q for q in self.questions if len(q.possible) > 1 and self.taken.get(q.name) in ("given", "usual")]
        meant = (q.stands_for for q in assumed if self.answers[q.name] == q.usual)
        found = {q.name: self.answers[q.name] for q in assumed}
        return found | {name: value for one in meant for name, value in one.items() if name not in self.answers}

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

    @property
    def main_scripts(self) -> list[str]:
        """The scripts of at least a hundredth of the tokens, three at most, as "Latin 94%"."""
        return [f"{called(name)} {share:.0%}" for name, share in self.scripts.items() if share >= 0.01][:3]

    def __repr__(self) -> str:
        """One line: what it is, its tensors by their fate, and what is assumed or wrong; `describe` says the rest."""
        assumed = (
            f"; assumes {', '.join(f'{name} = {value}' for name, value in self.assumed.items())}"
            if self.assumed
            else ""
        )
        problems = f"; problems: {len(self.problems)}" if self.problems else ""
        return (
            f"<{type(self).__name__} {self.name}: {self.family}, {self.shape.architecture}, {_WRITTEN[self.format]}, "
            f"{self.n_parameters:,} parameters; tensors: {_fates(self)}{assumed}{problems}>"
        )

    def with_fate(self, fate: Fate) -> tuple[TensorFate, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.fate == fate)


def parameters_by_component(shapes: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, int]:
    """Numbers per component, from the names and shapes of our parameters."""
    counts: Counter[str] = Counter()
    for name, shape in shapes:
        counts[next((label for part, label in _COMPONENTS if _is_in(part, name)), "other")] += prod(shape)
    return {label: counts[label] for __, label in _COMPONENTS if label in counts} | (
        {"other": counts["other"]} if counts["other"] else {}
    )


def _is_in(part: str, name: str) -> bool:
    return part in name if part[0] == "_" or part in _ANYWHERE else name.startswith(part)


def describe(report: Report, translate: Callable[[Message], str] = str, *, every_tensor: bool = False) -> str:
    """The report in plain words, for a terminal."""
    shape = report.shape
    written = _WRITTEN[report.format]
    declared = f", written as {report.declared}" if report.declared else ""
    article = "an" if report.family.startswith(tuple("AEIO")) else "a"
    lines = [
        f"{report.name}: {article} {report.family} model ({shape.architecture}{declared}; {written})",
        "",
        *_table(
            [
                ("layers", str(shape.depth)),
                *_sizes(report, translate),
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
        f"Tensors: {_fates(report)}",
        *(_tensor_line(t, translate) for t in report.tensors if every_tensor or t.fate != "used"),
    ]
    for title, messages in (("Assumed", report.assumptions), ("Problems: it does not open", report.problems)):
        if messages:
            lines += ["", f"{title}:", *(f"  - {translate(message)}" for message in messages)]
    if report.format == "state-dict":
        lines += ["", translate(UNDER_ASSUMPTIONS)]
    return "\n".join(lines)


def _sizes(report: Report, translate: Callable[[Message], str]) -> list[tuple[str, str]]:
    config, shape = report.config, report.shape
    scripts = [("scripts", ", ".join(report.main_scripts))] if report.scripts else []
    if config is None:
        return [
            ("width", f"{shape.d_model:,}"),
            ("heads", f"{shape.n_heads} of width {shape.d_head}"),
            ("positions", f"up to {shape.max_positions:,} tokens"),
            ("vocabulary", f"{shape.vocab_size:,} tokens"),
            *scripts,
        ]
    return [
        (
            "width",
            f"{config.d_model:,} (feed-forward {config.d_ff:,}, {config.feedforward}, {config.activation})",
        ),
        (
            "heads",
            f"{config.n_heads} of width {config.d_head}"
            + (f"; {config.kv_heads} key/value heads" if config.kv_heads != config.n_heads else ""),
        ),
        ("norms", f"{config.norm_order}-{config.norm}, eps {config.norm_eps:g}" if config.has_norms else "none"),
        ("positions", f"{_positions(config)}, up to {config.max_positions:,} tokens"),
        (
            "vocabulary",
            f"{config.vocab_size:,} tokens"
            if config.source_vocab_size is None
            else f"{config.source_vocab_size:,} tokens in the source, {config.vocab_size:,} in the target",
        ),
        *scripts,
        *(("also", translate(message)) for message in config.details()),
    ]


def _fates(report: Report) -> str:
    return ", ".join(f"{n} {fate}" for fate, n in Counter(tensor.fate for tensor in report.tensors).items())


def _positions(config: ModelConfig) -> str:
    """The positional encoding of the model in words."""
    if config.relative_bias:
        return f"{config.positions}, and relative biases of the scores"
    return config.positions


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

"""A model's report in the reader's words: facts, parts and tensors, ready to be drawn."""

from collections.abc import Iterable
from html import escape

from vizformer.checkpoints import Question, Report, UnansweredError
from vizformer.checkpoints.bare.layouts import NAMES
from vizformer.checkpoints.files.untrusted_folder import listed
from vizformer.checkpoints.hugging_face import families as families_that_open
from vizformer.checkpoints.tensors.memory import size
from vizformer.checkpoints.tensors.report import UNDER_ASSUMPTIONS
from vizformer.config import ModelShape
from vizformer.messages import Message, messages_of
from vizformer.options import ACTIVATION_NAMES, NORM_PLACES
from vizformer.web.words import labels
from vizformer.web.words.i18n import _, translate
from vizformer.web.words.model_words import ARCHITECTURES
from vizformer.word_tables import words_of

_WORDS = words_of(__file__)
COMPONENTS = messages_of(_WORDS["components"])
FATES = messages_of(_WORDS["fates"])
_WRITTEN = messages_of(_WORDS["written"])
_NORMS = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm"}
_CHOICES = {name: messages_of(texts) for name, texts in _WORDS["choices"].items()}
_CHOICES["norm_order"] = dict(NORM_PLACES)
_CHOICES["positions"] |= labels.POSITIONS
_ACTIVATIONS = {**ACTIVATION_NAMES, "gelu_tanh": "GELU (tanh)"}


def facts(report: Report) -> list[tuple[str, str]]:
    written = translate(_WRITTEN[report.format])
    found = [
        (_("Family"), report.family),
        (_("Architecture"), translate(ARCHITECTURES[report.shape.architecture])),
        (_("Files"), f"{written} · " + ", ".join(f"{name} ({size(n)})" for name, n in report.files.items())),
        (_("Stored as"), ", ".join(f"{dtype} (× {n:,})" for dtype, n in report.dtypes.items())),
        *_shapes(report),
        (_("Predicts tokens"), _("yes") if report.has_head else _("no: the files contain no output layer")),
    ]
    if report.declared:
        found.insert(1, (_("Class in config.json"), report.declared))
    return found


def _shapes(report: Report) -> list[tuple[str, str]]:
    config, scripts = report.config, report.main_scripts
    if config is None:
        return _recorded(report.shape, scripts)
    depth = [str(n) for n in (config.n_encoder_layers, config.n_decoder_layers) if n]
    heads = _("{n} of width {width}", n=config.n_heads, width=config.d_head)
    if config.kv_heads != config.n_heads:
        heads += " · " + _("{n} key/value heads", n=config.kv_heads)
    inner = f"{config.d_ff:,} · {_ACTIVATIONS.get(config.activation, config.activation)}"
    if config.feedforward == "gated":
        inner += " · " + _("gated")
    norms = f"{_NORMS.get(config.norm, config.norm)} · {translate(NORM_PLACES[config.norm_order])} · ε = {config.norm_eps:g}"
    places = labels.places(config)
    if config.positions == "rope":
        places += f" (θ = {config.rope_theta:,.12g})"
    vocabulary = _("{n} tokens", n=f"{config.vocab_size:,}")
    if config.source_vocab_size is not None:
        vocabulary = _(
            "{source} tokens in the source, {target} in the target",
            source=f"{config.source_vocab_size:,}",
            target=f"{config.vocab_size:,}",
        )
    return [
        (_("Layers"), " + ".join(depth)),
        (_("Width"), f"{config.d_model:,}"),
        (_("Heads"), heads),
        (_("Feed-forward"), inner),
        (_("Norms"), norms if config.has_norms else _("none")),
        (_("Positions"), _("{kind}, up to {n} tokens", kind=places, n=f"{config.max_positions:,}")),
        (_("Vocabulary"), vocabulary if not scripts else f"{vocabulary} · {', '.join(scripts)}"),
        *((_("Also"), translate(message)) for message in config.details()),
    ]


def _recorded(shape: ModelShape, scripts: list[str]) -> list[tuple[str, str]]:
    vocabulary = _("{n} tokens", n=f"{shape.vocab_size:,}")
    return [
        (_("Layers"), " + ".join(str(n) for n in (shape.n_encoder_layers, shape.n_decoder_layers) if n)),
        (_("Width"), f"{shape.d_model:,}"),
        (_("Heads"), _("{n} of width {width}", n=shape.n_heads, width=shape.d_head)),
        (_("Positions"), _("up to {n} tokens", n=f"{shape.max_positions:,}")),
        (_("Vocabulary"), vocabulary if not scripts else f"{vocabulary} · {', '.join(scripts)}"),
    ]


def problems(report: Report) -> tuple[Message, ...]:
    """What keeps the model from opening: the first few; the table of tensors has them all."""
    return listed(list(report.problems))


def parts(report: Report) -> list[tuple[str, int, float]]:
    """Name, numbers and share of every component, the largest first."""
    total = max(report.n_parameters, 1)
    ordered = sorted(report.parameters.items(), key=lambda item: -item[1])
    return [(translate(COMPONENTS[name]), n, n / total) for name, n in ordered]


def tensors(report: Report) -> dict[str, list[str]]:
    """The columns of a table with every tensor of the files; what needs attention comes first."""
    order = list(FATES)
    rows = sorted(report.tensors, key=lambda tensor: order.index(tensor.fate))
    files = {_("File"): [t.file for t in rows]} if len(report.files) > 1 else {}
    return {
        _("Fate"): [translate(FATES[t.fate]) for t in rows],
        _("Tensor in the file"): [_printable(t.name) for t in rows],
        _("Shape"): [" × ".join(map(str, t.shape)) or "1" for t in rows],
        _("Type"): [t.dtype for t in rows],
        _("Becomes, or why not"): [translate(t.note) if t.note is not None else ", ".join(t.becomes) for t in rows],
        **files,
    }


def open_questions(error: Exception) -> tuple[tuple[Question, ...], dict[str, object]]:
    """What has to be answered before bare weights open, and what is known of it; nothing for other errors."""
    return (error.questions, dict(error.answers)) if isinstance(error, UnansweredError) else ((), {})


def under_assumptions(report: Report) -> str:
    """The note that bare weights are opened under assumptions; empty for other models."""
    return translate(UNDER_ASSUMPTIONS) if report.format == "state-dict" else ""


def answer(name: str, value: object) -> str:
    words = _CHOICES.get(name, {}).get(str(value))
    if words is not None:
        return translate(words)
    if isinstance(value, bool):
        return _("Yes") if value else _("No")
    return f"{value:g}" if isinstance(value, float) else {**_ACTIVATIONS, **_NORMS}.get(str(value), str(value))


def facts_table(rows: list[tuple[str, str]]) -> str:
    return _table(f'<th scope="row">{escape(what)}</th><td>{escape(value)}</td>' for what, value in rows)


def parts_table(rows: list[tuple[str, int, float]]) -> str:
    return _table(
        f'<th scope="row">{escape(name)}</th><td class="vf-number">{n:,}</td>'
        f'<td class="vf-number">{escape(_percent(share))}</td>'
        f'<td class="vf-share"><div style="width:{share:.2%}"></div></td>'
        for name, n, share in rows
    )


def families() -> tuple[str, ...]:
    return families_that_open.NAMES


def layouts() -> tuple[str, ...]:
    return tuple(NAMES)


def _percent(share: float) -> str:
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def _table(rows: Iterable[str]) -> str:
    return f'<table class="vf-facts">{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def _printable(name: str) -> str:
    return name if name.isprintable() else ascii(name)

"""The model that bare weights are under given answers: options, tensors, tokenizer, and the report of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from torch import Tensor

from vizformer.checkpoints.bare.buffers import plays_no_part
from vizformer.checkpoints.bare.derived_tensors import by_source, with_made
from vizformer.checkpoints.bare.layout import Layout, Plan
from vizformer.checkpoints.bare.likeness import by_kind
from vizformer.checkpoints.bare.tokenizers_beside import backend_beside, stray, tokenizers_for, usual_marks
from vizformer.checkpoints.bare.vocabulary_tokenizer import inside, unused
from vizformer.checkpoints.files.containers import Content
from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.hugging_face.folder_tokenizers import complete_ids
from vizformer.checkpoints.hugging_face.model_folder import empty_model
from vizformer.checkpoints.tensors.matching import Found, Match, match_parts
from vizformer.checkpoints.tensors.questions import KNOWN_CODE, Value
from vizformer.checkpoints.tensors.report import Report, TensorFate, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.checkpoints.tokenizers.special_tokens import token_ids
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, ConfigError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.text import Tokenizer


class Source(NamedTuple):
    """The file that is opened: its folder, the name of the model, and its content."""

    folder: Folder
    name: str
    content: Content


@dataclass(frozen=True)
class Examined:
    """Weights that were understood: everything but the numbers has been read; `empty` waits for them (once)."""

    report: Report
    tokenizer: Tokenizer
    match: Match
    plan: Plan
    shapes: Mapping[str, Shape]
    empty: Transformer
    source_tokenizer: Tokenizer | None = None


def understood(source: Source, layout: Layout, answers: dict[str, Value]) -> Examined:
    """The model that the weights are under these answers."""
    folder, name, (weights, said, vocabularies) = source
    plan = layout.plan({name: answer for name, answer in answers.items() if name != KNOWN_CODE.name})
    options = dict(plan.options)
    tables = options["vocab_size"], options.get("source_vocab_size")
    backend = None if layout.reads_only_ids else backend_beside(folder, weights.longest_side)
    aside = None if backend is None else stray(folder, backend, *tables)
    if aside is not None:
        backend = None
    if backend is not None:
        complete_ids(options, token_ids(folder, backend, usual_marks(folder, backend)))
    words = None if backend is not None or layout.reads_only_ids else inside(vocabularies, *tables)
    if words is not None:
        complete_ids(options, words.roles)
    try:
        config = ModelConfig(**options)
    except ConfigError as error:
        raise CheckpointError(
            "{file} cannot be opened like this: {problems}. You can give: {names}.",
            file=weights.where,
            problems=error.message,
            names=", ".join(question.name for question in layout.questions),
        ) from error
    empty = empty_model(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    matched = _matched(layout, plan, weights, shapes)
    tokenizer, source_tokenizer, about = tokenizers_for(folder, backend, config, words)
    notes = [about] if aside is None else [aside, about]
    if words is None and backend is None and (left := unused(vocabularies, *tables)) is not None:
        notes.append(left)
    contradictions = _contradictions(config, said)
    report = Report(
        name=name,
        format="state-dict",
        family=layout.name,
        declared="",
        config=config,
        has_head=plan.has_head,
        files=weights.files,
        tensors=matched.fates,
        parameters=parameters_by_component(shapes.items()),
        assumptions=(*plan.assumptions, *contradictions, *notes),
        problems=matched.problems,
        questions=layout.questions,
        answers=answers,
    )
    return Examined(report, tokenizer, matched, plan, shapes, empty, source_tokenizer)


def _matched(layout: Layout, plan: Plan, weights: Weights, shapes: Mapping[str, Shape]) -> Match:
    """The tensors held against the plan; those that are read in another shape are listed in their own."""
    tensors = dict(with_made(weights, plan.made).tensors)
    for name, shape in ((name, shape) for name, shape in layout.reshaped.items() if name not in plan.made):
        stored = tensors[name]
        tensors[name] = Stored(stored.file, shape, stored.dtype, partial(_reshaped, stored, shape))

    def reason(name: str, tensor: Found) -> Message | None:
        return plan.unused.get(name) or plays_no_part(tensor.stored)

    matched = match_parts(
        plan.parts,
        plan.ties,
        reason,
        {name: name for name in tensors},
        Weights(tensors, weights.files),
        shapes,
        said_by=layout.said_by or N_("the layout of {layout}", layout=layout.name),
        unplaced=plan.unplaced,
    )
    fates = [
        replace(fate, shape=weights.tensors[fate.name].shape) if fate.name in layout.reshaped else fate
        for fate in matched.fates
    ]
    problems = tuple(in_kinds(matched))
    return replace(matched, fates=by_source(fates, plan.made, weights), problems=problems)


def _reshaped(stored: Stored, shape: Shape) -> Tensor:
    return stored.read().reshape(shape)


# What fields beside the weights say that the tensors say too.
_SIZES = {
    "vocab_size": ("vocab_size", "ntoken", "n_vocab", "tgt_vocab_size", "trg_vocab_size", "target_vocab_size"),
    "input_vocab_size": ("src_vocab_size", "source_vocab_size"),
    "d_model": ("d_model", "n_embd", "hidden_size", "d_embed"),
    "d_ff": ("d_ff", "n_inner", "dim_feedforward", "d_hid"),
}


def _contradictions(config: ModelConfig, said: Mapping[str, Mapping[str, object]]) -> list[Message]:
    """Sizes said beside the weights that are not those of the tensors: the tensors are followed."""
    return [
        N_(
            "{where} says {field}={value}, the tensors say {found}: VizFormer goes by the tensors",
            where=shown(where),
            field=field,
            value=shown(fields[field]),
            found=getattr(config, size),
        )
        for where, fields in said.items()
        for size, names in _SIZES.items()
        for field in names
        if type(fields.get(field)) is int and fields[field] != getattr(config, size)
    ]


def in_kinds(matched: Match) -> Iterator[Message]:
    """The problems of a match, one for all tensors whose names differ only in numbers."""
    problems = [fate for fate in matched.fates if fate.fate in ("missing", "wrong shape")]
    problems += [fate for fate in matched.fates if fate.fate == "unused" and fate.note in matched.problems]
    notes = {fate.name: fate.note for fate in problems}
    for names in _kinds(fate for fate in problems if fate.fate == "missing").values():
        yield N_("{name} is missing", name=_all(names))
    left = _kinds(fate for fate in problems if fate.fate == "unused")
    for names in left.values():
        first, weight = names[0], names[0].removesuffix("bias") + "weight"
        if first.endswith("bias") and weight in notes and [weight] in [n[:1] for n in left.values()]:
            continue  # said of its matrix
        note = notes[first] or N_("{name} has no place", name=shown(first))
        yield N_("{note} (and {n} more like it)", note=note, n=len(names) - 1) if len(names) > 1 else note
    yield from [fate.note for fate in problems if fate.fate == "wrong shape" and fate.note is not None]


def _kinds(fates: Iterable[TensorFate]) -> dict[tuple[str, tuple[int, ...]], list[str]]:
    return by_kind({fate.name: fate.shape for fate in fates})


def _all(names: list[str]) -> Message | str:
    if len(names) == 1:
        return shown(names[0])
    return N_("{name} (and {n} more like it)", name=shown(names[0]), n=len(names) - 1)

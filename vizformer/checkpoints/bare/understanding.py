"""The model that bare weights are under given answers: options, tensors, tokenizer, and the report of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.bare.derived_tensors import by_source, plays_no_part, with_made
from vizformer.checkpoints.bare.layout import Layout, Plan, by_kind
from vizformer.checkpoints.files.containers import Content
from vizformer.checkpoints.files.untrusted_folder import Folder, shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.folder_tokenizers import complete_ids
from vizformer.checkpoints.hugging_face.model_folder import Examined, empty_model
from vizformer.checkpoints.tensors.matching import Found, Match, match_parts
from vizformer.checkpoints.tensors.questions import KNOWN_CODE, Value
from vizformer.checkpoints.tensors.report import Report, TensorFate, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.checkpoints.tokenizers import sentencepiece_files
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.special_tokens import token_ids, without_tokenizer
from vizformer.checkpoints.tokenizers.vocabularies import SOURCES, TOKENIZER, TRIAL, byte_level, read_tokenizer, tried
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, ConfigError
from vizformer.messages import N_, Message
from vizformer.text import Tokenizer

# The tokenizer that lies beside bare weights, if there is one, and whether it goes with them.

END = "<|endoftext|>"


def backend_beside(folder: Folder, rows: int) -> Backend | None:
    if folder.has(TOKENIZER):
        return read_tokenizer(folder, rows=rows)
    if folder.has("vocab.json") and folder.has("merges.txt"):
        return byte_level(folder, {"bos_token": END, "eos_token": END, "unk_token": END})
    name = sentencepiece_files.find(folder)
    return None if name is None else sentencepiece_files.sentencepiece(folder, name)


def tokenizers_for(
    folder: Folder, backend: Backend | None, config: ModelConfig
) -> tuple[Tokenizer, Tokenizer | None, Message]:
    """The tokenizer beside the weights, or the reader of numbers.

    Also the source's, if it is another, and what is assumed.
    """
    rows, has_source = config.source_vocab_size, folder.has(SOURCES)
    if backend is None:
        return without_tokenizer(config)
    tokenizer = _checked(TOKENIZER, backend)
    if rows is None:
        return tokenizer, None, N_("the tokenizer beside the weights is the model's")
    if not has_source:
        return tokenizer, None, N_("the tokenizer beside the weights is that of the source and of the target")
    return (
        tokenizer,
        _checked(SOURCES, read_tokenizer(folder, SOURCES)),
        N_("{sources} beside the weights is the source's tokenizer, the other one the target's", sources=SOURCES),
    )


def stray(folder: Folder, backend: Backend, rows: int, source_rows: int | None) -> Message | None:
    """Why the tokenizer beside the weights is not the model's; None where it may be.

    Every token id must have a row in a table of embeddings, and each of two tables a tokenizer.
    """
    if source_rows not in (None, rows) and not folder.has(SOURCES):
        return N_(
            "the model has two vocabularies, of {source:,} and {target:,} tokens, and there is one "
            "tokenizer beside the weights: VizFormer does not use it (the source's would be {sources}, "
            "the target's {targets})",
            source=source_rows,
            target=rows,
            sources=SOURCES,
            targets=TOKENIZER,
        )
    pairs = [(TOKENIZER, backend, rows)]
    if source_rows is not None and folder.has(SOURCES):
        pairs.append((SOURCES, read_tokenizer(folder, SOURCES), source_rows))
    for name, one, expected in pairs:
        if not 0 <= (found := _highest(name, one)) < expected:
            return N_(
                "the tokenizer beside the weights has token ids up to {found}, the embedding table "
                "{expected} rows: the tokenizer belongs to another model, and VizFormer does not use it",
                found=found,
                expected=expected,
            )
    return None


def _highest(name: str, backend: Backend) -> int:
    """The highest token id that it has, or makes."""
    highest = max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
    return max(highest, max(guarded(name, lambda: backend.encode(TRIAL).ids), default=-1))


def _checked(name: str, backend: Backend) -> Tokenizer:
    return tried(guarded(name, lambda: Tokenizer(backend)))


class Source(NamedTuple):
    """The file that is opened: its folder, the name of the model, and its content."""

    folder: Folder
    name: str
    content: Content


def understood(source: Source, layout: Layout, answers: dict[str, Value]) -> Examined:
    """The model that the weights are under these answers."""
    folder, name, (weights, said) = source
    plan = layout.plan({name: answer for name, answer in answers.items() if name != KNOWN_CODE.name})
    options = dict(plan.options)
    tables = options["vocab_size"], options.get("source_vocab_size")
    backend = None if layout.reads_only_ids else backend_beside(folder, weights.longest_side)
    aside = None if backend is None else stray(folder, backend, *tables)
    if aside is not None:
        backend = None
    if backend is not None:
        complete_ids(options, token_ids(folder, backend, {"bos_token": END, "eos_token": END}))
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
    tokenizer, source_tokenizer, about = tokenizers_for(folder, backend, config)
    notes = [about] if aside is None else [aside, about]
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
    return Examined(report, tokenizer, matched, shapes, empty, source_tokenizer)


def _matched(layout: Layout, plan: Plan, weights: Weights, shapes: Mapping[str, Shape]) -> Match:
    """The tensors held against the plan; those that are made of others are listed as they lie in the file."""
    tensors = with_made(weights, plan.made).tensors

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
    )
    problems = tuple(in_kinds(matched))
    fates = by_source(matched.fates, plan.made, weights)
    made = {name: partial(make, shapes[name]) for name, make in plan.fills.items()}
    return replace(matched, fates=fates, problems=problems, made=made)


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

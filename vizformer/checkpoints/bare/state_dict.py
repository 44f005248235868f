"""Bare weights, a state dict without a config.json that says what it is, become a model under stated assumptions.

The tensors' names say which code they belong to and their shapes how large it is.  What they do not say is answered by
what lies beside them or by whoever opens them (`questions`), and every answer is listed in the report: what is shown
then is consistent under these assumptions, and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vizformer.checkpoints.bare.layout import Layout, Plan
from vizformer.checkpoints.bare.layouts import LAYOUTS, NAMES
from vizformer.checkpoints.bare.likeness import family, unrecognised
from vizformer.checkpoints.bare.misfits import in_kinds
from vizformer.checkpoints.bare.structure import reader
from vizformer.checkpoints.bare.structure.made import by_source, with_made
from vizformer.checkpoints.bare.tokenizers_beside import END, backend_beside, tokenizers_for
from vizformer.checkpoints.files.containers import open_file
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import Stored, Weights
from vizformer.checkpoints.hugging_face.folder_tokenizers import complete_ids
from vizformer.checkpoints.hugging_face.model_folder import empty_model, wrong_numbers
from vizformer.checkpoints.tensors.matching import Found, Match, match_parts
from vizformer.checkpoints.tensors.placement import place
from vizformer.checkpoints.tensors.questions import Said, Value, resolve, trials
from vizformer.checkpoints.tensors.report import Report, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.checkpoints.tokenizers.special_tokens import token_ids
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, ConfigError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.text import Tokenizer

CONFIG = "config.json"
BY_ROLE = N_("the reading by role")


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


def examine(folder: Folder, file: str, name: str, given: Mapping[str, object], *, numbers: bool = False) -> Examined:
    """Reads what a file holds.

    `given` are answers to what the weights do not say; `name` is what the model is called.  With `numbers`, nothing is
    asked where some of them are none.

    Raises:
        UnansweredError: questions that are left, all of which have answers under which the model opens.
        CheckpointError: a damaged file, tensors of no layout that opens, an impossible answer, an arrangement that is
            not supported.
    """
    weights, said = open_file(folder, file)
    beside = _beside(folder)
    said = {**said, **({CONFIG: beside} if beside else {})}
    layout = _recognised(folder, file, name, weights, given, said)
    try:
        answers, assumptions = resolve(layout.questions, given, said, file)
    except CheckpointError:
        _require_an_answer(folder, name, weights, layout, given, said, numbers)
        raise
    return _understood(folder, name, weights, layout, answers, [*assumptions, *_of_config(beside)], said)


def _require_an_answer(
    folder: Folder, name: str, weights: Weights, layout: Layout, given: Mapping[str, object], said: Said, numbers: bool
) -> None:
    """Looks for answers under which the model opens, before anything is asked.

    Raises:
        CheckpointError: there are none; says why.
    """
    refused: CheckpointError | None = None
    for answers in trials(layout.questions, given, said, "source_embedding"):
        try:
            tried = _understood(folder, name, weights, layout, answers, [], said)
        except CheckpointError as error:
            refused = refused or error
            continue
        wrong = wrong_numbers(tried.match) if numbers and not tried.report.problems else []
        if not tried.report.problems and not wrong:
            return
        refused = refused or (without_numbers(tried.report, wrong) if wrong else misfit(tried.report))
    if refused is not None:
        raise refused


def _understood(
    folder: Folder,
    name: str,
    weights: Weights,
    layout: Layout,
    answers: dict[str, Value],
    assumptions: list[Message],
    said: Said,
) -> Examined:
    """The model that the weights are under these answers."""
    plan = layout.plan(answers)
    backend = backend_beside(folder, weights.longest_side)
    options = dict(plan.options)
    if backend is not None and not layout.reads_only_ids:
        complete_ids(options, token_ids(folder, backend, {"bos_token": END, "eos_token": END}))
    else:
        backend = None
    try:
        config = ModelConfig(**options)
    except ConfigError as error:
        raise CheckpointError(
            N_(
                "{file} cannot be opened like this: {problems}. What can be said about it: {names}.",
                file=weights.where,
                problems=error.message,
                names=", ".join(question.name for question in layout.questions),
            )
        ) from error
    empty = empty_model(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    matched = _matched(layout, plan, weights, shapes)
    tokenizer, source, about = tokenizers_for(folder, backend, config)
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
        assumptions=(*assumptions, *plan.assumptions, *contradictions, about),
        problems=matched.problems,
        questions=layout.questions,
        answers=answers,
    )
    return Examined(report, tokenizer, matched, plan, shapes, empty, source)


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file.

    Raises:
        CheckpointError: tensors that are missing, of another shape, or hold what is no number; all at once.
    """
    report = examined.report
    if report.problems:
        raise misfit(report)
    if wrong := wrong_numbers(examined.match):
        raise without_numbers(report, wrong)
    state: dict[str, Tensor] = {}
    for part, stored in examined.match.used:
        state |= part.split(place(stored.read(), dtype, device, stored.name), examined.shapes)
    for name, fill in examined.plan.fills.items():
        state[name] = fill(examined.shapes[name]).to(device, dtype)
    model = examined.empty
    model.load_state_dict(state, assign=True)
    model.materialise_buffers()
    return model


def without_numbers(report: Report, wrong: list[Message]) -> CheckpointError:
    return CheckpointError(
        N_(
            "{file} has tensors that hold no numbers: {problems}. The training has gone astray, or the file is damaged: "
            "take an earlier one, or copy it again.",
            file=next(iter(report.files)),
            problems=listed(wrong),
        )
    )


def misfit(report: Report) -> CheckpointError:
    if report.family == reader.NAME:
        return CheckpointError(
            N_(
                "{file} was read by role, but not everything in it has one: {problems}. What such tensors do is not known, "
                "and without them the numbers would be others: the model does not open.",
                file=next(iter(report.files)),
                problems=listed(list(report.problems)),
            )
        )
    return CheckpointError(
        N_(
            "The tensors of {file} have names of {layout}, but not everything fits: {problems}. Only what is exactly "
            "that layout opens; where a model of one's own computes the same, save its tensors under its names.",
            file=next(iter(report.files)),
            layout=report.family,
            problems=listed(list(report.problems)),
        )
    )


def _recognised(
    folder: Folder, file: str, name: str, weights: Weights, given: Mapping[str, object], said: Said
) -> Layout:
    """The first layout under which the model opens.

    Raises:
        CheckpointError: there is none; says why the first that has the names does not open.
    """
    refused: CheckpointError | None = None
    for recognise in LAYOUTS:
        try:
            layout = recognise(weights)
            if layout is None:
                continue
            _require_an_answer(folder, name, weights, layout, given, said, numbers=False)
        except CheckpointError as error:
            if refused is None and not (recognise is reader.recognise and family(weights)):
                refused = error
            continue
        return layout
    raise refused or CheckpointError(unrecognised(file, weights, ", ".join(NAMES)))


def _beside(folder: Folder) -> dict[str, object]:
    """The fields of a config.json beside the weights, if there is one."""
    return folder.object(CONFIG) if folder.has(CONFIG) else {}


def _of_config(beside: Mapping[str, object]) -> list[Message]:
    """What is noted of a config.json that says a type which does not open."""
    if "model_type" not in beside:
        return []
    return [
        N_(
            "{file} says model_type={kind}, which does not open: the names of the tensors are followed, and of {file} "
            "only what answers a question",
            file=CONFIG,
            kind=shown(beside["model_type"]),
        )
    ]


def _matched(layout: Layout, plan: Plan, weights: Weights, shapes: Mapping[str, Shape]) -> Match:
    """The tensors held against the plan; those that are read in another shape are listed in their own."""
    tensors = dict(with_made(weights, plan.made).tensors)
    for name, shape in layout.reshaped.items():
        stored = tensors[name]
        tensors[name] = Stored(stored.file, shape, stored.dtype, partial(_reshaped, stored, shape))

    def reason(name: str, tensor: Found) -> Message | None:
        return plan.unused.get(name)

    matched = match_parts(
        plan.parts,
        plan.ties,
        reason,
        {name: name for name in tensors},
        Weights(tensors, weights.files),
        shapes,
        said_by=BY_ROLE if layout.name == reader.NAME else N_("the layout of {layout}", layout=layout.name),
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
            "{where} says {field}={value}, the tensors say {found}: the tensors are followed",
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

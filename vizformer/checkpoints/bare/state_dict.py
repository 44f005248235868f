"""Bare weights, a state dict without a config.json that says what it is, become a model under stated assumptions.

The tensors' names say which code they belong to and their shapes how large it is.  What they do not say is answered by
what lies beside them or by whoever opens them (`questions`), and every answer is listed in the report: what is shown
then is consistent under these assumptions, and no more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import torch

from vizformer.checkpoints.bare import by_mapping
from vizformer.checkpoints.bare.layout import Layout, unrecognised
from vizformer.checkpoints.bare.layouts import LAYOUTS, NAMES, gpt, meta
from vizformer.checkpoints.bare.understanding import Source, understood
from vizformer.checkpoints.files.containers import open_file
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.model_folder import Examined, filled, wrong_numbers
from vizformer.checkpoints.tensors.questions import KNOWN_CODE, Said, UnansweredError, refuse, resolve, trials
from vizformer.checkpoints.tensors.report import Report
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.model import Transformer

CONFIG = "config.json"
MAPPED = ".mapping.toml"  # an old format: this suffix after the name of a file of weights
Recognise = Callable[[Weights], Layout | None]


def examine(folder: Folder, file: str, name: str, given: Mapping[str, object], *, numbers: bool = False) -> Examined:
    """Reads what a file holds.

    `given` are answers to what the weights do not say; `name` is what the model is called.  With `numbers`, nothing is
    asked where some of them are none.

    Raises:
        UnansweredError: questions that are left, all of which have answers under which the model opens.
    """
    if folder.has(f"{file}{MAPPED}"):
        raise CheckpointError(
            "{file} beside the weights mapped tensors to roles and is not read any more. Move it away, or give the mapping "
            "in Python: vf.load(path, config=..., mapping=...).",
            file=f"{file}{MAPPED}",
        )
    content = open_file(folder, file)
    beside = folder.object(CONFIG) if folder.has(CONFIG) else {}
    source = Source(folder, name, content._replace(said={**content.said, **({CONFIG: beside} if beside else {})}))
    known = meta.recognise(content.weights, source.content.said)
    layouts: Sequence[Recognise] = LAYOUTS if known is None else (lambda __: known,)
    layout, tried = _recognised(source, file, given, layouts)
    given = _left_open(layout, given, file)
    try:
        answers = resolve(layout.questions, given, source.content.said, file)
    except UnansweredError as error:
        config = _require_an_answer(source, layout, given, numbers).report.config
        marks = {q.name: getattr(config, q.name) for q in layout.questions if q.optional}  # of a vocabulary in the file
        known_marks = {name: id for name, id in marks.items() if id is not None}
        raise UnansweredError(error.message, error.questions, {**known_marks, **error.answers}) from error
    except CheckpointError:
        _require_an_answer(source, layout, given, numbers)
        raise
    found = tried if tried.report.answers == answers.values else understood(source, layout, answers.values)
    notes = (*content.weights.notes, *answers.notes, *_of_config(beside), *found.report.assumptions)
    return replace(found, report=replace(found.report, assumptions=notes, taken=answers.taken))


def _left_open(layout: Layout, given: Mapping[str, object], file: str) -> dict[str, object]:
    """The answers without those that the tensors give themselves."""
    wrong = [
        N_("{name}={value}: the tensors say {found}", name=name, value=shown(value), found=str(layout.known[name]))
        for name, value in given.items()
        if value is not None and name in layout.known and str(value).lower() != str(layout.known[name]).lower()
    ]
    refuse(wrong, layout.questions, file)
    return {name: value for name, value in given.items() if name not in layout.known}


def _require_an_answer(source: Source, layout: Layout, given: Mapping[str, object], numbers: bool) -> Examined:
    """The model under the first answers with which it opens; looked for before anything is asked."""
    refused: CheckpointError | None = None
    for answers in trials(layout.questions, given, source.content.said, "source_embedding"):
        try:
            tried = understood(source, layout, answers)
        except CheckpointError as error:
            refused = refused or error
            continue
        wrong = wrong_numbers(tried.match) if numbers and not tried.report.problems else []
        if not tried.report.problems and not wrong:
            return tried
        refused = refused or (without_numbers(tried.report, wrong) if wrong else misfit(tried.report))
    assert refused is not None  # there is one trial at least
    raise refused


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file."""
    report = examined.report
    if report.problems:
        raise misfit(report)
    if wrong := wrong_numbers(examined.match):
        raise without_numbers(report, wrong)
    return filled(examined, dtype, device)


def without_numbers(report: Report, wrong: list[Message]) -> CheckpointError:
    return CheckpointError(
        "{file} has tensors with NaN or infinite numbers: {problems}. The training diverged, or the file "
        "is damaged: take an earlier one, or copy it again.",
        file=next(iter(report.files)),
        problems=listed(wrong),
    )


def misfit(report: Report) -> CheckpointError:
    file, problems = next(iter(report.files)), listed(list(report.problems))
    if report.family == by_mapping.NAME:
        return CheckpointError(
            "The mapping does not fit {file} and its config: {problems}.", file=file, problems=problems
        )
    return CheckpointError(
        "The tensors of {file} have names of {layout}, but not everything fits: {problems}. Only what is exactly "
        "that layout opens; where a model of one's own computes the same, save its tensors under its names.",
        file=file,
        layout=report.family,
        problems=problems,
    )


def _recognised(
    source: Source, file: str, given: Mapping[str, object], layouts: Sequence[Recognise]
) -> tuple[Layout, Examined]:
    """The layout whose names the tensors have, and the model under the first answers with which it opens."""
    weights, said = source.content.weights, source.content.said
    refused: CheckpointError | None = None
    for recognise in layouts:
        try:
            layout = recognise(weights)
            if layout is None:
                continue
            if recognise is gpt.recognise and "model_type" not in said.get(CONFIG, {}):
                layout = replace(layout, questions=(*layout.questions, KNOWN_CODE))
            _refuse_what_is_said(layout, said, file)
            return layout, _require_an_answer(source, layout, given, numbers=False)
        except CheckpointError as error:
            refused = refused or error
    raise refused or CheckpointError(unrecognised(file, weights, ", ".join(NAMES)))


def _refuse_what_is_said(layout: Layout, said: Said, file: str) -> None:
    """Raises:
    CheckpointError: what lies beside the weights says that the model computes what none does here.
    """
    wrong = [
        N_("{where} says {field}={value}", where=shown(where), field=field, value=shown(fields[field]))
        for where, fields in said.items()
        for field, values in layout.refuses.items()
        if field in fields and any(fields[field] is value or fields[field] == value for value in values)
    ]
    if wrong:
        raise CheckpointError(
            "{file} holds a model of {layout} that computes what VizFormer's models do not: {problems}.",
            file=file,
            layout=layout.name,
            problems=listed(wrong),
        )


def _of_config(beside: Mapping[str, object]) -> list[Message]:
    """The note on a config.json with a model_type that does not open."""
    if "model_type" not in beside:
        return []
    return [
        N_(
            "{file} says model_type={kind}, which does not open: VizFormer goes by the names of the "
            "tensors, and takes from {file} only what answers a question",
            file=CONFIG,
            kind=shown(beside["model_type"]),
        )
    ]

"""A folder in Hugging Face layout: config.json, weights and a tokenizer become a model of ours, or a list of reasons.

What is read is decided by the fields of config.json and the names of the tensors, never by the folder's name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from tokenizers import Tokenizer as Backend

from vizformer.checkpoints.files.finding import find_weights
from vizformer.checkpoints.files.untrusted_folder import Folder, first_line, listed, shown
from vizformer.checkpoints.files.weights import Weights, all_finite
from vizformer.checkpoints.hugging_face.families import BY_TYPE, NAMES
from vizformer.checkpoints.hugging_face.family import Family, Options, stored
from vizformer.checkpoints.hugging_face.fields import Fields, fields_of
from vizformer.checkpoints.hugging_face.folder_tokenizers import (
    complete_ids,
    note_start_mark,
    read_vocabularies,
    tokenizers_of,
)
from vizformer.checkpoints.hugging_face.text_part import INSIDE, family_inside, language_model, left_aside
from vizformer.checkpoints.hugging_face.unsupported_models import BECAUSE
from vizformer.checkpoints.tensors.matching import Found, Match, fate, fill, match_parts, not_tied
from vizformer.checkpoints.tensors.report import NO_HEAD, Report, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Shape
from vizformer.checkpoints.tokenizers.special_tokens import token_ids
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, ConfigError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.model.initialisation import without_memory
from vizformer.text import Tokenizer


def match(
    family: Family, config: ModelConfig, names: Mapping[str, str], weights: Weights, shapes: Mapping[str, Shape]
) -> Match:
    """`names`: the family's name of every tensor -> its name in the file; `shapes`: of our parameters."""
    prefixed = any(stored.startswith(family.prefix) for stored in names.values())

    spare = {} if family.spare is None else family.spare(config)

    def reason(name: str, tensor: Found) -> Message | None:
        if name in spare:
            return spare[name][1]
        outside = prefixed and not tensor.name.startswith(family.prefix) and not name.startswith(family.head)
        return _reason(family, name, outside)

    follow = {} if family.computed is None else family.computed(config)
    others = {name: stored for name, stored in names.items() if name not in follow}
    for name, (first, __) in spare.items():
        if name in others and first not in others:
            others[first] = others.pop(name)
    made = {} if family.made is None else family.made(config)
    parts = stored(family.weights(config), made)
    found = match_parts(parts, family.ties(config), reason, others, weights, shapes)
    computed = [
        (Found(names[name], weights.tensors[names[name]]), make) for name, make in follow.items() if name in names
    ]
    fates = [fate(tensor, "unused", note=N_("it follows from config.json")) for tensor, __ in computed]
    return replace(found, fates=(*found.fates, *fates), computed=tuple(computed), made=made)


def _reason(family: Family, name: str, outside: bool) -> Message | None:
    """Why a tensor that no part asked for is not needed; None if it may be."""
    known = next((note for pattern, note in family.unused.items() if re.fullmatch(pattern, name)), None)
    return N_("outside the model itself: the head of another task") if known is None and outside else known


class NotOursError(CheckpointError):
    """A family that opens, with an option that our own Transformer does not have.

    Attributes:
        problems: each field, its value and why.
        fields: their values.
    """

    def __init__(self, fields: Fields) -> None:
        self.problems, self.fields = listed(fields.problems), fields.refused
        super().__init__(
            "{file} asks for what VizFormer does not support: {problems}.", file=CONFIG, problems=self.problems
        )


CONFIG, GENERATION = "config.json", "generation_config.json"
_BEGINNING = ("decoder_start_token_id", "forced_bos_token_id", "bad_words_ids")
HALF_PRECISION = 5e-3  # how far numbers up to 1 stray in the shortest floats that are read
MOST_POSITIONS = 32_768  # of tables computed from the options; no text that VizFormer accepts is longer


@dataclass(frozen=True)
class Examined:
    """A folder or a file that was understood: all but the numbers has been read; `empty` waits for them (once)."""

    report: Report
    tokenizer: Tokenizer
    match: Match
    shapes: Mapping[str, Shape]
    empty: Transformer
    source_tokenizer: Tokenizer | None = None


def examine(folder: Folder, raw: dict[str, object]) -> Examined:
    """Reads what the folder holds; what is wrong with its tensors stands in the report."""
    family = family_of(raw)
    weights = find_weights(folder)
    vocabularies = read_vocabularies(folder, family.tokenizer, weights.longest_side)
    raw = {**raw, **_of_generation(folder)}
    names = _our_names(family, weights)
    backend = None if vocabularies is None else vocabularies.predicted
    fields = fields_of(language_model(raw))
    config, has_head = _config(family, fields, names, folder, backend, len(weights.tensors))
    tokenizer, source, notes = tokenizers_of(vocabularies, config)
    for note in (*weights.notes, *notes):
        fields.assume(note)
    if backend is not None:
        note_start_mark(folder, backend, config, fields)
    if raw["model_type"] in INSIDE:
        fields.assume(left_aside(str(raw["model_type"]), names, weights))
    if not has_head:
        fields.assume(NO_HEAD)
    empty = empty_model(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
    matched = match(family, config, names, weights, shapes)
    report = Report(
        name=folder.name,
        format="hugging-face",
        family=family.name,
        declared=fields.architecture,
        config=config,
        has_head=has_head,
        files=weights.files,
        tensors=matched.fates,
        parameters=parameters_by_component(shapes.items()),
        assumptions=tuple(fields.assumptions),
        problems=matched.problems,
    )
    return Examined(report, tokenizer, matched, shapes, empty, source)


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file."""
    report = examined.report
    if problems := list(report.problems) or wrong_numbers(examined.match):
        raise misfit(next(iter(report.files)), problems)
    return filled(examined, dtype, device)


def filled(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model that waits, with the numbers of the tensors that were found."""
    matched = examined.match
    return fill(examined.empty, matched.used, examined.shapes, matched.made, dtype, device)


def wrong_numbers(matched: Match) -> list[Message]:
    """What is wrong with the numbers themselves: every tensor that is used is read once for it."""
    wrong = [
        N_("{name} holds NaN or infinite numbers", name=shown(tensor.name))
        for __, tensor in matched.used
        if not all_finite(tensor.read())
    ]
    for tensor, make in matched.computed:
        expected, found = make(), tensor.read().float()
        found = found[: len(expected)] if found.dim() else found  # there may be more positions than are accepted
        if found.shape != expected.shape or not torch.allclose(found, expected, atol=HALF_PRECISION):
            wrong.append(N_("{name} does not have the numbers that follow from config.json", name=shown(tensor.name)))
    for first, second in matched.same:
        one, other = first.read(), second.read()
        if one.shape != other.shape or not torch.equal(one, other.to(one.dtype)):
            wrong.append(not_tied(first.name, second.name))
    return wrong


def misfit(file: str, problems: list[Message]) -> CheckpointError:
    return CheckpointError(
        "{file} does not fit config.json: {problems}. They belong to different models, or one of them is damaged: "
        "copy both again from the model's source.",
        file=file,
        problems=listed(problems),
    )


def empty_model(config: ModelConfig) -> Transformer:
    try:
        with without_memory():
            return Transformer(config)
    except (RuntimeError, TypeError, ValueError) as error:  # sizes that no tensor can have
        raise CheckpointError(
            "{file} describes a model that no machine can hold ({reason}). Copy it again from the model's source.",
            file=CONFIG,
            reason=first_line(error),
        ) from error


def family_of(raw: Mapping[str, object]) -> Family:
    """Finds the family by model_type, the field by which `transformers` chooses its code."""
    kind = raw.get("model_type")
    family = (family_inside(raw) or BY_TYPE.get(kind)) if isinstance(kind, str) else None
    if family is None and isinstance(kind, str) and kind in BECAUSE:
        raise CheckpointError(
            "{file} says model_type={kind}, which is not supported because of {why}. These families open: "
            "{families}. Take a model of one of them.",
            file=CONFIG,
            kind=shown(kind),
            why=BECAUSE[kind],
            families=", ".join(NAMES),
        )
    if family is None:
        raise CheckpointError(
            "{file} says model_type={kind}, which is not supported. These families open: {families}. Take a model "
            "of one of them.",
            file=CONFIG,
            kind=shown(kind),
            families=", ".join(NAMES),
        )
    return family


def _of_generation(folder: Folder) -> dict[str, object]:
    """The fields of generation_config.json that start or restrict generation; they override those of config.json."""
    said = folder.object(GENERATION) if folder.has(GENERATION) else {}
    return {name: value for name, value in said.items() if name in _BEGINNING}


def _our_names(family: Family, weights: Weights) -> dict[str, str]:
    """The family's name of every tensor -> its name in the file: without prefix, without the spelling of old files."""
    names: dict[str, str] = {}
    for written in weights.tensors:
        name = written.removeprefix(family.prefix)
        for pattern, replacement in family.renamed.items():
            name = re.sub(pattern, replacement, name)
        if name in names:
            raise CheckpointError(
                "{file} holds {first} and {second}, which are the same tensor by two names. Save the model again "
                "with `transformers`.",
                file=weights.where,
                first=shown(names[name]),
                second=shown(written),
            )
        names[name] = written
    return names


def _config(
    family: Family, fields: Fields, names: Mapping[str, str], folder: Folder, backend: Backend | None, n_tensors: int
) -> tuple[ModelConfig, bool]:
    options, has_head = family.config(fields, names.keys())
    fields.finish()
    n_layers = options.get("n_encoder_layers", 0) + options.get("n_decoder_layers", 0)
    if n_layers > n_tensors:  # before a model of so many layers is thought of
        fields.problems.append(
            N_("{n} layers, but the file of weights has only {found} tensors", n=n_layers, found=n_tensors)
        )
    if not fields.problems:
        _shorten(options, fields)
        complete_ids(options, {} if backend is None else token_ids(folder, backend, dict(family.usual)))
        try:
            return ModelConfig(**options), has_head
        except ConfigError as error:
            fields.problems.append(error.message)
    raise NotOursError(fields)


def _shorten(options: Options, fields: Fields) -> None:
    """A table of angles or waves for millions of positions would fill the memory for texts nobody can enter here."""
    if options["positions"] in ("rope", "sinusoidal") and options["max_positions"] > MOST_POSITIONS:
        fields.assume(
            "texts up to {limit:,} tokens are accepted; config.json allows {longest:,}",
            limit=MOST_POSITIONS,
            longest=options["max_positions"],
        )
        options["max_positions"] = MOST_POSITIONS

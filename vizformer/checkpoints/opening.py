"""`load` and `inspect`: a name or a path becomes a model, or a report of what is there."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch

from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import own as own
from vizformer.checkpoints.bare import by_mapping, state_dict
from vizformer.checkpoints.files import containers, finding, formats, hub
from vizformer.checkpoints.files.untrusted_folder import Folder
from vizformer.checkpoints.files.weights import lacks
from vizformer.checkpoints.hugging_face import by_transformers, model_folder
from vizformer.checkpoints.hugging_face.unsupported_models import BECAUSE, SAME_NAMES
from vizformer.checkpoints.own import Checkpoint
from vizformer.checkpoints.recorded.checkpoint import RecordedCheckpoint
from vizformer.checkpoints.recorded.wrapping import wrap
from vizformer.checkpoints.tensors.memory import AUTO, chosen_device, chosen_dtype, require
from vizformer.checkpoints.tensors.questions import UnansweredError
from vizformer.checkpoints.tensors.report import Report
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError, TraceError
from vizformer.messages import N_, Message
from vizformer.text.pieces import scripts_of

CONFIG = "config.json"
_STEP = re.compile(r"checkpoint-\d{1,9}")  # as a Trainer calls the folder of a step


@dataclass(frozen=True, eq=False, repr=False)
class Opened(Checkpoint):
    """A checkpoint that was read from files, with the report of how."""

    report: Report

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """What the files do not decide, as "n_heads = 4"; pictures say so."""
        return tuple(f"{name} = {value}" for name, value in self.report.assumed.items())

    @property
    def has_head(self) -> bool:
        return self.report.has_head


@dataclass(frozen=True, eq=False, repr=False)
class OpenedRecorded(RecordedCheckpoint):
    """A checkpoint that was read from files and is computed by its own code, with the report of how."""

    report: Report = field(kw_only=True)


def load(
    source: str | Path,
    *,
    dtype: torch.dtype | str = torch.float32,
    device: torch.device | str = "cpu",
    config: ModelConfig | Mapping[str, Any] | None = None,
    mapping: Mapping[Any, Any] | None = None,
    **answers: object,
) -> Opened:
    """Opens a bundled model by name, a folder in our format or in Hugging Face layout, bare weights, or a hub's model.

    Bare weights are a state dict of GPT-2, nanoGPT, minGPT, `nn.TransformerEncoder`, `nn.Transformer`, TransformerLens or
    llama2.c: a file, or a folder without a config.json that says more.  What they do not say is answered by `answers`, such
    as `n_heads=4`; without answers the error lists the questions.  A hub's model is owner/name or owner/name@revision; it is
    fetched where it is not in huggingface_hub's cache.

    Of other weights, `config` says what the model computes and `mapping` which tensor becomes which parameters
    (`vizformer.checkpoints.bare.by_mapping`): neither is guessed.

    A folder in Hugging Face layout that our own Transformer does not compute is computed by `transformers`, where that is
    installed, and recorded: an `OpenedRecorded`, of which the same may be asked but for `model`.

    Weights are kept in `dtype`, frozen, and everything is computed in it: float32, bfloat16, float16, by name or as
    torch's; "auto" is the dtype of the file (of mixed ones, the smallest that holds all).  Tensors that the file has in
    that dtype stay mapped to it.  `device` is "cpu", "cuda", "cuda:1", "mps" or torch's: the model computes there, and
    traces stay there.

    Raises:
        DoesNotFitError: more memory is needed than there is, or dtypes in which it would fit.
        UnansweredError: bare weights that fit several models; its `questions` decide.
        CheckpointError: nothing there, or files that are damaged, unsupported or do not fit together; names the file,
            what was found and the way out, all problems of a file at once.
        ConfigError: illegal options, in our own format.
    """
    device = chosen_device(device)
    chosen_dtype(dtype, ())  # before anything is read
    found = _find(source)
    examined = _examined(found, answers, config=config, mapping=mapping)
    report = _with_scripts(examined)
    dtype = chosen_dtype(dtype, (tensor.dtype for tensor in report.with_fate("used")))
    require(report, dtype, device)
    if isinstance(examined, by_transformers.Examined):
        return cast(Opened, _recorded(found.name, examined, report, dtype, device))
    if isinstance(examined, own.Examined):
        model = own.build(examined, dtype, device)
    else:
        model = (state_dict if report.format == "state-dict" else model_folder).build(examined, dtype, device)
    return Opened(found.name, model, examined.tokenizer, report, source_tokenizer=examined.source_tokenizer)


def _recorded(
    name: str, examined: by_transformers.Examined, report: Report, dtype: torch.dtype, device: torch.device
) -> OpenedRecorded:
    module = by_transformers.build(examined, dtype, device)
    try:
        with by_transformers.first_run(examined):
            longest = report.shape.max_positions
            made = wrap(module, examined.tokenizer, name=name, max_positions=longest)
    except TraceError as error:  # its own code stopped, or attends in no way that is seen
        stopped = CheckpointError(
            "{name} opens by its own code, {class_name}, and cannot be shown: {reason} Take another model.",
            name=name,
            class_name=examined.class_name,
            reason=error.message,
        )
        raise (stopped if examined.refused is None else _neither(examined.refused, stopped)) from error
    known = {one.name: getattr(made, one.name) for one in fields(made)}
    return OpenedRecorded(**known, report=replace(report, recorded_shape=made.shape))


def load_recorded(folder: Path, dtype: torch.dtype, device: torch.device) -> OpenedRecorded:
    """A folder in Hugging Face layout, computed by the code of `transformers` also where our own Transformer computes it.

    Raises:
        CheckpointError: as `load`.
    """
    opened = Folder(folder)
    examined = by_transformers.examine(opened, opened.object(CONFIG))
    require(examined.report, dtype, device)
    return _recorded(opened.name, examined, examined.report, dtype, device)


def inspect(
    source: str | Path,
    *,
    numbers: bool = True,
    config: ModelConfig | Mapping[str, Any] | None = None,
    mapping: Mapping[Any, Any] | None = None,
    **answers: object,
) -> Report:
    """What is in a folder or file and what became of every tensor; tensors that do not fit stand in the report.

    `numbers=False` does not look for NaN and infinite ones (but in our own format), which takes reading all of them.

    Raises:
        CheckpointError: as `load`, where there is nothing to report on.
    """
    examined = _examined(_find(source), answers, numbers=numbers, config=config, mapping=mapping)
    report = _with_scripts(examined)
    if isinstance(examined, own.Examined):
        own.build(examined, chosen_dtype(AUTO, report.dtypes), torch.device("cpu"))
        return report
    if report.problems or not numbers:
        return report
    if isinstance(examined, by_transformers.Examined):
        return replace(report, problems=tuple(by_transformers.wrong_numbers(examined)))
    return replace(report, problems=tuple(model_folder.wrong_numbers(examined.match)))


@dataclass(frozen=True)
class _Found:
    """Where a model lies: a folder, its config.json, and the file of weights where that is all there is."""

    folder: Folder
    name: str
    raw: dict[str, Any]
    file: str | None = None


Examined = model_folder.Examined | by_transformers.Examined | own.Examined


def _with_scripts(examined: Examined) -> Report:
    return replace(examined.report, scripts=scripts_of(examined.tokenizer))


def _examined(
    found: _Found, answers: Mapping[str, object], *, numbers: bool = True, config: object = None, mapping: object = None
) -> Examined:
    by_hand = {"config": config, "mapping": mapping}
    if found.file is not None and by_hand != {"config": None, "mapping": None}:
        if given := [name for name, answer in answers.items() if answer is not None]:
            raise CheckpointError(
                "The config already gives what {names} would. Leave {names} out.", names=", ".join(given)
            )
        return by_mapping.examine(found.folder, found.file, found.name, config, mapping)
    if found.file is not None:
        return _bare(found, found.file, answers, numbers)
    _no_answers(found, {**answers, **by_hand})
    if _is_ours(found.raw):
        return own.examine(found.folder, found.raw)
    if by_transformers.opens(found.raw):
        return by_transformers.examine(found.folder, found.raw)
    try:
        return model_folder.examine(found.folder, found.raw)
    except model_folder.NotOursError as refused:
        return _by_its_own_code(found, refused)


def _neither(refused: model_folder.NotOursError, error: CheckpointError) -> CheckpointError:
    return CheckpointError(
        "{file} asks for what VizFormer does not support: {problems}. {otherwise}",
        file=CONFIG,
        problems=refused.problems,
        otherwise=error.message,
    )


def _by_its_own_code(found: _Found, refused: model_folder.NotOursError) -> by_transformers.Examined:
    """A model of a family of ours with an option that ours does not have; where that does not open either, both say why."""
    try:
        examined = by_transformers.examine(found.folder, found.raw, refused)
        if problems := list(examined.report.problems):
            raise model_folder.misfit(next(iter(examined.report.files)), problems)
    except CheckpointError as error:
        raise _neither(refused, error) from error
    return examined


def _find(source: str | Path) -> _Found:
    if str(source) in bundled_models():
        folder = Folder(asset("models", str(source)))
        return _Found(folder, folder.name, _config(folder))
    if os.path.isdir(source):  # (Path.is_dir raises where a name is too long)
        try:
            return _in_folder(Folder(Path(source)))
        except (OSError, RuntimeError, ValueError):
            pass
    if os.path.isfile(source):
        return _in_file(Path(source))
    if isinstance(source, str) and hub.is_name(source):
        found = _in_folder(Folder(hub.fetch(source)))
        return replace(found, name=source)
    raise CheckpointError(
        "There is no model {source!r}. Give the path of a folder, the name of a hub's model (owner/name), or one "
        "of: {names}.",
        source=str(source),
        names=", ".join(bundled_models()) or "-",
    )


def _in_folder(folder: Folder) -> _Found:
    """A folder whose config.json does not say what it is may still hold weights that do."""
    if not folder.has(CONFIG):
        finding.refuse_adapter(folder)
    if not _opens_as_said(folder) and (file := _only_file(folder)) is not None:
        return _Found(folder, folder.name, {}, file)
    return _Found(folder, folder.name, _config(folder))


def _only_file(folder: Folder) -> str | None:
    try:
        return containers.choose(folder)
    except CheckpointError as error:
        if (refused := _refused(folder)) is not None:  # that comes first
            raise refused from error
        raise


def _in_file(path: Path) -> _Found:
    folder, name = Folder(path.parent), path.name
    if (other := formats.by_name([name])) is not None:
        raise CheckpointError(other)
    if name.startswith("adapter_model."):
        finding.refuse_adapter(folder)
    if not name.lower().endswith(containers.SUFFIXES) and not formats.writer_of(folder.file(name)):
        if (other := formats.by_content(folder.file(name), name)) is not None:
            raise CheckpointError(other)
        raise _no_model(name)
    if name in containers.STANDARD and _opens_as_said(folder):
        raise _no_model(name)
    return _Found(folder, path.stem, {}, name)


def _no_model(name: str) -> CheckpointError:
    return CheckpointError(
        "{file} is a file; a model is a folder with config.json, the weights and the tokenizer. Give the path "
        "of the folder it lies in.",
        file=name,
    )


def _bare(found: _Found, file: str, answers: Mapping[str, object], numbers: bool) -> model_folder.Examined:
    """The weights by their names alone; where they do not open either, what config.json says comes first."""
    refused = _refused(found.folder)
    kind = None if refused is None else found.folder.object(CONFIG)["model_type"]
    if refused is not None and kind in SAME_NAMES:
        raise refused
    try:
        return state_dict.examine(found.folder, file, found.name, answers, numbers=numbers)
    except UnansweredError:
        raise
    except CheckpointError as error:
        if refused is None:
            raise
        if isinstance(kind, str) and kind in BECAUSE:
            raise refused from error
        raise CheckpointError("{first} {second}", first=refused.message, second=error.message) from error


def _refused(folder: Folder) -> CheckpointError | None:
    """Why what config.json says does not open, if it says a type."""
    raw = folder.json(CONFIG) if folder.has(CONFIG) else None
    if not isinstance(raw, dict) or "model_type" not in raw:
        return None
    try:
        model_folder.family_of(raw)
    except CheckpointError as error:
        return error
    return None


def _no_answers(found: _Found, answers: Mapping[str, object]) -> None:
    if given := [name for name, answer in answers.items() if answer is not None]:
        raise CheckpointError(
            "{name} says itself how it is built: there is nothing to answer. Leave out {names}.",
            name=found.name,
            names=", ".join(given),
        )


def _opens_as_said(folder: Folder) -> bool:
    """Whether config.json says what the folder is, and that opens."""
    if not folder.has(CONFIG):
        return False
    raw = folder.json(CONFIG)
    if not isinstance(raw, dict) or _is_ours(raw):
        return True
    return "model_type" in raw and (_refused(folder) is None or by_transformers.opens(raw))


def _config(folder: Folder) -> dict[str, Any]:
    if not folder.has(CONFIG):
        if (other := formats.by_name(folder.names())) is not None:
            raise CheckpointError(other)
        raise CheckpointError(_of_training(folder) or lacks(folder, CONFIG))
    raw = folder.json(CONFIG)
    if not isinstance(raw, dict) or not (_is_ours(raw) or "model_type" in raw):
        raise CheckpointError(
            "{file} does not say format {format!r}: this folder was not written by VizFormer. Nor does it say "
            "model_type, as the Hugging Face layout does. Give the folder of a model in one of the two.",
            file=CONFIG,
            format=own.FORMAT,
        )
    return raw


def _of_training(folder: Folder) -> Message | None:
    """Where the models lie that a Trainer of `transformers` has written into subfolders; None where there are none."""
    steps = [name for name in folder.names() if _STEP.fullmatch(name) and (folder.path / name).is_dir()]
    if not steps:
        return None
    return N_(
        "{folder} holds no model itself, but those of a training: {steps}. Open one of these folders, such as {last}.",
        folder=folder.name,
        steps=", ".join(steps[:8]),
        last=f"{folder.name}/{max(steps, key=lambda name: int(name.rpartition('-')[2]))}",
    )


def _is_ours(raw: dict[str, Any]) -> bool:
    return raw.get("format") == own.FORMAT and isinstance(raw.get("model"), dict)

"""Bare weights under options and a mapping that somebody wrote: which tensor of the file becomes which parameters.

    config = vf.ModelConfig(vocab_size=50, d_model=64, n_heads=4, d_ff=256, n_decoder_layers=2, ...)
    mapping = {
        "tok.weight": "embedding.weight",
        "blocks.#.att.qkv.weight": [f"decoder.layers.#.self_attention.W_{letter}.weight" for letter in "QKV"],
        "blocks.#.up": {"becomes": "decoder.layers.#.feedforward.W_in.weight", "transposed": True},
        "probe.weight": None,
        0: ["decoder.layers.#.self_norm.bias"],
    }
    vf.load("model.pt", config=config, mapping=mapping)

`#` is the number of a layer, on both sides.  Parameters in a list lie in the tensor one under the other, as rows; a
transposed tensor is [in, out] where ours is [out, in]; None: it plays no part; 0 and 1 fill what the file lacks (the shifts
of norms without a bias).  Names of parameters: `[name for name, _ in vf.Transformer(config).named_parameters()]`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch

from vizformer.checkpoints.bare.derived_tensors import reshaped
from vizformer.checkpoints.bare.layout import Layout, Plan
from vizformer.checkpoints.bare.understanding import Source, understood
from vizformer.checkpoints.files.containers import open_file
from vizformer.checkpoints.files.untrusted_folder import Folder, listed, shown
from vizformer.checkpoints.files.weights import Weights
from vizformer.checkpoints.hugging_face.model_folder import Examined, empty_model
from vizformer.checkpoints.tensors.tensor_map import Part, Shape
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message

NAME = "mapping"
_NUMBER = "#"


class _Entry(NamedTuple):
    tensor: str | int  # its name, or the number that fills
    targets: tuple[str, ...]  # none: it plays no part
    transposed: bool = False


def examine(folder: Folder, file: str, name: str, config: object, mapping: object) -> Examined:
    """The model that the weights are by a mapping; `config` is a `ModelConfig`, or its options.

    Raises:
        CheckpointError: no mapping, or one that names what is not there, names a parameter twice or leaves one out; all
            problems at once.  Tensors of another shape, or without a place, are problems of the report.
        ConfigError: options that make no model.
    """
    content = open_file(folder, file)
    options = config if isinstance(config, ModelConfig) else ModelConfig.from_dict(_table(config, file))
    shapes = {name: tuple(tensor.shape) for name, tensor in empty_model(options).state_dict().items()}
    entries, problems = _entries(_table(mapping, file))
    parts: list[Part] = []
    fills: dict[str, Any] = {}
    unused: dict[str, Message] = {}
    for entry in (one for written in entries for one in _layers(written, content.weights, shapes, problems)):
        if isinstance(entry.tensor, int):
            fills |= dict.fromkeys(entry.targets, torch.ones if entry.tensor else torch.zeros)
        elif entry.targets:
            parts.append(Part(entry.tensor, entry.targets, entry.transposed))
        else:
            unused[entry.tensor] = N_("by the mapping, the model does not use it")
    named = [target for part in parts for target in part.targets] + list(fills)
    for names in (named, [part.source for part in parts] + list(unused)):
        problems += [N_("{name} is listed twice", name=shown(one)) for one, n in Counter(names).items() if n > 1]
    problems += [N_("no tensor is mapped to {name} {shape}", name=shown(one), shape=list(shapes[one]))
                 for one in shapes if one not in named]  # fmt: skip
    if problems:
        raise CheckpointError(
            "The mapping does not fit {file} and its config: {problems}.", file=file, problems=listed(problems)
        )
    note = N_("the config and the roles of {n} tensors were given when the model was opened", n=len(parts))
    made = {name: reshaped(name, shape) for name, shape in _squeezed(parts, content.weights, shapes)}
    notes = (*content.weights.notes, note)
    plan = Plan(options.to_dict(), parts, unused=unused, fills=fills, assumptions=notes, made=made)
    return understood(
        Source(folder, name, content), Layout(NAME, (), lambda answers: plan, said_by=N_("the mapping")), {}
    )


def _table(given: object, file: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise CheckpointError(
            "{file}: a mapping needs its config, and a config its mapping, both as dicts (the config may be a ModelConfig).",
            file=file,
        )
    return given


def _entries(mapping: Mapping[Any, Any]) -> tuple[list[_Entry], list[Message]]:
    """The mapping as it was written, and what in it is none."""
    entries, wrong = list[_Entry](), list[Message]()
    for tensor, value in mapping.items():
        said = value if isinstance(value, Mapping) else {"becomes": value}
        becomes, transposed = said.get("becomes"), said.get("transposed", False)
        targets = (becomes,) if isinstance(becomes, str) else () if becomes is None else becomes
        is_list = isinstance(targets, (list, tuple)) and all(isinstance(one, str) for one in targets)
        is_name = isinstance(tensor, str) or (type(tensor) is int and tensor in (0, 1))
        if not (is_list and is_name and isinstance(transposed, bool) and said.keys() <= {"becomes", "transposed"}):
            wrong.append(
                N_(
                    "{tensor}: {value} must be the name of a parameter, a list of names, None, or a dict with becomes and "
                    "transposed (true or false)",
                    tensor=shown(tensor),
                    value=shown(value),
                )
            )
        elif (
            len({_NUMBER in name for name in (*targets, *([tensor] if isinstance(tensor, str) and targets else []))})
            > 1
        ):
            wrong.append(N_("{tensor}: # must appear on both sides or on neither", tensor=shown(tensor)))
        else:
            entries.append(_Entry(tensor, tuple(targets), transposed))
    return entries, wrong


def _layers(entry: _Entry, weights: Weights, shapes: Mapping[str, Shape], problems: list[Message]) -> Iterator[_Entry]:
    """An entry for each layer that has one; what it names and is not there is a problem."""
    known = shapes if isinstance(entry.tensor, int) else weights.tensors
    pattern = entry.targets[0] if isinstance(entry.tensor, int) and entry.targets else str(entry.tensor)
    numbers = [found[1] if _NUMBER in pattern else "" for name in known if (found := _matching(pattern, name))]
    if not numbers:
        problems.append(N_("there is no {name}", name=shown(pattern)))
    for number in numbers:
        tensor = entry.tensor if isinstance(entry.tensor, int) else entry.tensor.replace(_NUMBER, number, 1)
        targets = tuple(target.replace(_NUMBER, number, 1) for target in entry.targets)
        if strange := [target for target in targets if target not in shapes]:
            problems += [N_("the config makes no parameter {name}", name=shown(target)) for target in strange]
            continue
        yield _Entry(tensor, targets, entry.transposed)


def _matching(pattern: str, name: str) -> re.Match[str] | None:
    before, number, after = pattern.partition(_NUMBER)
    return re.fullmatch(re.escape(before) + (r"(\d{1,4})" if number else "") + re.escape(after), name)


def _squeezed(parts: list[Part], weights: Weights, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Shape]]:
    """Tensors that differ from what is needed in axes of length 1 alone, and the shape in which they are read."""
    for part in parts:
        needed, stored = part.shape(shapes), weights.tensors[part.source].shape
        if stored != needed and [n for n in stored if n != 1] == [n for n in needed if n != 1]:
            yield part.source, needed

"""Our own format: a folder with config.json, model.safetensors and tokenizer.json.

tokenizer_of_targets.json is there as well where translations are split otherwise than texts, into the same ids, and
source_tokenizer.json where texts have a vocabulary of their own; tokenizer.json is then the target's.  A translator of
both directions says in config.json which token it puts before a text: `"first_tokens": {"CJK": "<2en>", ...}`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vizformer.checkpoints.files.untrusted_folder import Folder, damaged
from vizformer.checkpoints.files.weights import FLOATS, Weights, all_finite, open_weights, write_weights
from vizformer.checkpoints.own.checkpoint import Checkpoint
from vizformer.checkpoints.tensors.filling import fill
from vizformer.checkpoints.tensors.matching import Found
from vizformer.checkpoints.tensors.report import Report, TensorFate, parameters_by_component
from vizformer.checkpoints.tensors.tensor_map import Part
from vizformer.checkpoints.tokenizers.refusals import guarded
from vizformer.checkpoints.tokenizers.token_ids import as_numbers
from vizformer.checkpoints.tokenizers.vocabularies import SOURCES, read_tokenizer, tried
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import N_, Message
from vizformer.model import Transformer
from vizformer.model.initialisation import without_memory
from vizformer.text import Tokenizer

FORMAT = "vizformer-1"
CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
_MOST_NUMBERS = 2**28  # of a table of positions; 2 GB while it is computed
FIRST_TOKENS = "first_tokens"  # in CONFIG
TARGETS = "tokenizer_of_targets.json"  # only where translations are split otherwise than texts


@dataclass(frozen=True)
class Examined:
    """A folder of ours that was understood: everything but the numbers has been read."""

    report: Report
    tokenizer: Tokenizer
    weights: Weights
    source_tokenizer: Tokenizer | None = None


def examine(folder: Folder, raw: dict[str, Any]) -> Examined:
    """Reads what a folder in our format holds; `raw` is its config.json.

    Raises:
        ConfigError: illegal options.
    """
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not folder.has(name):
            raise CheckpointError(lacks(folder, name))
    if any(len(str(part)) > 200 for field in raw["model"].items() for part in field):
        raise damaged(CONFIG, "a field is far too long")
    config = ModelConfig.from_dict(raw["model"])
    if config.max_positions * config.d_model > _MOST_NUMBERS:
        raise damaged(CONFIG, f"max_positions={config.max_positions}: a table of them would fill the memory")
    weights = open_weights(folder)
    most = weights.longest_side
    tokenizer, source = _tokenizer(folder, TOKENIZER, config.vocab_size, most), None
    if config.source_vocab_size is not None:
        source = _tokenizer(folder, SOURCES, config.source_vocab_size, most)
    if folder.has(TARGETS):
        tokenizer = tried(tokenizer.with_target(read_tokenizer(folder, TARGETS, most)))
    if FIRST_TOKENS in raw:
        marked = _two_way(source or tokenizer, raw[FIRST_TOKENS])
        tokenizer, source = (marked, None) if source is None else (tokenizer, marked)
    report = Report(
        name=folder.name,
        format="vizformer",
        family="VizFormer",
        declared="",
        config=config,
        has_head=True,
        files=weights.files,
        tensors=tuple(
            TensorFate(name, stored.file, stored.shape, stored.dtype, "used", (name,))
            for name, stored in sorted(weights.tensors.items())
        ),
        parameters=parameters_by_component((name, stored.shape) for name, stored in weights.tensors.items()),
    )
    return Examined(report, tokenizer, weights, source)


def _tokenizer(folder: Folder, name: str, rows: int, most: int) -> Tokenizer:
    """A tokenizer for a table of embeddings with so many rows; no tensor in the file has more than `most`."""
    if not folder.has(name):
        raise CheckpointError(lacks(folder, name))
    tokenizer = tried(as_numbers(guarded(name, lambda: Tokenizer(read_tokenizer(folder, name, most)))))
    if tokenizer.vocab_size > rows:
        raise CheckpointError(
            "{file} has {found} tokens but config.json says {option}={expected}: they belong to different models.",
            file=name,
            found=tokenizer.vocab_size,
            expected=rows,
            option="vocab_size" if name == TOKENIZER else "source_vocab_size",
        )
    return tokenizer


def _two_way(tokenizer: Tokenizer, first_tokens: Any) -> Tokenizer:
    if not isinstance(first_tokens, dict) or not all(isinstance(piece, str) for piece in first_tokens.values()):
        raise damaged(CONFIG, f"{FIRST_TOKENS} must give a token for each script")
    return guarded(CONFIG, lambda: tokenizer.with_first_tokens(first_tokens))


def save_own(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.to(dtype).contiguous() for name, tensor in checkpoint.model.state_dict().items()}
    held: set[int] = set()
    for name, tensor in weights.items():  # several of ours may be one tensor, which a file holds for each
        weights[name] = tensor.clone() if tensor.data_ptr() in held else tensor
        held.add(tensor.data_ptr())
    write_weights(weights, folder / WEIGHTS, {"format": FORMAT})
    options: dict[str, Any] = {"format": FORMAT, "model": checkpoint.model.config.to_dict()}
    if first_tokens := checkpoint.tokenizer_of("encoder").first_tokens:
        options[FIRST_TOKENS] = dict(first_tokens)
    (folder / CONFIG).write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
    checkpoint.tokenizer.save(folder / TOKENIZER)
    if checkpoint.source_tokenizer is not None:
        checkpoint.source_tokenizer.save(folder / SOURCES)
    if targets := checkpoint.tokenizer.target_json:
        (folder / TARGETS).write_text(targets, encoding="utf-8")


def lacks(folder: Folder, name: str) -> Message:
    return N_(
        "{folder} lacks {file}: a model folder needs config.json, model.safetensors and tokenizer.json.",
        folder=folder.name,
        file=name,
    )


def build(examined: Examined, dtype: torch.dtype, device: torch.device) -> Transformer:
    """The model with its numbers; on the processor, tensors that are stored in `dtype` stay mapped to the file."""
    weights, config = examined.weights, examined.report.config
    assert config is not None
    model = _empty_model(config, len(weights.tensors))
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    found = {name: stored.shape for name, stored in weights.tensors.items()}
    if expected != found:
        wrong = sorted(set(expected) ^ set(found)) or sorted(n for n in expected if expected[n] != found[n])
        raise CheckpointError(
            "{file} does not fit config.json: {n} tensors differ, the first is {name!r}. They belong to different "
            "models.",
            file=WEIGHTS,
            n=len(wrong),
            name=wrong[0][:80],
        )
    used = [(Part(name, (name,)), Found(name, stored)) for name, stored in weights.tensors.items()]
    for __, tensor in used:
        if tensor.stored.dtype not in FLOATS or not all_finite(tensor.read()):
            raise damaged(WEIGHTS, f"{tensor.name!r} holds what is no finite number")
    shapes = {name: stored.shape for name, stored in weights.tensors.items()}
    try:
        fill(model, used, shapes, {}, dtype, device)
    except RuntimeError as error:
        raise damaged(CONFIG, error) from error  # more positions than fit into memory
    return model


def _empty_model(config: ModelConfig, n_tensors: int) -> Transformer:
    """The model without memory for its weights, unless the config asks for what no file of `n_tensors` can fill."""
    n_layers = config.depth
    if n_layers > n_tensors:
        raise damaged(CONFIG, f"{n_layers} layers, but {WEIGHTS} has {n_tensors} tensors")
    try:
        with without_memory():
            return Transformer(config)
    except (RuntimeError, TypeError) as error:  # sizes that no tensor can have
        raise damaged(CONFIG, error) from error

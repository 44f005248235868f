"""Our own format: a folder with config.json, model.safetensors and tokenizer.json."""

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from vizformer.assets import asset, bundled_models
from vizformer.checkpoints.checkpoint import Checkpoint
from vizformer.config import ModelConfig
from vizformer.errors import CheckpointError
from vizformer.messages import N_
from vizformer.model import Transformer
from vizformer.text import Tokenizer

FORMAT = "vizformer-1"
CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"


def load(source: str | Path) -> Checkpoint:
    """Opens a bundled model by name, or a folder in our format.

    Weights are kept in float32, frozen.

    Raises:
        CheckpointError: nothing there, or files that are damaged or do not fit together; names the file, what was
            found and the way out.
        ConfigError, TokenizerError: illegal options, an unreadable tokenizer.
    """
    if str(source) in bundled_models():
        folder = asset("models", str(source))
    elif os.path.isdir(folder := Path(source)):  # (Path.is_dir raises where a name is too long)
        pass
    else:
        raise CheckpointError(
            N_("There is no model {source!r}. Give the path of a folder, or one of: {names}.", source=str(source),
               names=", ".join(bundled_models()) or "-")
        )  # fmt: skip
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            raise CheckpointError(
                N_("{folder} lacks {file}: a model folder needs config.json, model.safetensors and tokenizer.json.",
                   folder=folder.name, file=name)
            )  # fmt: skip
    config = _read_config(folder / CONFIG)
    tokenizer = Tokenizer.from_file(folder / TOKENIZER)
    if tokenizer.vocab_size > config.vocab_size:
        raise CheckpointError(
            N_("tokenizer.json has {found} tokens but config.json says vocab_size={expected}: they belong to different "
               "models.", found=tokenizer.vocab_size, expected=config.vocab_size)
        )  # fmt: skip
    return Checkpoint(folder.name, _read_model(folder / WEIGHTS, config), tokenizer)


def save(checkpoint: Checkpoint, folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """Writes a folder that `load` opens; float16 halves the size and keeps about three digits."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.to(dtype).contiguous() for name, tensor in checkpoint.model.state_dict().items()}
    save_file(weights, folder / WEIGHTS, metadata={"format": FORMAT})
    options = {"format": FORMAT, "model": checkpoint.model.config.to_dict()}
    (folder / CONFIG).write_text(json.dumps(options, indent=2) + "\n", encoding="utf-8")
    checkpoint.tokenizer.save(folder / TOKENIZER)


def _read_config(path: Path) -> ModelConfig:
    try:
        options: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            N_("{file} is not JSON ({reason}). Copy it again from the model's source.", file=path.name,
               reason=str(error))
        ) from error  # fmt: skip
    if not isinstance(options, dict) or options.get("format") != FORMAT or not isinstance(options.get("model"), dict):
        raise CheckpointError(
            N_("{file} does not say format {format!r}: this folder was not written by VizFormer.", file=path.name,
               format=FORMAT)
        )  # fmt: skip
    return ModelConfig.from_dict(options["model"])


def _read_model(path: Path, config: ModelConfig) -> Transformer:
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise _damaged(path.name, error) from error
    model = _empty_model(config, len(weights))
    expected = {name: tensor.shape for name, tensor in model.state_dict().items()}
    found = {name: tensor.shape for name, tensor in weights.items()}
    if expected != found:
        wrong = sorted(set(expected) ^ set(found)) or sorted(n for n in expected if expected[n] != found[n])
        raise CheckpointError(
            N_("{file} does not fit config.json: {n} tensors differ, the first is {name!r}. They belong to different "
               "models.", file=path.name, n=len(wrong), name=wrong[0])
        )  # fmt: skip
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    try:
        model.materialise_buffers()
    except RuntimeError as error:
        raise _damaged(CONFIG, error) from error  # more positions than fit into memory
    return model


def _empty_model(config: ModelConfig, n_tensors: int) -> Transformer:
    """The model without memory for its weights, unless the config asks for what no file of `n_tensors` can fill."""
    n_layers = config.n_encoder_layers + config.n_decoder_layers
    if n_layers > n_tensors:
        raise _damaged(CONFIG, f"{n_layers} layers, but {WEIGHTS} has {n_tensors} tensors")
    try:
        with torch.device("meta"):
            return Transformer(config)
    except (RuntimeError, TypeError) as error:  # sizes that no tensor can have
        raise _damaged(CONFIG, error) from error


def _damaged(file: str, reason: object) -> CheckpointError:
    return CheckpointError(
        N_("{file} cannot be read ({reason}). It is damaged or incomplete: copy it again.", file=file,
           reason=str(reason).partition("\n")[0])
    )  # fmt: skip

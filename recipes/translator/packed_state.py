"""A state of the training in a few MB: `python -m recipes.translator.packed_state pack WORK FOLDER`.

The averaged weights go in 8 bits, with a scale for each row.  Adam's means do not go along: they look 50 updates back and
are soon there again.
What comes out differs from what went in by at most 1/254 of a row's largest weight.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from recipes.loop import new_optimizer
from recipes.translator.train import OPTIONS, STATE, TOKENIZER, averaged
from vizformer.config import ModelConfig
from vizformer.model import Transformer

WEIGHTS, COUNTS = "weights.safetensors", "counts.json"
SCALE = ".scale"


def packed(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as whole numbers from -127 to 127 and a scale for each row; what has one dimension stays as it is."""
    found: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() < 2:
            found[name] = weight
            continue
        scale = weight.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 127
        found[name], found[name + SCALE] = (weight / scale).round().to(torch.int8), scale
    return found


def unpacked(found: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name: weight * found[name + SCALE] if name + SCALE in found else weight
        for name, weight in found.items()
        if not name.endswith(SCALE)
    }


def pack(work: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(packed(averaged(work).model.state_dict()), folder / WEIGHTS)
    (folder / COUNTS).write_text(json.dumps(counts_of(work), indent=1) + "\n", encoding="utf-8")
    for name in (OPTIONS, TOKENIZER):
        shutil.copy(work / name, folder / name)


def counts_of(work: Path) -> dict[str, Any]:
    """How far the training in a folder is."""
    state = torch.load(work / STATE, map_location="cpu", weights_only=True)
    return {name: state[name] for name in ("options", "config", "epoch", "step", "seconds")}


def unpack(folder: Path, work: Path) -> None:
    if (work / STATE).exists():
        raise click.ClickException(f"{work} holds a training: choose another folder.")
    counts = json.loads((folder / COUNTS).read_text(encoding="utf-8"))
    write_state(unpacked(load_file(folder / WEIGHTS)), counts, work, like=folder)


def write_state(weights: dict[str, Tensor], counts: Mapping[str, Any], work: Path, *, like: Path) -> None:
    """A training that begins with these weights, after so many updates; its vocabulary and options are those of `like`."""
    model = Transformer(ModelConfig.from_dict(counts["config"]))
    model.load_state_dict(weights)
    work.mkdir(parents=True, exist_ok=True)
    for name in (OPTIONS, TOKENIZER):
        shutil.copy(like / name, work / name)
    state = dict(
        **counts,
        model=model.state_dict(),
        average=AveragedModel(model).state_dict(),
        optimizer=new_optimizer(model).state_dict(),
    )
    torch.save(state, work / STATE)


@click.command()
@click.argument("what", type=click.Choice(["pack", "unpack"]))
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("destination", type=click.Path(file_okay=False, path_type=Path))
def main(what: str, source: Path, destination: Path) -> None:
    """Write the state in the folder SOURCE into the folder DESTINATION: small to be carried, or to go on with."""
    (pack if what == "pack" else unpack)(source, destination)


if __name__ == "__main__":
    main()

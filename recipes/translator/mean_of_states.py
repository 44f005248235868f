"""The mean of a training's weights at several times: `python -m recipes.translator.mean_of_states WORK WORK ... OUT`.

What was learned late and what was learned before both stay: the mean of a model and of the same model trained further on
other lines is often better on the lines of both than either.
Source: Vaswani et al. 2017, section 6.1 (the mean of the last checkpoints); Wortsman et al. 2022, "Robust fine-tuning of
zero-shot models".
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

import click
import torch
from torch import Tensor

from recipes.translator.packed_state import counts_of, write_state
from recipes.translator.train import LOG, STATE, averaged


def mean_weights(works: Sequence[Path]) -> dict[str, Tensor]:
    """Of each weight the mean over the averaged models of these trainings."""
    every = [averaged(work).model.state_dict() for work in works]
    return {name: torch.stack([one[name] for one in every]).mean(0) for name in every[0]}


@click.command()
@click.argument("works", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
def main(works: tuple[Path, ...], out: Path) -> None:
    """Write the mean of the states in the folders WORKS, which are of one training, into OUT, as a state like the last."""
    if (out / STATE).exists():
        raise click.ClickException(f"{out} holds a training: choose another folder.")
    write_state(mean_weights(works), counts_of(works[-1]), out, like=works[-1])
    if (works[-1] / LOG).is_file():
        shutil.copy(works[-1] / LOG, out / LOG)


if __name__ == "__main__":
    main()

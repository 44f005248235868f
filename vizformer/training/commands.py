"""What `vizformer train` and `vizformer evaluate` do."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import Checkpoint, load, save
from vizformer.training.cloze import CLOZE, train_cloze
from vizformer.training.corpus import CHINESE, find_file, read_corpus
from vizformer.training.evaluation import evaluate_translator, machine, save_notes, write_card
from vizformer.training.loop import Progress
from vizformer.training.recipe import TextRecipe
from vizformer.training.stories import STORIES, train_stories
from vizformer.training.text_cards import write_cloze_card, write_stories_card
from vizformer.training.text_evaluation import evaluate_cloze, evaluate_stories
from vizformer.training.translation import ZH_EN, prepare, train_translator

TRAINING, EVALUATION, BASELINE = "training.json", "evaluation.json", "baseline.json"
Say = Callable[[str], None]


_TEXT_MODELS = {"stories": train_stories, "cloze": train_cloze}


def train_bundled(name: str, data: Path, out: Path, work: Path, threads: int | None, say: Say) -> None:
    """Trains a bundled model into the folder `out`, with notes of what it was made from."""
    if threads:
        torch.set_num_threads(threads)
    recipes: dict[str, TextRecipe] = {"zh-en": ZH_EN, "stories": STORIES, "cloze": CLOZE}
    notes: dict[str, Any] = {"recipe": asdict(recipes[name]), "machine": machine()}

    def report(progress: Progress) -> None:
        validation = "".join(f", held-out {key} {value:.3f}" for key, value in progress.validation.items())
        say(
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
    say("Reading the data and learning the vocabulary ...")
    if name == "zh-en":
        file = find_file(data, CHINESE)
        prepared = prepare(ZH_EN, file)
        notes |= {"data": file.name, "pairs": len(prepared.split.train)}
        checkpoint = train_translator(ZH_EN, prepared, work, report)
    else:
        checkpoint = _TEXT_MODELS[name](read_corpus(data), work, report)
    save(checkpoint, out)
    if (work / TRAINING).is_file():  # a training that was finished already reports nothing: these are its notes
        save_notes(out, TRAINING, json.loads((work / TRAINING).read_text(encoding="utf-8")))
    say(f"The model is in {out}. Measure it: vizformer evaluate {out} --data {data}")


def evaluate_bundled(model: str, data: Path, say: Say, more: Callable[[Checkpoint, Path], dict[str, Any]]) -> None:
    """Measures a model on the held-out part of its data and writes evaluation.json and the card.

    `more` measures what only later stations can (alignment, heads); it gets the checkpoint and its folder.
    """
    folder = asset("models", model) if model in bundled_models() else Path(model)
    checkpoint = load(folder)
    architecture = checkpoint.model.config.architecture
    if architecture == "encoder-decoder":
        results = evaluate_translator(checkpoint, prepare(ZH_EN, find_file(data, CHINESE)).split.test)
    elif architecture == "decoder-only":
        results = evaluate_stories(checkpoint, read_corpus(data))
    else:
        results = evaluate_cloze(checkpoint, read_corpus(data))
    results |= more(checkpoint, folder)
    save_notes(folder, EVALUATION, results)
    if notes := _notes(folder, TRAINING):  # a folder from elsewhere has none, and keeps its own card
        if architecture == "encoder-decoder":
            write_card(folder, checkpoint, notes, results)
        elif architecture == "decoder-only":
            write_stories_card(folder, checkpoint, notes, results, _notes(folder, BASELINE))
        else:
            write_cloze_card(folder, checkpoint, notes, results)
    say(json.dumps({name: value for name, value in results.items() if name != "samples"}))


def _notes(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (folder / name).is_file():
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    return found

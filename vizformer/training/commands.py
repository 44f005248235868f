"""What `vizformer train` and `vizformer evaluate` do."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vizformer.assets import asset, bundled_models
from vizformer.checkpoints import load, save
from vizformer.training.evaluation import evaluate_translator, machine, save_notes, write_card
from vizformer.training.loop import Progress
from vizformer.training.translation import ZH_EN, build, prepare

TRAINING, EVALUATION = "training.json", "evaluation.json"
Say = Callable[[str], None]


def train_bundled(
    name: str, data: Path, english: Path | None, out: Path, work: Path, threads: int | None, say: Say
) -> None:
    """Trains a bundled model into the folder `out`, with notes of what it was made from."""
    if threads:
        torch.set_num_threads(threads)
    recipe = ZH_EN
    say("Splitting the data and learning the vocabulary ...")
    prepared = prepare(recipe, data)
    last: dict[str, Progress] = {}

    def report(stage: str, progress: Progress) -> None:
        last[stage] = progress
        validation = "".join(f", held-out {key} {value:.3f}" for key, value in progress.validation.items())
        say(
            f"{stage}: epoch {progress.epoch + 1}/{progress.epochs}, step {progress.step}, loss {progress.loss:.3f}"
            f"{validation}, {progress.tokens_per_second:.0f} target tokens/s, {progress.seconds / 60:.1f} min"
        )

    checkpoint = build(recipe, prepared, work, report, english=english)
    save(checkpoint, out)
    stages = {
        stage: {
            "epochs": p.epochs,
            "steps": p.step,
            "minutes": round(p.seconds / 60, 1),
            "held_out": dict(p.validation),
        }
        for stage, p in last.items()
    }
    save_notes(out, TRAINING, {"recipe": asdict(recipe), "stages": stages, "machine": machine(),
                               "data": [path.name for path in (data, english) if path is not None],
                               "pairs": len(prepared.split.train)})  # fmt: skip
    say(f"The model is in {out}. Measure it: vizformer evaluate {out} --data {data}")


def evaluate_bundled(model: str, data: Path, say: Say) -> None:
    """Measures a model on the held-out test pairs of its data and writes evaluation.json and the card."""
    folder = asset("models", model) if model in bundled_models() else Path(model)
    checkpoint = load(folder)
    test = prepare(ZH_EN, data).split.test
    results = evaluate_translator(checkpoint, test)
    save_notes(folder, EVALUATION, results)
    if (folder / TRAINING).is_file():  # a folder from elsewhere has no notes, and keeps its own card
        notes: dict[str, Any] = json.loads((folder / TRAINING).read_text(encoding="utf-8"))
        write_card(folder, checkpoint, notes, results)
    say(f"BLEU {results['bleu']}, chrF {results['chrf']} on {results['pairs']} held-out pairs ({results['seconds']} s)")

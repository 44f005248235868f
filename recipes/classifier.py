"""The classifier of the lesson Training, trained in both languages: what is shown until a reader has it trained.

python -m recipes.classifier assets/lessons/training/classifier.json      # half a minute, one core
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from recipes.arguments import paths
from vizformer.checkpoints import load
from vizformer.training.classifier import BODIES, MODEL, train

LANGUAGES = ("en", "zh_CN")


def epochs(language: str) -> Iterator[dict[str, Any]]:
    """Every epoch of every way."""
    checkpoint = load(MODEL)
    for body in BODIES:
        for reached in train(body, checkpoint, language):
            yield asdict(reached.epoch)


def main(path: Path) -> None:
    torch.set_num_threads(1)
    path.write_text(json.dumps({language: list(epochs(language)) for language in LANGUAGES}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*paths(1, __doc__))

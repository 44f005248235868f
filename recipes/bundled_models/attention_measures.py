"""What is measured of a model's attention, for its card."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis.heads.induction import head_scores, repeated_tokens
from vizformer.analysis.heads.word_alignment import alignment_score, read_alignments
from vizformer.checkpoints import Checkpoint

PERIOD, SEQUENCES = 50, 16


def measure(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """Alignment of a translator, previous-token and induction heads of a decoder-only model, else nothing."""
    architecture = checkpoint.model.config.architecture
    if architecture == "encoder-decoder":
        return measure_alignment(checkpoint, folder)
    return {"heads": measure_heads(checkpoint)} if architecture == "decoder-only" else {}


def measure_alignment(checkpoint: Checkpoint, folder: Path) -> dict[str, Any]:
    """The alignment score; nothing where the model's folder has no alignments by hand."""
    path = folder / "alignment.tsv"
    if not path.is_file():
        return {}
    pairs = read_alignments(path)
    score = alignment_score(checkpoint, pairs)
    layer = score.best_layer
    return {
        "alignment": {"pairs": len(pairs), "words": score.words, "layer": layer, "found": float(score.found[layer])}
    }


def measure_heads(checkpoint: Checkpoint) -> dict[str, Any]:
    """The clearest previous-token and induction head on random tokens that are repeated once."""
    config = checkpoint.model.config
    candidates = torch.tensor([i for i in range(config.vocab_size) if not checkpoint.tokenizer.is_special(i)])
    ids = repeated_tokens(candidates, sequences=SEQUENCES, period=PERIOD)
    start = 0
    if config.bos_id is not None:
        ids, start = torch.cat([torch.full((SEQUENCES, 1), config.bos_id), ids], dim=1), 1
    scores = head_scores(checkpoint.model, ids, PERIOD, start)
    return {
        "period": PERIOD,
        "previous_token": _best(scores.previous_token),
        "induction": _best(scores.induction),
    }


def _best(scores: Float[ndarray, "n_layers n_heads"]) -> dict[str, Any]:
    layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
    return {"layer": int(layer), "head": int(head), "score": round(float(scores.max()), 3)}

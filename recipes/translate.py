"""Translating many sentences."""

from collections.abc import Sequence

from vizformer.checkpoints.own.checkpoint import Checkpoint
from vizformer.generation import greedy_batch


def translate_all(checkpoint: Checkpoint, sources: Sequence[str], *, max_new: int = 80, batch: int = 64) -> list[str]:
    """Greedy translations, in batches of similar length, in the order of `sources`."""
    encoded = [[token.id for token in checkpoint.tokenizer_of("encoder").encode(source)] for source in sources]
    order = sorted(range(len(sources)), key=lambda i: len(encoded[i]))
    translations: dict[int, str] = {}
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        outputs = greedy_batch(checkpoint.model, [encoded[i] for i in chosen], max_new=max_new)
        for index, ids in zip(chosen, outputs, strict=True):
            translations[index] = checkpoint.tokenizer.decode(ids).strip()
    return [translations[i] for i in range(len(sources))]

"""Translating many sentences."""

from collections.abc import Sequence

from vizformer.analysis.decoding.read_back import all_read_back
from vizformer.checkpoints.own import Checkpoint
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


def translate_and_read_back(checkpoint: Checkpoint, source: str, *, width: int, max_new: int = 80) -> str:
    """Of what a beam of this width finds, the translation from which the source is found again best."""
    found = checkpoint.beam(source, width=width, max_new=max_new)
    return all_read_back(checkpoint, source, found)[0].text

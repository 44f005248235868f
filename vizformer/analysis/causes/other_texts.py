"""Runs over other texts, from which means and outputs are taken that stand in the place of a part."""

from collections.abc import Iterable
from contextlib import suppress

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.checkpoints import AnyCheckpoint
from vizformer.errors import VizformerError
from vizformer.model import Trace


def read_other_texts(checkpoint: AnyCheckpoint, passages: Iterable[Passage], count: int) -> list[Trace]:
    """Traces of the first `count` passages that the model can read.

    A text that is longer than the model's positions is halved, with its target, until it fits.
    """
    traces = list[Trace]()
    for passage in passages:
        if len(traces) == count:
            break
        text, target = passage.text, passage.target
        while text:
            try:
                traces.append(checkpoint.trace(text, target=target or None))
            except VizformerError:
                text, target = text[: len(text) // 2].strip(), target[: len(target) // 2].strip()
            else:
                break
    return traces


def unknown_share(checkpoint: AnyCheckpoint, passages: Iterable[Passage]) -> float:
    """The share of unknown tokens in some texts, the tokenizer's other special tokens left out; 0 without tokens."""
    unknown = total = 0
    for passage in passages:
        with suppress(VizformerError):
            read = [(checkpoint.tokenizer_of("encoder"), checkpoint.tokenizer_of("encoder").encode(passage.text))]
            if passage.target and checkpoint.shape.architecture == "encoder-decoder":
                read.append((checkpoint.tokenizer_of("decoder"), checkpoint.encode_target(passage.target)))
            for tokenizer, tokens in read:
                none = sum(token.id == tokenizer.unknown_id for token in tokens)
                unknown += none
                total += none + sum(not token.special and token.id != tokenizer.unknown_id for token in tokens)
    return unknown / max(total, 1)

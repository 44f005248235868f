"""Runs over other texts, from which means and outputs are taken that stand in the place of a part."""

from collections.abc import Iterable
from contextlib import suppress

from vizformer.analysis.corpus_heads.corpus import Passage
from vizformer.analysis.heads.induction import repeatable, repeated_tokens
from vizformer.checkpoints import Checkpoint
from vizformer.errors import TraceError, VizformerError
from vizformer.model import Trace


def read_other_texts(checkpoint: Checkpoint, passages: Iterable[Passage], count: int) -> list[Trace]:
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


def unknown_share(checkpoint: Checkpoint, passages: Iterable[Passage]) -> float:
    """Which share of the tokens of some texts is the unknown one, the tokenizer's other marks left out; 0 without tokens."""
    unknown = total = 0
    for passage in passages:
        with suppress(VizformerError):
            read = [(checkpoint.tokenizer_of("encoder"), checkpoint.tokenizer_of("encoder").encode(passage.text))]
            if passage.target and checkpoint.model.config.architecture == "encoder-decoder":
                read.append((checkpoint.tokenizer_of("decoder"), checkpoint.encode_target(passage.target)))
            for tokenizer, tokens in read:
                none = sum(token.id == tokenizer.unknown_id for token in tokens)
                unknown += none
                total += none + sum(not token.special and token.id != tokenizer.unknown_id for token in tokens)
    return unknown / max(total, 1)


def read_repeated_tokens(checkpoint: Checkpoint, count: int, period: int = 8) -> tuple[list[Trace], list[int]]:
    """Traces of random tokens that come twice in the same order, and how many tokens of each cannot be known.

    Only what follows the first token of the repetition can be known from the text: an induction head knows it.

    Raises:
        TraceError: not a decoder-only model, or one that reads too few tokens.
    """
    config = checkpoint.model.config
    if config.architecture != "decoder-only":
        raise TraceError("Repeated tokens are read by a decoder without an encoder.")
    start = [] if config.bos_id is None else [config.bos_id]
    candidates, period = repeatable(config.vocab_size, checkpoint.tokenizer, config.max_positions - len(start), period)
    if period < 2:
        raise TraceError("This model reads too few tokens for any of them to come twice.")
    rows = repeated_tokens(candidates, sequences=count, period=period).tolist()
    return [checkpoint.trace(ids=[*start, *row]) for row in rows], [len(start) + period + 1] * count

"""Cached computations of the lesson Encoder meets decoder."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vizformer.analysis import AlignedPair, Alignment, AlignmentScore, Link, linked, read_alignments
from vizformer.analysis.decoding.changed_memory import Change, Written, changed_memory, probabilities, written
from vizformer.assets import asset
from vizformer.explain import encoder_decoder
from vizformer.explain.encoder_decoder import Attended, EmptyMemory, MemoryReader
from vizformer.training.repeater import Memory, Repeater, Said, load_repeater, say_again
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef


@cached
def attended(subject: Subject, sites: tuple[str, ...]) -> tuple[Attended, ...]:
    return encoder_decoder.attended(subject.checkpoint, subject.trace, sites)


@cached
def memory_readers(subject: Subject) -> tuple[MemoryReader, ...]:
    return encoder_decoder.memory_readers(subject.checkpoint, subject.trace)


# --- alignment --------------------------------------------------------------------------------------------------------


@cached
def alignment(subject: Subject) -> Alignment:
    from vizformer.analysis import alignment

    return alignment(subject.trace)


@cached
def pairs(model: ModelRef) -> tuple[AlignedPair, ...]:
    """The pairs of the model's card that were aligned by hand; none where its folder has none."""
    if model.source != "bundled":
        return ()
    path = asset("models", model.name, "alignment.tsv")
    return tuple(read_alignments(path)) if path.is_file() else ()


@cached
def alignment_score(model: ModelRef) -> AlignmentScore:
    """Over all these pairs: a second's work, once for every model."""
    from vizformer.analysis import alignment_score

    return alignment_score(model_cache.checkpoint(model), pairs(model))


def links(subject: Subject) -> tuple[Link, ...]:
    """The links by hand, where the sentence and its translation are one of those pairs."""
    for pair in pairs(subject.model):
        if (pair.source, pair.target) == (subject.text.strip(), subject.translation):
            target = subject.checkpoint.encode_target(pair.target)
            if [token.id for token in target] == [token.id for token in subject.trace.tokens["decoder"]]:
                return linked(pair, subject.tokens, target)
    return ()


# --- another memory ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rewritten:
    """What is written from a memory, and the probability of each token of the target that is shown, with that memory."""

    written: Written
    probabilities: Float[np.ndarray, " n_target"]


@cached
def rewritten(subject: Subject, change: Change, other: str, token: int) -> Rewritten:
    """With the encoder's output replaced.

    Raises:
        VizformerError: `other` cannot be read.
    """
    loaded, trace = subject.checkpoint, subject.trace
    memory = changed_memory(loaded, trace, change, other=other, token=token)
    return Rewritten(written(loaded, memory), probabilities(loaded, trace, memory))


@cached
def empty_memory(subject: Subject, layer: int) -> EmptyMemory:
    return encoder_decoder.empty_memory(subject.checkpoint, subject.trace, layer)


# --- one vector for all -----------------------------------------------------------------------------------------------


@cached
def repeater(memory: Memory) -> Repeater:
    prepare_torch()
    return load_repeater(asset("lessons", "cross"), memory)


@cached
def said_again(memory: Memory, symbols: tuple[int, ...]) -> Said:
    return say_again(repeater(memory), symbols)


@dataclass(frozen=True)
class Measured:
    """What the two networks reach: memory -> the share of right symbols for texts of 1, 2, ... of them; their size."""

    right: Mapping[Memory, tuple[float, ...]]
    parameters: int
    state: int
    texts: int


@cached
def measured() -> Measured:
    notes = json.loads(asset("lessons", "cross", "bottleneck.json").read_text(encoding="utf-8"))
    right = {memory: tuple(found["right"]) for memory, found in notes["measured"].items()}
    return Measured(right, notes["parameters"], notes["recipe"]["d_h"], notes["recipe"]["measured"])

"""Cached computations of the lesson Encoder meets decoder."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vizformer.assets import asset
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from jaxtyping import Float

    from vizformer.analysis import AlignedPair, Alignment, AlignmentScore, Link
    from vizformer.analysis.memory import Change, Written
    from vizformer.explain.encoder_decoder import Attended, EmptyMemory, MemoryReader
    from vizformer.training.bottleneck import Memory, Repeater, Said


@cached
def attended(subject: Subject, sites: tuple[str, ...]) -> "tuple[Attended, ...]":
    from vizformer.explain.encoder_decoder import attended

    return attended(subject.checkpoint, subject.trace, sites)


@cached
def memory_readers(subject: Subject) -> "tuple[MemoryReader, ...]":
    from vizformer.explain.encoder_decoder import memory_readers

    return memory_readers(subject.checkpoint, subject.trace)


# --- alignment --------------------------------------------------------------------------------------------------------


@cached
def alignment(subject: Subject) -> "Alignment":
    from vizformer.analysis import alignment

    return alignment(subject.trace)


@cached
def pairs(model: ModelRef) -> "tuple[AlignedPair, ...]":
    """The pairs of the model's card that were aligned by hand; none where its folder has none."""
    from vizformer.analysis import read_alignments

    if model.source != "bundled":
        return ()
    path = asset("models", model.name, "alignment.tsv")
    return tuple(read_alignments(path)) if path.is_file() else ()


@cached
def alignment_score(model: ModelRef) -> "AlignmentScore":
    """Over all these pairs: a second's work, once for every model."""
    from vizformer.analysis import alignment_score

    return alignment_score(model_cache.checkpoint(model), pairs(model))


def links(subject: Subject) -> "tuple[Link, ...]":
    """The links by hand, where the sentence and its translation are one of those pairs."""
    from vizformer.analysis import linked

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

    written: "Written"
    probabilities: "Float[np.ndarray, ' n_target']"


@cached
def rewritten(subject: Subject, change: "Change", other: str, token: int) -> Rewritten:
    """With the encoder's output replaced.

    Raises:
        VizformerError: `other` cannot be read.
    """
    from vizformer.analysis.memory import changed_memory, probabilities, written

    loaded, trace = subject.checkpoint, subject.trace
    memory = changed_memory(loaded, trace, change, other=other, token=token)
    return Rewritten(written(loaded, memory), probabilities(loaded, trace, memory))


@cached
def empty_memory(subject: Subject, layer: int) -> "EmptyMemory":
    from vizformer.explain.encoder_decoder import empty_memory

    return empty_memory(subject.checkpoint, subject.trace, layer)


# --- one vector for all -----------------------------------------------------------------------------------------------


@cached
def repeater(memory: "Memory") -> "Repeater":
    prepare_torch()
    from vizformer.training.bottleneck import load_repeater

    return load_repeater(asset("lessons", "cross"), memory)


@cached
def said_again(memory: "Memory", symbols: tuple[int, ...]) -> "Said":
    from vizformer.training.bottleneck import say_again

    return say_again(repeater(memory), symbols)


def share_right(said: tuple[int, ...], symbols: tuple[int, ...]) -> float:
    from vizformer.training.bottleneck import share_right

    return share_right(said, symbols)


@dataclass(frozen=True)
class Measured:
    """What the two networks reach: memory -> the share of right symbols for texts of 1, 2, ... of them; their size."""

    right: "Mapping[Memory, tuple[float, ...]]"
    parameters: int
    state: int
    texts: int


@cached
def measured() -> Measured:
    notes = json.loads(asset("lessons", "cross", "bottleneck.json").read_text(encoding="utf-8"))
    right = {memory: tuple(found["right"]) for memory, found in notes["measured"].items()}
    return Measured(right, notes["parameters"], notes["recipe"]["d_h"], notes["recipe"]["measured"])

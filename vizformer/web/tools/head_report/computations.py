"""Cached computations of the page What each head does."""

from typing import Literal

from jaxtyping import Complex, Float
from numpy import ndarray

from vizformer.analysis import Kind, circuits
from vizformer.analysis.circuits import (
    Composition,
    compositions,
    copying_scores,
    ov_pairs,
    predicting_kind,
    qk_pairs,
    what_is_left_out,
)
from vizformer.analysis.corpus_heads import Corpus, Passage, bundled_corpus
from vizformer.analysis.corpus_heads.passage import HeadOnPassage, head_on_passage
from vizformer.messages import Message
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef


@cached
def bundled(name: str) -> Corpus:
    """The texts that come with VizFormer, in a language."""
    prepare_torch()
    return bundled_corpus(name)


@cached
def on_passage(model: ModelRef, passage: Passage, kind: Kind, layer: int, head: int, measure: str) -> HeadOnPassage:
    """One head on one text, with the cells of what was measured marked."""
    return head_on_passage(model_cache.checkpoint(model), passage, kind, layer, head, measure)


@cached
def predicting(model: ModelRef) -> Kind:
    """The self-attention whose circuits are shown."""
    return predicting_kind(model_cache.checkpoint(model))


@cached
def left_out(model: ModelRef) -> tuple[Message, ...]:
    """What the circuits of a model leave out."""
    return tuple(what_is_left_out(model_cache.checkpoint(model)))


@cached
def copying(model: ModelRef) -> Float[ndarray, "n_layers n_heads"]:
    """The copying score of every head."""
    return copying_scores(model_cache.checkpoint(model))


@cached
def eigenvalues(model: ModelRef, layer: int, head: int) -> Complex[ndarray, " d_head"]:
    """Those of a head's OV circuit."""
    return circuits.eigenvalues(model_cache.checkpoint(model), layer, head)


@cached
def composition(model: ModelRef) -> Composition:
    """Which head reads what which earlier one writes."""
    return compositions(model_cache.checkpoint(model))


@cached
def pairs(
    model: ModelRef, circuit: Literal["qk", "ov"], layer: int, head: int, distance: int
) -> list[tuple[str, str, float]]:
    """The largest pairs of tokens of a circuit, as texts."""
    checkpoint = model_cache.checkpoint(model)
    found = (
        qk_pairs(checkpoint, layer, head, distance=distance) if circuit == "qk" else ov_pairs(checkpoint, layer, head)
    )
    tokenizer = checkpoint.tokenizer_of("encoder" if checkpoint.model.decoder is None else "decoder")
    rows = tokenizer.tokens([pair.row for pair in found])
    columns = tokenizer.tokens([pair.column for pair in found])
    return [(row.text, column.text, pair.value) for row, column, pair in zip(rows, columns, found, strict=True)]

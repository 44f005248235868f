"""Cached computations of the page What each head does."""

from typing import Literal

from vizformer.analysis import circuits
from vizformer.analysis.circuits import (
    compositions,
    copying_scores,
    ov_pairs,
    predicting_kind,
    qk_pairs,
    what_is_left_out,
)
from vizformer.analysis.corpus_heads import Corpus, bundled_corpus
from vizformer.analysis.corpus_heads.passage import head_on_passage
from vizformer.messages import Message
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject_functions import of_model
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef


@cached
def bundled(name: str) -> Corpus:
    prepare_torch()
    return bundled_corpus(name)


on_passage = of_model(head_on_passage)
predicting = of_model(predicting_kind)


@cached
def left_out(model: ModelRef) -> tuple[Message, ...]:
    return tuple(what_is_left_out(model_cache.checkpoint(model)))


copying = of_model(copying_scores)
eigenvalues = of_model(circuits.eigenvalues)
composition = of_model(compositions)


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

"""Cached computations of the page What each head does."""

from contextlib import suppress
from typing import Literal

from vizformer.analysis import Kind, SignedRole, circuits, site_name
from vizformer.analysis.circuits import (
    compositions,
    copying_scores,
    ov_pairs,
    predicting_kind,
    qk_pairs,
    what_is_left_out,
)
from vizformer.analysis.corpus_heads import Corpus, bundled_corpus
from vizformer.analysis.corpus_heads.one_text import head_on_passage, read_tokens
from vizformer.analysis.masks import rerun
from vizformer.errors import VizformerError
from vizformer.messages import Message
from vizformer.model import Trace
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject_functions import of_model
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.words.part_names import role_or_none

ROLE_TEXTS, ROLE_TOKENS = 6, 40
ROLE_WORK = 1e10  # parameters times tokens: two seconds or so, besides the ways back


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
def role_texts(model: ModelRef, corpus: Corpus) -> tuple[Trace, ...]:
    """Runs over the first texts of a corpus; none of a model with which that would take long."""
    checkpoint, found = model_cache.checkpoint(model), list[Trace]()
    if ROLE_TEXTS * ROLE_TOKENS * checkpoint.report.n_parameters > ROLE_WORK:
        return ()
    for passage in corpus.passages[: 2 * ROLE_TEXTS]:
        with suppress(VizformerError):
            tokens = {stack: row[:ROLE_TOKENS] for stack, row in read_tokens(checkpoint, passage).items()}
            found.append(rerun(checkpoint, tokens, None))
        if len(found) == ROLE_TEXTS:
            break
    return tuple(found)


@cached
def role_over(model: ModelRef, corpus: Corpus, kind: Kind, place: tuple[int, int]) -> SignedRole | None:
    """The role of a head towards the logits of the tokens that it attends to in these texts; None where undefined, and
    of recorded code.
    """
    if kind != predicting(model) or not model_cache.predicts(model) or model_cache.is_recorded(model):
        return None
    if not (traces := role_texts(model, corpus)):
        return None
    return role_or_none(model_cache.checkpoint(model), traces, site_name(kind, place[0]), place[1])


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

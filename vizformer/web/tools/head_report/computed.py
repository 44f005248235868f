"""Cached computations of the page Head report."""

from typing import TYPE_CHECKING

from vizformer.errors import VizformerError
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.torch_setup import prepare_torch
from vizformer.web.link.model_ref import ModelRef

if TYPE_CHECKING:
    from vizformer.analysis import Kind
    from vizformer.analysis.head_report import Corpus, Passage
    from vizformer.analysis.head_report.passage import HeadOnPassage


@cached
def bundled(name: str) -> "Corpus":
    """The texts that come with VizFormer, in a language."""
    prepare_torch()
    from vizformer.analysis.head_report import bundled_corpus

    return bundled_corpus(name)


@cached
def typed(texts: str) -> "Corpus | None":
    """The reader's own texts, one a line; None where there are none."""
    prepare_torch()
    from vizformer.analysis.head_report import Corpus

    try:
        return Corpus.of(texts.splitlines(), "own")
    except VizformerError:
        return None


@cached
def on_passage(
    model: ModelRef, passage: "Passage", kind: "Kind", layer: int, head: int, measure: str
) -> "HeadOnPassage":
    """One head on one text, with the cells of what was measured marked."""
    from vizformer.analysis.head_report.passage import head_on_passage

    return head_on_passage(model_cache.checkpoint(model), passage, kind, layer, head, measure)

"""Cached computations of the page Side by side."""

from jaxtyping import Float
from numpy import ndarray

from vizformer.analysis import (
    Kind,
    head_divergences,
    head_pair,
    moved_texts,
    moved_weights,
    short_texts,
    side_by_side,
    similarity_terms,
    stream_cosines,
    text_similarity,
    two_answers,
)
from vizformer.analysis.corpus_heads.corpus import bundled_corpus
from vizformer.analysis.side_by_side import (
    Answers,
    HeadPair,
    MovedText,
    MovedWeights,
    SimilarityTerms,
    StreamCosines,
    TextSimilarity,
)
from vizformer.checkpoints.hugging_face.sentence_vectors import Pooling
from vizformer.web.catalogue import model_cache
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.long_work import HEARD
from vizformer.web.link.model_ref import ModelRef
from vizformer.web.tools.side_by_side.pair import Pair


@cached
def divergences(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    """The divergence of every head, in bits."""
    return head_divergences(pair.runs, kind, heard=HEARD.get())


@cached
def head(pair: Pair, kind: Kind, layer: int, head: int, queries: range, keys: range) -> HeadPair:
    """The maps of one head, and their difference."""
    return head_pair(pair.runs, kind, layer, head, queries, keys)


@cached
def cosines(pair: Pair, stack: str) -> StreamCosines:
    """Those of the residual streams."""
    return stream_cosines(pair.runs, stack)


@cached
def answers(pair: Pair, row: int, other_row: int) -> Answers:
    """What both say."""
    return two_answers(pair.runs, row, other_row)


@cached
def differing_rows(pair: Pair) -> tuple[int, ...]:
    """The rows where the two find different tokens most probable; of texts of equal length."""
    return side_by_side.differing_rows(pair.runs)


@cached
def similarity(pair: Pair, pooling: Pooling) -> TextSimilarity:
    """How alike the two texts are, pair by pair of tokens."""
    return text_similarity(pair.runs, pooling)


@cached
def parts_of_similarity(pair: Pair, pooling: Pooling) -> SimilarityTerms:
    """The same, part by part of the model that has read the first text."""
    return similarity_terms(pair.runs, pooling)


@cached
def elsewhere(pair: Pair, kind: Kind) -> Float[ndarray, "n_layers n_heads"]:
    """Of every head, the share of its attention that goes elsewhere."""
    return head_divergences(pair.runs, kind, measure=side_by_side.total_variation)


@cached
def moved(first: ModelRef, second: ModelRef, singular: bool = False) -> MovedWeights:
    """How far the weights of the second model are from those of the first."""
    one, two = (model_cache.checkpoint(model) for model in (first, second))
    return moved_weights(one, two, singular=singular, heard=HEARD.get())


@cached
def texts(first: ModelRef, second: ModelRef, corpus: str, pooling: Pooling | None) -> tuple[MovedText, ...]:
    """How far the two are apart on short texts of a bundled corpus."""
    passages = short_texts(bundled_corpus(corpus).passages)
    one, two = (model_cache.checkpoint(model) for model in (first, second))
    return moved_texts(one, two, passages, pooling=pooling, heard=HEARD.get())


def bits(value: float) -> str:
    """A divergence with three digits; one that would round to 0 with its first digit."""
    text = f"{value:.3f}"
    return text if float(text) or not value else f"{value:.0e}".replace("-", "−")

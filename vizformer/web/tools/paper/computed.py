"""Cached computations of Attention on paper."""

from typing import TYPE_CHECKING

from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject

if TYPE_CHECKING:
    from vizformer.explain.examples import PaperAttention


@cached
def first_layer(subject: Subject, stack: str, identity: bool, scaled: bool) -> "PaperAttention":
    """What the first layer's input gives with identity matrices, or with head 0's learned ones."""
    from vizformer.explain import examples

    return examples.first_layer_attention(subject.trace, stack, identity=identity, scaled=scaled)

"""Cached computations of Worked examples."""

from vizformer.explain import examples
from vizformer.explain.examples import PaperAttention
from vizformer.web.catalogue.bounded_cache import cached
from vizformer.web.catalogue.subject import Subject


@cached
def first_layer(subject: Subject, stack: str, identity: bool, scaled: bool) -> PaperAttention:
    """What the first layer's input gives with identity matrices, or with head 0's learned ones."""
    return examples.first_layer_attention(subject.trace, stack, identity=identity, scaled=scaled)

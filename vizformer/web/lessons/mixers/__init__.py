"""The laboratories of the lesson After 2017, in the order of its parts."""

from vizformer.web.lessons.mixers import comparison, delta, experts, latent, limits, memory, sink, space

PARTS = (comparison.lab, sink.lab, latent.lab, delta.lab, space.lab, memory.lab, limits.lab, experts.lab)

"""The laboratories of the lesson After 2017, in the order of its parts."""

from vizformer.web.lessons.mixers import comparison, delta, latent, sink, space

PARTS = (comparison.lab, sink.lab, latent.lab, delta.lab, space.lab)

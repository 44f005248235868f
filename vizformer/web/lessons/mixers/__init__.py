"""The laboratories of the lesson After 2017, in the order of its parts."""

from vizformer.web.lessons.mixers import delta, memory

PARTS = (delta.lab, memory.lab)

"""The laboratories of the lesson Cross-attention, in the order of its parts."""

from vizformer.web.lessons.cross import alignment, bottleneck, changed_memory, memory, three_attentions

PARTS = (three_attentions.lab, memory.lab, alignment.lab, changed_memory.lab, bottleneck.lab)

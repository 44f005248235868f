"""The laboratories of the lesson Multi-head attention, in the order of its parts."""

from vizformer.web.lessons.heads import all_heads, reference, shared_keys_and_values, split

PARTS = (split.lab, all_heads.lab, reference.lab, shared_keys_and_values.lab)

"""The laboratories of the lesson Query, key, value, in the order of its parts."""

from vizformer.web.lessons.qkv import lookup, scaling, step_by_step, three_matrices

PARTS = (lookup.lab, step_by_step.lab, three_matrices.lab, scaling.lab)

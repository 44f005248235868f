"""The laboratories of the lesson Masks, in the order of its parts."""

from vizformer.web.lessons.masks import leakage, mask_painting, mistakes, notations, six_masks

PARTS = (six_masks.lab, mask_painting.lab, notations.lab, mistakes.lab, leakage.lab)

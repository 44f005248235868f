"""A trace to what a reader wants to know of it: numpy out."""

from vizformer.analysis.alignment import AlignedPair, AlignmentScore, alignment_score, read_alignments
from vizformer.analysis.heads import HeadMaps, Kind, head_maps, kinds, n_layers, site_name
from vizformer.analysis.predictions import Prediction, next_tokens

__all__ = [
    "AlignedPair",
    "AlignmentScore",
    "HeadMaps",
    "Kind",
    "Prediction",
    "alignment_score",
    "head_maps",
    "kinds",
    "n_layers",
    "next_tokens",
    "read_alignments",
    "site_name",
]

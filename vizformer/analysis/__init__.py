"""A trace to what a reader wants to know of it: numpy out."""

from vizformer.analysis.heads import HeadMaps, Kind, head_maps, kinds, n_layers, site_name
from vizformer.analysis.predictions import Prediction, next_tokens

__all__ = ["HeadMaps", "Kind", "Prediction", "head_maps", "kinds", "n_layers", "next_tokens", "site_name"]

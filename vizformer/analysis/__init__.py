"""A trace to what a reader wants to know of it: numpy out."""

from vizformer.analysis.alignment import AlignedPair, AlignmentScore, alignment_score, read_alignments
from vizformer.analysis.blanks import Guess, guess, guesses, hide
from vizformer.analysis.heads import HeadMaps, Kind, head_maps, kinds, n_layers, site_name
from vizformer.analysis.induction import (
    HeadScores,
    head_scores,
    induction_score,
    previous_token_score,
    repeated_tokens,
)
from vizformer.analysis.predictions import Choice, Prediction, choices, next_tokens

__all__ = [
    "AlignedPair",
    "AlignmentScore",
    "Choice",
    "Guess",
    "HeadMaps",
    "HeadScores",
    "Kind",
    "Prediction",
    "alignment_score",
    "choices",
    "guess",
    "guesses",
    "head_maps",
    "head_scores",
    "hide",
    "induction_score",
    "kinds",
    "n_layers",
    "next_tokens",
    "previous_token_score",
    "read_alignments",
    "repeated_tokens",
    "site_name",
]

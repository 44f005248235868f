"""A trace to what a reader wants to know of it: numpy out."""

from vizformer.analysis.alignment import (
    AlignedPair,
    Alignment,
    AlignmentScore,
    Link,
    WordOrder,
    alignment,
    alignment_score,
    linked,
    read_alignments,
    telling_row,
    word_order,
)
from vizformer.analysis.blanks import Guess, guess, guesses, hide, looks_at, mean_guess
from vizformer.analysis.head_overview import OneHead, largest_weights, layer_weights, mask_reasons, one_head
from vizformer.analysis.heads import HeadMaps, Kind, head_maps, kinds, n_layers, site_name
from vizformer.analysis.induction import (
    HeadScores,
    head_scores,
    induction_score,
    previous_token_score,
    repeated_tokens,
)
from vizformer.analysis.predictions import Choice, Prediction, choices, next_tokens
from vizformer.analysis.qk_circuit import Asymmetry, Bilinear, ScoreForms, asymmetry, bilinear, score_forms
from vizformer.analysis.questions import ScaleQuestion, WhereQuestion, scale_question, where_question
from vizformer.analysis.scaling import ScoreScale, score_scale
from vizformer.analysis.soft_lookup import HeadLookUp, LookUp, head_look_up, look_up

__all__ = [
    "AlignedPair",
    "Alignment",
    "AlignmentScore",
    "Asymmetry",
    "Bilinear",
    "Choice",
    "Guess",
    "HeadLookUp",
    "HeadMaps",
    "HeadScores",
    "Kind",
    "Link",
    "LookUp",
    "OneHead",
    "Prediction",
    "ScaleQuestion",
    "ScoreForms",
    "ScoreScale",
    "WhereQuestion",
    "WordOrder",
    "alignment",
    "alignment_score",
    "asymmetry",
    "bilinear",
    "choices",
    "guess",
    "guesses",
    "head_look_up",
    "head_maps",
    "head_scores",
    "hide",
    "induction_score",
    "kinds",
    "largest_weights",
    "layer_weights",
    "linked",
    "look_up",
    "looks_at",
    "mask_reasons",
    "mean_guess",
    "n_layers",
    "next_tokens",
    "one_head",
    "previous_token_score",
    "read_alignments",
    "repeated_tokens",
    "scale_question",
    "score_forms",
    "score_scale",
    "site_name",
    "telling_row",
    "where_question",
    "word_order",
]

"""What a head does by its weights alone, without any text: the circuits of Elhage et al. 2021."""

from vizformer.analysis.circuits.composition import Composition, compositions
from vizformer.analysis.circuits.token_circuits import (
    TokenPair,
    copying_scores,
    eigenvalues,
    ov_pairs,
    qk_pairs,
    token_scores,
)
from vizformer.analysis.circuits.weights import HeadWeights, head_weights, predicting_kind, what_is_left_out

"""Two runs side by side: one model on two texts, or two models on one."""

from vizformer.analysis.side_by_side.heads import (
    Answer,
    Answers,
    HeadPair,
    differing_rows,
    head_divergences,
    head_pair,
    row_divergences,
    total_variation,
    two_answers,
)
from vizformer.analysis.side_by_side.runs import StreamCosines, TwoRuns, stream_cosines, two_runs
from vizformer.analysis.side_by_side.weights import MovedPart, MovedTensor, MovedWeights, moved_weights

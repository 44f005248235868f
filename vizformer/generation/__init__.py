"""From a prompt to new tokens."""

from vizformer.generation.beam import BeamNode, BeamTree, Hypothesis, beam_search, length_penalty
from vizformer.generation.candidates import Candidates, leading_candidates
from vizformer.generation.greedy import greedy_batch, greedy_steps
from vizformer.generation.sampling import GREEDY, Cut, NextToken, Sampling, next_token
from vizformer.generation.streaming import End, GenerationStep, stream

__all__ = [
    "GREEDY",
    "BeamNode",
    "BeamTree",
    "Candidates",
    "Cut",
    "End",
    "GenerationStep",
    "Hypothesis",
    "NextToken",
    "Sampling",
    "beam_search",
    "greedy_batch",
    "greedy_steps",
    "leading_candidates",
    "length_penalty",
    "next_token",
    "stream",
]
